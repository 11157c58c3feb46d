"""Values to octets, in their shortest encoding (1.6)."""

from __future__ import annotations

import datetime
import uuid
from collections import OrderedDict
from decimal import Decimal
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import pytest

from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode, encode_into
from trio_amqp10.amqp10.wire.values import (
    Array,
    Byte,
    Char,
    Decimal32,
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
from trio_amqp10.core.errors import Condition, LocalProtocolError


class Colour(IntEnum):
    RED = 7


class Text(str):
    __slots__ = ()


VECTORS: list[tuple[Any, str]] = [
    (None, "40"),
    (True, "41"),
    (False, "42"),
    (UByte(255), "50ff"),
    (UShort(256), "600100"),
    (UInt(0), "43"),
    (UInt(255), "52ff"),
    (UInt(256), "7000000100"),
    (ULong(0), "44"),
    (ULong(255), "53ff"),
    (ULong(256), "800000000000000100"),
    (Byte(-1), "51ff"),
    (Short(-2), "61fffe"),
    (Int(-128), "5480"),
    (Int(127), "547f"),
    (Int(128), "7100000080"),
    (Int(-129), "71ffffff7f"),
    (0, "5500"),
    (-128, "5580"),
    (128, "810000000000000080"),
    (2**63 - 1, "817fffffffffffffff"),
    (2**63, "808000000000000000"),
    (2**64 - 1, "80ffffffffffffffff"),
    (Float(1.5), "723fc00000"),
    (1.5, "823ff8000000000000"),
    (Char("€"), "73000020ac"),
    (Timestamp(1), "830000000000000001"),
    (datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC), "8300000000000003e8"),
    (uuid.UUID(int=1), "9800000000000000000000000000000001"),
    (Decimal32(b"\x32\x80\x00\x01"), "7432800001"),
    (b"", "a000"),
    (b"ab", "a0026162"),
    (bytearray(b"ab"), "a0026162"),
    (memoryview(b"abcd")[::2], "a0026163"),
    ("", "a100"),
    ("é", "a102c3a9"),
    (Symbol("a"), "a30161"),
    ([], "45"),
    ([None, 1], "c00402405501"),
    ((True,), "c0020141"),
    ({}, "c10100"),
    ({"a": 1}, "c10602a101615501"),
    (Array([1, 2], "uint"), "e00402520102"),
    (Array([1, 256], "uint"), "e00a02700000000100000100"),
    (Array([-1, 1], "long"), "e0040255ff01"),
    (Array([True, False]), "e00402560100"),
    (Array([1.5, 0.0]), "e0120282" + "3ff8000000000000" + "00" * 8),
    (Array(["€"], "char"), "e0060173000020ac"),
    (Array(["a", "b"], "symbol"), "e00602a301610162"),
    (Array([], "string"), "e00200a1"),
    (Array([[], [1]], "list"), "e00802c001000301" + "5501"),
    (Array(["a"], "symbol", ["d"]), "e00801" + "00a30164" + "a30161"),
    (ZeroWidthArray(0x40, 3), "e0020340"),
    (ZeroWidthArray(0x40, 256), "f0000000050000010040"),
    (ZeroWidthArray(0x41, 1, [5]), "e00501005305" + "41"),
    (Described("a", 1), "00a301615501"),
    (Described(5, []), "00530545"),
    (Colour.RED, "5507"),
    (Text("a"), "a10161"),
    (Condition.NOT_FOUND, "a10e" + b"amqp:not-found".hex()),
    (OrderedDict(a=1), "c10602a101615501"),
    (MappingProxyType({"a": 1}), "c10602a101615501"),
]


@pytest.mark.parametrize(("value", "octets"), VECTORS)
def test_encode_writes_the_shortest_encoding(value: Any, octets: str) -> None:
    assert encode(value).hex() == octets


@pytest.mark.parametrize(
    ("value", "head", "width"),
    [
        (bytes(255), "a0ff", 257),
        (bytes(256), "b000000100", 261),
        ("x" * 256, "b100000100", 261),
        (Symbol("x" * 256), "b300000100", 261),
        ([None] * 254, "c0fffe", 257),
        ([None] * 255, "d000000103000000ff", 264),
        ({"x" * 251: None}, "c1ff02", 257),
        ({"x" * 252: None}, "d10000010300000002", 264),
        (Array([bytes(256)]), "f00000010900000001b000000100", 270),
        (Array([["x" * 253]]), "f00000010c00000001d00000010300000001", 273),
    ],
)
def test_encode_takes_the_long_form_when_the_short_one_is_full(value: Any, head: str, width: int) -> None:
    octets = encode(value)
    assert octets.hex().startswith(head)
    assert len(octets) == width
    assert decode(octets) == (value, width)


class Foreign:
    pass


