"""Octets to values: every encoding comes in, and the budget counts what is made (1.6)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.decode import TABLE, Budget, decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    ZeroWidthArray,
)

from .strategies import same

VECTORS: list[tuple[str, Any]] = [
    ("40", None),
    ("41", True),
    ("42", False),
    ("5601", True),
    ("5600", False),
    ("50ff", UByte(255)),
    ("600001", UShort(1)),
    ("7000000001", UInt(1)),
    ("5201", UInt(1)),
    ("43", UInt(0)),
    ("800000000000000001", ULong(1)),
    ("5301", ULong(1)),
    ("44", ULong(0)),
    ("51ff", Byte(-1)),
    ("61ffff", Short(-1)),
    ("71ffffffff", Int(-1)),
    ("54ff", Int(-1)),
    ("81ffffffffffffffff", -1),
    ("55ff", -1),
    ("723fc00000", Float(1.5)),
    ("823ff8000000000000", 1.5),
    ("7432800001", Decimal32(bytes.fromhex("32800001"))),
    ("84" + "31c0000000000001", Decimal64(bytes.fromhex("31c0000000000001"))),
    ("94" + "3040" + "00" * 13 + "01", Decimal128(bytes.fromhex("3040" + "00" * 13 + "01"))),
    ("7300000041", Char("A")),
    ("830000000000000001", Timestamp(1)),
    ("98" + "00" * 15 + "01", uuid.UUID(int=1)),
    ("a00161", b"a"),
    ("b00000000161", b"a"),
    ("a10161", "a"),
    ("b10000000161", "a"),
    ("a30161", Symbol("a")),
    ("b30000000161", Symbol("a")),
    ("45", []),
    ("c00100", []),
    ("c0020140", [None]),
    ("d00000000400000000", []),
    ("d0000000050000000140", [None]),
    ("c10100", {}),
    ("c103024042", {None: False}),
    ("d100000006000000024042", {None: False}),
    ("e0030150ff", Array([255], "ubyte")),
    ("f00000000600000001" + "50ff", Array([255], "ubyte")),
    ("e0020543", ZeroWidthArray(0x43, 5)),
    ("f000000005ffffffff" + "45", ZeroWidthArray(0x45, 2**32 - 1)),
    ("00a3016140", Described("a", None)),
    ("004040", Described(None, None)),
    ("00531045", Described(0x10, [])),
]


@pytest.mark.parametrize(("octets", "value"), VECTORS)
def test_decode_reads_every_encoding(octets: str, value: Any) -> None:
    buf = bytes.fromhex(octets)
    back, end = decode(b"??" + buf + b"??", 2)
    assert end == 2 + len(buf)
    assert back == value
    assert encode(back) == encode(value)
    if not isinstance(value, Array):
        assert same(back, value)


def test_vectors_leave_no_encoding_out() -> None:
    assert {bytes.fromhex(octets)[0] for octets, _ in VECTORS} == {*codes.ENCODINGS, codes.DESCRIBED}
    assert len(TABLE) == 256


@pytest.mark.parametrize(
    "octets", ["00550140", "00a1016140", "008000000000000000ff" + "40", "e005010055" + "0141"]
)
def test_decode_keeps_the_type_of_a_descriptor_when_it_is_a_reserved_one(octets: str) -> None:
    value, _ = decode(bytes.fromhex(octets))
    again, _ = decode(encode(value))
    assert same(again, value)


class Known:
    """Stands in for a registry."""

    def decode_described(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int] | None:
        return ("known", pos + 3) if buf[pos : pos + 2] == b"\x53\x07" else None


def test_decode_asks_the_types_of_its_budget_about_described_values() -> None:
    budget = Budget(types=Known())
    assert decode(bytes.fromhex("00530740"), 0, budget) == ("known", 4)
    assert decode(bytes.fromhex("00530840"), 0, budget) == (Described(8, None), 4)
