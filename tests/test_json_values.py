"""Every AMQP value has a form in JSON."""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

import trio_amqp10 as amqp
from tests.wire.strategies import values
from trio_amqp10.json_values import to_json
from trio_amqp10.wire.values import ZeroWidthArray


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
