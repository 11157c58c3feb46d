"""Headers by the short way are those by way of values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trio_amqp10.amqp091.conversion import translate
from trio_amqp10.amqp091.conversion.headers_shortcut import header_octets
from trio_amqp10.amqp091.conversion.translate import to_sections
from trio_amqp10.amqp091.wire.content import BasicProperties

usual_names = st.sampled_from(["a", "x-d", "CC", "x-death", "xy", "x", "b" * 255, "x-" + "c" * 254, "né"])


usual_values = st.sampled_from(
    [
        "one",
        "",
        "té",
        "a" * 255,
        "a" * 256,
        -128,
        127,
        128,
        2**31 - 1,
        2**31,
        True,
        False,
        5.5,
        None,
        b"x",
        [1],
    ]
)


MANY = {f"n{number}": number for number in range(200)}


@given(st.dictionaries(usual_names, usual_values, max_size=5), st.none() | st.just("letter"))
@example({}, None)
@example(MANY, None)
@example({f"x-{name}": value for name, value in MANY.items()}, None)
@example({"a": "a" * 250}, None)
@example({"a": True, "b": False, "c": None, "d": 5.5, "x-e": -(2**31)}, "letter")
@example({"a": 2**31}, None)
@example({"a": "té"}, None)
@example({"né": 1}, None)
@example({"a": [1]}, None)
def test_headers_by_the_short_way_are_those_by_way_of_values(
    headers: dict[str, Any], kind: str | None
) -> None:
    properties = BasicProperties(headers=headers, type=kind)
    place = {"exchange": "e", "routing_key": "k"}
    short = to_sections(properties, b"tea", **place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "header_octets", lambda _: None)
        assert to_sections(properties, b"tea", **place) == short


def test_usual_headers_take_the_short_way() -> None:
    assert header_octets({"a": "one", "b": 2, "c": True, "x-d": "four", "e": 5.5, "f": None}) is not None
    assert header_octets({"a": "one", "CC": ["k"]}) is None
