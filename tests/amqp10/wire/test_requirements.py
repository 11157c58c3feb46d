"""Statements of Part 1 that no other test shows by itself."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode


@pytest.mark.parametrize("octets", ["45", "c00100", "d00000000400000000"])
def test_list_is_read_alike_in_each_of_its_encodings(octets: str) -> None:
    buf = bytes.fromhex(octets)
    assert decode(buf) == ([], len(buf))


def test_map_keeps_its_order_on_the_wire() -> None:
    octets = bytes.fromhex("c1 09 04 a1 01 62 41 a1 01 61 42".replace(" ", ""))
    value, end = decode(octets)
    assert end == len(octets)
    assert list(value.items()) == [("b", True), ("a", False)]
    assert encode(value) == octets