class Huge(list[Any]):
    __slots__ = ()

    def __len__(self) -> int:
        return 2**32


SURROGATE = chr(0xD800)

REFUSED: list[tuple[Any, str]] = [
    (2**64, "out of the range of a ulong"),
    (-(2**63) - 1, "out of the range of a long"),
    (SURROGATE, "lone surrogate"),
    ({SURROGATE: 1}, "lone surrogate"),
    (Array([SURROGATE]), "array of string: a lone surrogate"),
    (datetime.datetime(2024, 1, 1), "time zone"),  # noqa: DTZ001  # the point of the test
    (datetime.date(2024, 1, 1), "no type for a datetime.date"),
    (Decimal(1), "Decimal128.from_decimal"),
    ({1, 2}, "^AMQP has no type for a builtins.set"),
    ({"cup": {"tea": [1, {2}]}}, r"^\['cup'\]\['tea'\]\[1\]: AMQP has no type for a builtins.set"),
    ([0, {("x" * 100): {1}}], r"^\[1\]\['xxxxxxxxxxxx\.\.\.xxxxxxxxxxxxx'\]: AMQP has no type"),
    (Foreign(), "no type for a .*Foreign"),
    (Huge(), "more than AMQP can count"),
    (Described([], 1), "a descriptor must be a Symbol or a ULong"),
    (Described(Described(1, 1), 1), "a descriptor must be a Symbol or a ULong"),
    (Array(["é"], "symbol"), "array of symbol: a symbol is ASCII"),
    (Array([256], "ubyte"), "array of ubyte: an element is out of the range"),
    (Array([2**32], "uint"), "array of uint: an element is out of the range"),
    (Array([True], "int"), "array of int: True is not an int"),
    (Array(["1"], "int"), "array of int: '1' is not an int"),
    (Array([1], "boolean"), "array of boolean: 1 is not a boolean"),
    (Array([1], "string"), "array of string: 1 is not a str"),
    (Array([1], "symbol"), "array of symbol: 1 is not a symbol"),
    (Array([1], "binary"), "array of binary: 1 is not bytes"),
    (Array([1], "double"), "array of double: 1 is not a float"),
    (Array([1e300], "float"), "array of float: .* does not fit"),
    (Array([1], "decimal64"), "array of decimal64: 1 is not a Decimal64"),
    (Array([1], "char"), "array of char: 1 is not a char"),
    (Array(["ab"], "char"), "array of char: a char is one"),
    (Array(["x"], "timestamp"), "array of timestamp: 'x' is not a timestamp"),
    (Array([1], "uuid"), "array of uuid: 1 is not a uuid.UUID"),
    (Array([1], "list"), "array of list: 1 is not a list"),
    (Array([1], "map"), "array of map: 1 is not a mapping"),
    (Array([[1]], "array"), r"array of array: \[1\] is not an Array"),
]


@pytest.mark.parametrize(("value", "text"), REFUSED)
def test_encode_refuses_a_value_that_amqp_cannot_hold(value: Any, text: str) -> None:
    with pytest.raises(LocalProtocolError, match=text):
        encode(value)


def nested(levels: int, wrap: Any) -> Any:
    value: Any = None
    for _ in range(levels):
        value = wrap(value)
    return value


WRAPS: dict[str, Any] = {
    "list": lambda value: [value],
    "map": lambda value: {"k": value},
    "described": lambda value: Described("d", value),
    "array": lambda value: Array([value or []], "array" if value else "list"),
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_encode_nests_as_deep_as_decode_when_it_is_32_levels(wrap: str) -> None:
    levels = 31 if wrap == "array" else 32  # the innermost array holds a list
    value = nested(levels, WRAPS[wrap])
    assert decode(encode(value))[0] == value
    with pytest.raises(LocalProtocolError, match="nested more than 32"):
        encode(nested(levels + 1, WRAPS[wrap]))


def test_encode_refuses_a_list_that_holds_itself() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(LocalProtocolError, match="nested"):
        encode(value)


class Itself:
    def __amqp_encode__(self, out: bytearray) -> None:
        out += b"\x41"


def test_encode_lets_an_object_encode_itself_wherever_it_stands() -> None:
    assert encode(Itself()) == b"\x41"
    assert (
        encode([Itself(), Described(5, Itself()), {"k": Itself()}]).hex()
        == "c00d0341" + "00530541" + "c1050" + "2a1016b41"
    )


def test_encode_into_appends() -> None:
    out = bytearray(b"x")
    encode_into(out, 1)
    assert out == b"x\x55\x01"


def test_encode_into_leaves_the_buffer_as_it_was_when_it_refuses() -> None:
    out = bytearray(b"x")
    with pytest.raises(LocalProtocolError):
        encode_into(out, Described("d", {1, 2}))
    assert out == b"x"
