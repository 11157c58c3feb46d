"""Values as JSON with their types beside it: every value comes back, and what contradicts itself is refused."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.amqp10.wire import strategies as wire
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Symbol, UInt
from trio_amqp10.spark.typed_json import (
    UnfitError,
    from_text,
    map_from_text,
    map_to_text,
    map_types,
    to_text,
    type_of,
)

KEYS = st.one_of(st.text(max_size=5), st.text(st.characters(max_codepoint=127), max_size=5).map(Symbol))


@given(st.dictionaries(KEYS, wire.values, max_size=4))
def test_map_comes_back_with_the_types_of_keys_and_values(values: dict[Any, Any]) -> None:
    assume(len({str(key) for key in values}) == len(values))  # keys that are equal as texts are one row
    for key_type in (str, Symbol):
        back = map_from_text(map_to_text(values), map_types(values, key_type), key_type)
        assert encode(back) == encode(values)
        assert list(map(type, back)) == list(map(type, values))


@given(st.text())
def test_string_is_its_text_in_both_directions(text: str) -> None:
    assert to_text(text) == text
    assert from_text(text, None) == text
    assert from_text(text, "string") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (17, "17"),
        (True, "true"),
        (1.5, "1.5"),
        (Symbol("x"), "x"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"x", '{"base64":"eA=="}'),
        ([1, "x"], '[1,"x"]'),
    ],
)
def test_value_that_is_no_string_is_json(value: Any, text: str | None) -> None:
    assert to_text(value) == text


@pytest.mark.parametrize("text", ["17", "0123", "1.5", "true", "null", '"x"', '{"a":1}', "[", ""])
def test_text_without_a_type_is_a_string_whatever_it_looks_like(text: str) -> None:
    assert map_from_text([("k", text)], None, str) == {"k": text}


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        ("true", "int", "a whole number"),
        ('"x"', "double", "a number"),
        ("1", "boolean", "true or false"),
        ('"x"', "binary", "base64"),
        ("1", "null", "null"),
        ("1", "decimal32", "no simple AMQP type"),
        ("-1", "uint", "-1"),
        ("no json", "int", "cannot be of type"),
        ("[1]", type_of([2]), "another value"),
        ("[1]", "list !", "cannot be of type"),
    ],
)
def test_text_that_does_not_fit_its_type_is_refused(text: str, kind: str, why: str) -> None:
    with pytest.raises(UnfitError, match=why):
        from_text(text, kind)


def test_value_that_is_no_text_is_taken_as_it_is() -> None:
    assert map_from_text([("n", 1), ("s", "2")], [("s", "uint")], str) == {"n": 1, "s": UInt(2)}


@pytest.mark.parametrize("kind", ["uuid/string", "ulong/string"])
def test_key_that_cannot_be_of_its_type_is_refused(kind: str) -> None:
    with pytest.raises(UnfitError, match="key"):
        map_from_text([("x", '"1"')], [("x", kind)], Symbol)
