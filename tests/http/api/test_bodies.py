"""Bodies: what is no object of JSON, or has values that no message can have, is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.http.api.bodies import check_text, field, read_object
from trio_amqp10.http.errors import RequestError

if TYPE_CHECKING:
    from starlette.types import Message


class Sent:
    """A request whose body comes in these parts."""

    def __init__(self, *parts: bytes, ends: bool = True) -> None:
        self._messages: list[Message] = [
            {"type": "http.request", "body": part, "more_body": True} for part in parts
        ]
        self._messages.append({"type": "http.request"} if ends else {"type": "http.disconnect"})

    async def receive(self) -> Message:
        return self._messages.pop(0)


async def read(*parts: bytes, most: int = 1_000_000, ends: bool = True) -> dict[str, Any]:
    return await read_object(Sent(*parts, ends=ends), most)  # type: ignore[arg-type]


async def test_object_in_parts_is_read() -> None:
    assert await read(b'{"a"', b': [1, "\xc3\xbc", null, 1.5, true]}') == {"a": [1, "ü", None, 1.5, True]}


async def test_empty_body_is_an_empty_object() -> None:
    assert await read() == {}


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"[]", "object"),
        (b"null", "object"),
        (b"{", "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": 9223372036854775808}', "64 bits"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "levels"),
        (b"[" * 100_000, "too deep"),
    ],
)
async def test_other_body_is_refused_with_the_reason(body: bytes, what: str) -> None:
    with pytest.raises(RequestError, match=what) as caught:
        await read(body)
    assert caught.value.status == 400


async def test_body_above_the_limit_is_refused_while_it_comes() -> None:
    with pytest.raises(RequestError, match="10 octets") as caught:
        await read(b"{" * 6, b"{" * 6, b"never read", most=10)
    assert caught.value.status == 413


async def test_body_that_ends_too_early_is_refused() -> None:
    with pytest.raises(RequestError, match="too early"):
        await read(b"{", ends=False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_field_returns_a_value_of_its_type_or_refuses(value: Any) -> None:
    for kind in (bool, int, str, dict, list):
        with suppress(RequestError):
            found: Any = field({"x": value}, "x", kind)
            assert found.__class__ is kind
            assert found == value or json.dumps(found) == value or found == {} or str(found) == str(value)


def test_missing_field_has_its_default_or_is_named() -> None:
    assert field({}, "x", int, 5) == 5
    with pytest.raises(RequestError, match="x is missing: expected a whole number"):
        field({}, "x", int)


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [(bool, "true", True), (bool, "false", False), (int, "12", 12), (dict, [], {})],
)
def test_field_takes_what_rabbitmq_takes(kind: type, value: Any, found: Any) -> None:
    assert field({"x": value}, "x", kind) == found


def test_number_is_no_boolean_and_a_boolean_no_number() -> None:
    for kind, value in ((bool, 1), (int, True), (int, 1.0), (int, "-1"), (int, "1" * 30), (str, 1)):
        with pytest.raises(RequestError):
            field({"x": value}, "x", kind)


def test_text_with_a_lone_surrogate_is_refused() -> None:
    check_text("aü\U0001f600")
    with pytest.raises(RequestError):
        check_text("\ud800")
