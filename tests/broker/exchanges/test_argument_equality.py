"""When values of tables are equal, and that they come back from JSON."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp091.wire.typed_values import Float32, Int8, Int64, LongString, ShortString, Timestamp
from trio_amqp10.amqp10.wire.values import Timestamp as Moment
from trio_amqp10.broker.exchanges.argument_equality import comparable, from_json, name_of_type, to_json

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
    st.datetimes(timezones=st.just(UTC)).map(lambda when: when.replace(microsecond=0)),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.one_of(st.just("$"), st.text()), inner)),
)


@given(VALUES)
def test_value_comes_back_from_json(value: Any) -> None:
    back = from_json(json.loads(json.dumps(to_json(value))))
    assert back == value
    assert comparable(back) == comparable(value)


def test_time_of_1_0_comes_back_from_json_with_its_seconds() -> None:
    assert from_json(to_json(Moment(7_999))) == datetime.fromtimestamp(7, UTC)
    assert from_json(to_json(Moment(-1))) == datetime.fromtimestamp(-1, UTC)
    assert from_json(to_json(Moment(2**60))) == 2**60


@pytest.mark.parametrize(
    "value",
    [
        *(
            {"$": each}
            for each in (1, [], ["decimal", "x"], ["decimal", {}], ["time", 1e99], ["time", -(2**62)])
        ),
        *(
            {"$": each}
            for each in (["time", "x"], ["octets", "zz"], ["octets", 1], ["float", []], ["table", 5])
        ),
        [{"deep": {"$": ["decimal", "x"]}}],
    ],
)
def test_json_of_no_value_is_a_value_error(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(value)


def test_json_that_is_too_deep_is_a_value_error() -> None:
    value: list[Any] = []
    for _ in range(10_000):
        value = [value]
    with pytest.raises(ValueError, match="recursion"):
        from_json(value)


def test_number_that_is_none_comes_back_from_json() -> None:
    assert math.isnan(from_json(to_json(math.nan)))
    with pytest.raises(TypeError, match="object"):
        to_json(object())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Int8(1), Int64(1)),
        (Float32(1.0), 1.0),
        (datetime.fromtimestamp(7, UTC), Moment(7_000)),
        (Moment(2**60), 2**60),
        ("text", b"text"),
        (ShortString("text"), LongString(b"text")),
        ([1, "a"], (Int8(1), b"a")),
        ({"a": 1, "b": 2}, {"b": Int64(2), "a": 1}),
        (bytearray(b"a"), "a"),
    ],
)
def test_values_are_equal_whatever_their_width(one: Any, other: Any) -> None:
    assert comparable(one) == comparable(other)
    assert hash(comparable(one)) == hash(comparable(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, 1),
        (False, 0),
        (None, 0),
        ("1", 1),
        ([1], 1),
        ({}, []),
        (Decimal(1), 1),
        (Decimal("1.0"), Decimal(1)),
        (5, 5.0),
        (datetime.fromtimestamp(7, UTC), 7),
    ],
)
def test_values_of_other_kinds_are_not_equal(one: Any, other: Any) -> None:
    assert comparable(one) != comparable(other)


def test_value_of_a_type_that_cannot_be_hashed_is_compared_by_how_it_is_shown() -> None:
    assert comparable(set[int]()) == ("set", "set()")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "void"),
        (True, "bool"),
        (5, "signedint"),
        (Int8(5), "byte"),
        (Int64(5), "long"),
        (Timestamp(5), "timestamp"),
        (Float32(5), "float"),
        (5.0, "double"),
        (Decimal(5), "decimal"),
        ("a", "longstr"),
        (b"a", "binary"),
        ([], "array"),
        ({}, "table"),
        (datetime.fromtimestamp(7, UTC), "timestamp"),
        (object(), "object"),
    ],
)
def test_type_has_the_name_that_rabbitmq_gives_it(value: Any, name: str) -> None:
    assert name_of_type(value) == name
