"""Annotations of what holds no other values, and choices of such."""

from __future__ import annotations

import datetime
import enum
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType

import pytest

from trio_amqp10.amqp10.spec.messaging import Modified, Source, TerminusDurability
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire import fields
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
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.typed import Registry

TYPES = Registry()
ID = uuid.UUID(int=7)
MOMENT = datetime.datetime(2024, 5, 6, 7, 8, 9, 10_000, tzinfo=datetime.UTC)
OrderId = NewType("OrderId", str)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Scale(enum.Enum):
    HALF = 0.5


class Text(str):
    __slots__ = ()


class Number(int):
    __slots__ = ()


class Real(float):
    __slots__ = ()


WITH_NONE = Literal["a", 1, None]  # noqa: PYI061 - what people write


class Alias:
    """As the ``type`` statement makes it."""

    __value__ = int


def same(one: Any, other: Any) -> bool:
    return one.__class__ is other.__class__ and bool(one == other)


BOTH_WAYS: list[tuple[Any, Any, Any]] = [
    (None, None, None),
    (type(None), None, None),
    (bool, True, True),
    (bool, False, False),
    (int, 5, 5),
    (int, -(2**63), -(2**63)),
    (int, 2**64 - 1, 2**64 - 1),
    (float, 1.5, 1.5),
    (str, "é", "é"),
    (bytes, b"a", b"a"),
    (uuid.UUID, ID, ID),
    (datetime.datetime, MOMENT, Timestamp.from_datetime(MOMENT)),
    (Decimal, Decimal("1.50"), Decimal128.from_decimal(Decimal("1.50"))),
    (OrderId, "a", "a"),
    (Alias(), 5, 5),
    (fields.boolean, True, True),
    (fields.ubyte, 255, UByte(255)),
    (fields.ushort, 5, UShort(5)),
    (fields.uint, 5, UInt(5)),
    (fields.ulong, 2**64 - 1, ULong(2**64 - 1)),
    (fields.byte, -128, Byte(-128)),
    (fields.short, 5, Short(5)),
    (fields.int_, 5, Int(5)),
    (fields.long, -(2**63), -(2**63)),
    (fields.timestamp, 5, Timestamp(5)),
    (fields.float_, 1.5, Float(1.5)),
    (fields.double, 1.5, 1.5),
    (fields.char, "é", Char("é")),
    (fields.symbol, "a", Symbol("a")),
    (fields.string, "é", "é"),
    (fields.binary, b"a", b"a"),
    (ULong, ULong(5), ULong(5)),
    (Symbol, Symbol("a"), Symbol("a")),
    (Float, Float(1.5), Float(1.5)),
    (Decimal32, Decimal32(b"1234"), Decimal32(b"1234")),
    (Decimal64, Decimal64(b"12345678"), Decimal64(b"12345678")),
    (Described, Described("a", 1), Described("a", 1)),
    (Colour, Colour.BLUE, "blue"),
    (Level, Level.HIGH, 2),
    (Rights, Rights.READ | Rights.WRITE, 3),
    (Scale, Scale.HALF, 0.5),
    (Annotated[Colour, fields.symbol], Colour.RED, Symbol("red")),
    (Annotated[Level, fields.ubyte], Level.LOW, UByte(1)),
    (WITH_NONE, "a", "a"),
    (WITH_NONE, 1, 1),
    (WITH_NONE, None, None),
    (Literal[True, 1], True, True),
    (Literal[True, 1], 1, 1),
    (Literal[Colour.RED], Colour.RED, "red"),
    (Annotated[Literal["a", "b"], fields.symbol], "b", Symbol("b")),
    (Annotated[int, "somebody else's mark"], 5, 5),
    (Annotated[int, {"unhashable": "mark"}], 5, 5),
    (TerminusDurability, TerminusDurability.UNSETTLED_STATE, UInt(2)),
    (fields.symbol_map, {"a": 1}, {Symbol("a"): 1}),
    (object, [1, "a", {"b": None}], [1, "a", {"b": None}]),
]


