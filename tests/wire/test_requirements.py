"""Statements of Part 1 that no other test shows by itself."""

from __future__ import annotations

import uuid

import pytest

from trio_amqp10.wire.decode import decode
from trio_amqp10.wire.encode import encode


def test_uuid_is_the_octets_of_its_rfc_in_order() -> None:
    value = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    octets = bytes.fromhex("98 00112233445566778899aabbccddeeff")
    assert encode(value) == octets
    assert decode(octets) == (value, 17)


def test_string_is_not_given_a_byte_order_mark() -> None:
    assert encode("tea") == b"\xa1\x03tea"
    assert decode(b"\xa1\x06\xef\xbb\xbftea") == ("\ufefftea", 8)


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
