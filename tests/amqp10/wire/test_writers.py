"""Scalars are written as the standard encodes them (1.6.1 to 1.6.21)."""

from __future__ import annotations

import struct
import uuid

import pytest

from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import WRITERS, encode
from trio_amqp10.amqp10.wire.values import Float
from trio_amqp10.core.errors import LocalProtocolError


@pytest.mark.parametrize("bits", ["7f800001", "ffc12345", "7fc00000"])
def test_float_keeps_the_payload_of_a_nan(bits: str) -> None:
    octets = bytes.fromhex("72" + bits)
    assert encode(decode(octets)[0]) == octets


def test_float_stays_a_nan_when_its_payload_does_not_fit() -> None:
    (number,) = struct.unpack(">d", bytes.fromhex("7ff0000000000001"))
    assert encode(Float(number)).hex() == "727fc00000"


def test_boolean_writer_refuses_a_number() -> None:
    with pytest.raises(LocalProtocolError, match="1 is not a boolean"):
        WRITERS["boolean"](bytearray(), 1, 32)


def test_uuid_is_the_octets_of_its_rfc_in_order() -> None:
    value = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    octets = bytes.fromhex("98 00112233445566778899aabbccddeeff")
    assert encode(value) == octets
    assert decode(octets) == (value, 17)


def test_string_is_not_given_a_byte_order_mark() -> None:
    assert encode("tea") == b"\xa1\x03tea"
    assert decode(b"\xa1\x06\xef\xbb\xbftea") == ("\ufefftea", 8)
