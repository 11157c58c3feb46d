"""Every AMQP value has a form in JSON."""

from __future__ import annotations

import json
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.json_values import READERS, to_json
from trio_amqp10.amqp10.wire.values import ZeroWidthArray

from .strategies import SCALARS, same, values


def test_maps_in_maps_are_converted_once_however_deep() -> None:
    """Names that are equal in JSON make a map a list of pairs."""
    value: Any = 0
    for _ in range(31):
        value = amqp.PairMap([(amqp.Symbol("k"), 1), ("k", value)])
    shown = to_json(value)
    for _ in range(31):
        (_, one), (_, shown) = shown
        assert one == 1
    assert shown == 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (amqp.Symbol("s"), "s"),
        (amqp.UInt(7), 7),
        (amqp.Timestamp(1000), 1000),
        (b"\xff", {"base64": "/w=="}),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        ({1: "a", "b": 2}, [[1, "a"], ["b", 2]]),
        (amqp.PairMap([(amqp.Symbol("k"), 1), ("k", 2)]), [["k", 1], ["k", 2]]),
        (amqp.PairMap([("k", [1])]), {"k": [1]}),
        (amqp.PairMap([([1], 1), ({"a": 1}, 2)]), [[[1], 1], [{"a": 1}, 2]]),
        (amqp.Described(amqp.Symbol("d"), [1]), {"descriptor": "d", "value": [1]}),
        (amqp.Array([1, 2], "uint"), [1, 2]),
        (ZeroWidthArray(0x41, 3), {"element_code": 0x41, "count": 3}),
        (amqp.Decimal32(b"\x22\x50\x00\x01"), str(amqp.Decimal32(b"\x22\x50\x00\x01"))),
        ((1, "a"), [1, "a"]),
    ],
)
def test_value_has_a_form_in_json(value: Any, shown: Any) -> None:
    assert to_json(value) == shown


@given(values)
def test_every_value_is_json_that_reads_back(value: Any) -> None:
    json.loads(json.dumps(to_json(value)))


@given(st.sampled_from(sorted(READERS)), st.data())
def test_simple_value_comes_back_from_json_by_its_type(name: str, data: st.DataObject) -> None:
    value = data.draw(SCALARS[name])
    assume(not isinstance(value, float) or math.isfinite(value))
    assert same(READERS[name](json.loads(json.dumps(to_json(value)))), value)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("boolean", 1, "expected true or false"),
        ("uint", True, "expected a whole number"),
        ("long", 1.5, "expected a whole number"),
        ("double", True, "expected a number"),
        ("float", "1", "expected a number"),
        ("symbol", 1, "expected a string"),
    ],
)
def test_json_of_another_kind_is_refused(name: str, value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        READERS[name](value)


@pytest.mark.parametrize("name", ["float", "double"])
@pytest.mark.parametrize("value", [True, "1", None, [1]])
def test_number_is_read_from_a_number_of_json_alone(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        READERS[name](value)
    assert READERS[name](1.5) == 1.5
