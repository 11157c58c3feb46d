"""Values of headers in both protocols: what comes back, and what is left out."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from trio_amqp10.amqp091.conversion.translate import to_publication
from trio_amqp10.amqp091.conversion.value_translation import LEFT_OUT, from_standard, to_standard
from trio_amqp10.amqp091.wire import typed_values as classic
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp10.wire import values as wire

from .test_translate import NESTED, there


def both_ways(properties: BasicProperties, body: bytes = b"") -> BasicProperties:
    return to_publication(there(properties, body)).properties


@given(NESTED)
def test_value_comes_back_as_it_was(value: Any) -> None:
    back = from_standard(to_standard(value))
    assert (type(back), back) == (type(value), value)


def test_value_of_a_type_that_no_table_has_is_left_out() -> None:
    assert to_standard(object()) is LEFT_OUT


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (wire.ULong(2**63 - 1), classic.Int64(2**63 - 1)),
        (wire.ULong(2**63), str(2**63)),
        (wire.Timestamp(1999), datetime.fromtimestamp(1, UTC)),
        (wire.Timestamp(-1), LEFT_OUT),
        (wire.Symbol("s"), "s"),
        (wire.Char("c"), LEFT_OUT),
        (uuid.UUID(int=1), LEFT_OUT),
        (wire.Array([1], "long"), [1]),
        ({"a": uuid.UUID(int=1), "x" * 256: 1, 7: 1, "b": 2}, {"b": 2}),
    ],
)
def test_value_of_the_standard_has_a_letter_or_is_left_out(value: Any, expected: Any) -> None:
    found = from_standard(value)
    assert (type(found), found) == (type(expected), expected)


def test_values_nest_as_deeply_in_both() -> None:
    deep: Any = 1
    for _ in range(31):
        deep = [deep]
    properties = both_ways(BasicProperties(headers={"x-deep": deep}))
    assert properties.headers == {"x-deep": deep}
    properties.encode(USUAL)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_left_out(number: float) -> None:
    headers = {"a": number, "b": classic.Float32(number), "x-c": [number, 1.5], "d": 2.5}
    back = both_ways(BasicProperties(headers=headers))
    assert back.headers == {"x-c": [1.5], "d": 2.5}