@pytest.mark.parametrize(("annotation", "obj", "value"), BOTH_WAYS)
def test_annotation_is_carried_as_its_type_and_comes_back(annotation: Any, obj: Any, value: Any) -> None:
    sent = TYPES.to_value(obj, annotation) if annotation is not None else TYPES.to_value(obj)
    assert same(sent, value)
    assert same(TYPES.from_value(annotation, value), obj)


@pytest.mark.parametrize("value", [UByte(5), UShort(5), UInt(5), ULong(5), Byte(5), Short(5), Int(5), 5])
def test_int_is_read_from_every_integer_as_a_plain_one(value: Any) -> None:
    assert same(TYPES.from_value(int, value), 5)


@pytest.mark.parametrize(
    ("annotation", "value", "obj"),
    [
        (float, Float(1.5), 1.5),
        (float, 3, 3.0),
        (float, UInt(3), 3.0),
        (str, Symbol("a"), "a"),
        (str, Char("a"), "a"),
        (Decimal, Decimal32.from_decimal(Decimal(2)), Decimal(2)),
    ],
)
def test_class_of_pythons_is_read_from_what_carries_such_a_value(
    annotation: Any, value: Any, obj: Any
) -> None:
    assert same(TYPES.from_value(annotation, value), obj)


@pytest.mark.parametrize(
    ("annotation", "obj", "value"),
    [
        (int, UInt(5), UInt(5)),
        (int, Level.HIGH, 2),
        (int, Number(5), 5),
        (float, 3, 3.0),
        (float, Float(0.5), Float(0.5)),
        (float, Real(0.5), 0.5),
        (str, Symbol("a"), Symbol("a")),
        (str, Text("a"), "a"),
        (bytes, bytearray(b"a"), b"a"),
        (bytearray, memoryview(b"a"), b"a"),
        (fields.timestamp, MOMENT, Timestamp.from_datetime(MOMENT)),
        (fields.float_, 3, Float(3.0)),
        (Decimal64, Decimal(2), Decimal64.from_decimal(Decimal(2))),
        (fields.symbol, Text("a"), Symbol("a")),
    ],
)
def test_object_that_is_close_is_sent_as_the_type(annotation: Any, obj: Any, value: Any) -> None:
    assert same(TYPES.to_value(obj, annotation), value)


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (type(None), 1, "expected null, got long 1"),
        (bool, 1, "expected boolean, got long 1"),
        (int, True, "expected an integer, got boolean True"),
        (int, "x", "expected an integer, got string 'x'"),
        (int, Timestamp(5), "expected an integer, got timestamp 5"),
        (int, None, "expected an integer, got null"),
        (float, "x", "expected a floating-point number, got string 'x'"),
        (float, 2**53 + 1, "expected a number that a double can hold, got long 9007199254740993"),
        (str, b"x", "expected string, got binary b'x'"),
        (bytes, "x", "expected binary, got string 'x'"),
        (uuid.UUID, "x", "expected uuid, got string 'x'"),
        (datetime.datetime, 5, "expected timestamp, got long 5"),
        (
            datetime.datetime,
            Timestamp(2**62),
            "expected a timestamp in the years 1 to 9999, got timestamp 46",
        ),
        (Decimal, 1, "expected a decimal, got long 1"),
        (fields.ulong, 5, "expected ulong, got long 5"),
        (fields.ulong, UInt(5), "expected ulong, got uint 5"),
        (fields.symbol, "a", "expected symbol, got string 'a'"),
        (fields.symbol, Described("a", 1), "expected symbol, got a value described by Symbol('a')"),
        (fields.symbol, [1], "expected symbol, got a list"),
        (fields.symbol, {1: 1}, "expected symbol, got a map"),
        (fields.symbol, Array([1]), "expected symbol, got an array"),
        (fields.symbol, ZeroWidthArray(0x40, 9), "expected symbol, got an array without octets"),
        (fields.symbol, object, "expected symbol, got a Python type"),
        (Described, 1, "expected a described value, got long 1"),
        (Colour, "green", "expected one of Colour, got string 'green'"),
        (Colour, 1, "expected string, got long 1"),
        (Level, True, "expected an integer, got boolean True"),
        (Literal["a", 1], "b", "expected one of 'a', 1, got string 'b'"),
        (Literal[1], True, "expected one of 1, got boolean True"),
        (TerminusDurability, UInt(9), "9 is not a valid terminus-durability"),
        (TerminusDurability, "x", "expected terminus-durability, got string 'x'"),
        (TerminusDurability, object, "expected terminus-durability, got a Python type"),
        (Error, Described("a", []), "does not describe amqp:error:list"),
        (Error, Described(0x1D, [1]), "amqp:error:list.condition: error-condition expected, got long"),
    ],
)
def test_value_that_does_not_fit_is_the_peers_fault(annotation: Any, value: Any, text: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        TYPES.from_value(annotation, value)
    assert text in caught.value.description
    assert caught.value.description.startswith("value: ")
    assert (caught.value.condition, caught.value.scope) == ("amqp:invalid-field", "link")


@pytest.mark.parametrize(
    ("annotation", "obj", "text"),
    [
        (type(None), 1, "value: expected None, got int 1"),
        (bool, 1, "expected bool, got int 1"),
        (int, True, "expected int, got bool True"),
        (int, 2**64, "AMQP has no type for the integer 0x10000000000000000"),
        (float, "x", "expected float, got str 'x'"),
        (float, True, "expected float, got bool True"),
        (float, 2**53 + 1, "expected a number that a double can hold, got int 9007199254740993"),
        (float, 10**400, "expected float, got int of 1329 bits"),
        (str, 1, "expected str, got int 1"),
        (str, None, "expected str, got None"),
        (str, "\ud800", "expected text without lone surrogates"),
        (bytes, "x", "expected bytes, got str 'x'"),
        (uuid.UUID, "x", "expected UUID, got str 'x'"),
        (datetime.datetime, 5, "expected datetime, got int 5"),
        (datetime.datetime, MOMENT.replace(tzinfo=None), "has no time zone"),
        (Decimal, 1, "expected Decimal, got int 1"),
        (Decimal, Decimal("1e9999"), "does not fit Decimal128 exactly"),
        (fields.ubyte, 256, "expected ubyte, which is 0 to 255, got int 256"),
        (fields.ubyte, True, "expected ubyte, got bool True"),
        (fields.ubyte, "x", "expected ubyte, got str 'x'"),
        (fields.timestamp, MOMENT.replace(tzinfo=None), "has no time zone"),
        (fields.float_, 1e300, "does not fit a 32-bit float"),
        (fields.char, "xy", "a char is one Unicode character"),
        (fields.symbol, "é", "a symbol is ASCII only"),
        (fields.symbol, 1, "expected symbol, got int 1"),
        (Decimal64, 1, "expected Decimal64, got int 1"),
        (Described, 1, "expected Described, got int 1"),
        (Colour, "red", "expected Colour, got str 'red'"),
        (Literal["a", 1], "b", "expected one of 'a', 1, got str 'b'"),
        (Literal[1], True, "expected one of 1, got bool True"),
        (TerminusDurability, 9, "9 is not a valid terminus-durability"),
        (Error, 1, "1 is not amqp:error:list"),
        (fields.symbol_map, {"é": 1}, "a symbol is ASCII only"),
    ],
)
def test_object_that_does_not_fit_is_ones_own_fault(annotation: Any, obj: Any, text: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        TYPES.to_value(obj, annotation)
    assert text in str(caught.value)


def test_composite_of_the_standard_is_a_type_like_any_other() -> None:
    error = Error(condition="a:b", description="c")
    value = TYPES.to_value(error, Error)
    assert value == Described(0x1D, [Symbol("a:b"), "c"])
    assert TYPES.from_value(Error, value) == error
    assert TYPES.from_value(Error | None, None) is None


def test_composite_of_the_standard_reads_the_types_inside_it() -> None:
    source = Source(address="a", default_outcome=Modified(delivery_failed=True))
    assert TYPES.from_value(Source, TYPES.to_value(source)) == source
