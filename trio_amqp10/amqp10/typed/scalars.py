"""Codecs of scalars: Python's own classes, and the standard's types by name (1.6).

A class of Python accepts every AMQP type of such a value: an ``int`` may arrive as any of the nine integer
types, because peers in other languages choose by other rules. A name of the standard (``ulong``, or the class
``ULong``) accepts that type alone.

Knows nothing of lists, maps or classes with fields.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec import TYPES
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.decode_budget import MAX_DEPTH, Budget
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import (
    TYPE_NAMES,
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

from .codec import CLOSED, EXACT, MAPS, Codec, Misfit, wrong, wrong_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.wire.fields import FieldType

_INTEGERS: Final = frozenset({int, UByte, UShort, UInt, ULong, Byte, Short, Int})
_FLOATS: Final = frozenset({float, Float})
_STRINGS: Final = frozenset({str, Symbol, Char})
_DECIMALS: Final = frozenset({Decimal32, Decimal64, Decimal128})
_OCTETS: Final[tuple[Any, ...]] = (bytes, bytearray, memoryview)

_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1

# Python's own classes ----------------------------------------------------------------------------


def _read_null(value: Any) -> None:
    if value is not None:
        raise wrong("null", value)


def _write_null(obj: Any) -> None:
    if obj is not None:
        raise wrong_object("None", obj)


def _read_boolean(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise wrong("boolean", value)


def _write_boolean(obj: Any) -> Any:
    if obj is True or obj is False:
        return obj
    raise wrong_object("bool", obj)


def _read_int(value: Any) -> Any:
    cls = value.__class__
    if cls is int:
        return value
    if cls in _INTEGERS:
        return int(value)
    raise wrong("an integer", value)


def _write_int(obj: Any) -> Any:
    if not isinstance(obj, int) or obj.__class__ is bool:
        raise wrong_object("int", obj)
    if not _LEAST <= obj <= _MOST:
        raise Misfit(f"AMQP has no type for the integer {obj:#x}")
    return obj if obj.__class__ in _INTEGERS else int(obj)


def _read_float(value: Any) -> Any:
    cls = value.__class__
    if cls is float:
        return value
    if cls is Float:
        return float(value)
    if cls in _INTEGERS:  # JavaScript has one type of number, and sends 1.0 as an integer
        return _exact_float(value, wrong)
    raise wrong("a floating-point number", value)


def _write_float(obj: Any) -> Any:
    if isinstance(obj, float):
        return obj if obj.__class__ in _FLOATS else float(obj)
    if isinstance(obj, int) and obj.__class__ is not bool:
        return _exact_float(obj, wrong_object)
    raise wrong_object("float", obj)


def _exact_float(number: int, fault: Callable[[str, Any], Misfit]) -> float:
    try:
        value = float(number)
    except OverflowError:
        raise fault("float", number) from None
    if value != number:  # a conversion must not lose digits
        raise fault("a number that a double can hold", number)
    return value


def _read_string(value: Any) -> Any:
    cls = value.__class__
    if cls is str:
        return value
    if cls in _STRINGS:
        return str(value)
    raise wrong("string", value)


def _write_string(obj: Any) -> Any:
    if not isinstance(obj, str):
        raise wrong_object("str", obj)
    if not obj.isascii():
        try:
            obj.encode()
        except UnicodeEncodeError:
            raise wrong_object("text without lone surrogates", obj) from None
    return obj if obj.__class__ in _STRINGS else str(obj)


def _read_binary(value: Any) -> Any:
    if value.__class__ is bytes:
        return value
    raise wrong("binary", value)


def _write_binary(obj: Any) -> Any:
    if isinstance(obj, _OCTETS):
        return bytes(obj)
    raise wrong_object("bytes", obj)


def _read_uuid(value: Any) -> Any:
    if value.__class__ is uuid.UUID:
        return value
    raise wrong("uuid", value)


def _write_uuid(obj: Any) -> Any:
    if isinstance(obj, uuid.UUID):
        return obj
    raise wrong_object("UUID", obj)


def _read_datetime(value: Any) -> Any:
    if value.__class__ is not Timestamp:
        raise wrong("timestamp", value)
    try:
        return value.to_datetime()
    except OverflowError:
        raise wrong("a timestamp in the years 1 to 9999", value) from None


def _write_datetime(obj: Any) -> Any:
    if not isinstance(obj, datetime.datetime):
        raise wrong_object("datetime", obj)
    return _made(Timestamp.from_datetime, obj)


def _read_decimal(value: Any) -> Any:
    if value.__class__ in _DECIMALS:
        return value.to_decimal()
    raise wrong("a decimal", value)


def _write_decimal(obj: Any) -> Any:
    if not isinstance(obj, decimal.Decimal):
        raise wrong_object("Decimal", obj)
    return _made(Decimal128.from_decimal, obj)


def _made(make: Callable[[Any], Any], obj: Any) -> Any:
    """Make a value; an error of its class becomes a Misfit."""
    try:
        return make(obj)
    except LocalProtocolError as error:
        raise Misfit(str(error)) from None


def _one(cls: type) -> frozenset[type]:
    return frozenset({cls})


NULL: Final = Codec("null", _read_null, _write_null, _one(type(None)), nullable=True)

PLAIN_CODECS: Final[dict[Any, Codec]] = {
    None: NULL,
    type(None): NULL,
    bool: Codec("boolean", _read_boolean, _write_boolean, _one(bool), wire="boolean"),
    int: Codec("an integer", _read_int, _write_int, _INTEGERS, wire="long"),
    float: Codec("a floating-point number", _read_float, _write_float, _FLOATS, wire="double"),
    str: Codec("string", _read_string, _write_string, _STRINGS, wire="string"),
    bytes: Codec("binary", _read_binary, _write_binary, _one(bytes), wire="binary"),
    uuid.UUID: Codec("uuid", _read_uuid, _write_uuid, _one(uuid.UUID), wire="uuid"),
    datetime.datetime: Codec("timestamp", _read_datetime, _write_datetime, _one(Timestamp), wire="timestamp"),
    decimal.Decimal: Codec("a decimal", _read_decimal, _write_decimal, _DECIMALS, wire="decimal128"),
}
PLAIN_CODECS[bytearray] = PLAIN_CODECS[memoryview] = PLAIN_CODECS[bytes]
"""The codecs of Python's classes, by annotation."""

# The standard's types ------------------------------------------------------------------------------

_CLASSES: Final = {name: cls for cls, name in TYPE_NAMES.items() if name not in ("list", "map", "array")}


def exact(name: str, *, plain: bool) -> Codec:
    """Return the codec of exactly one type of the standard.

    ``plain``: read it as an int, float or str; otherwise as the class of that type.
    """
    cls: Any = _CLASSES[name]
    bare: Any = next((each for each in (int, float, str) if issubclass(cls, each) and cls is not bool), None)
    strip: Any = bare if plain and cls is not bare else None

    def read(value: Any) -> Any:
        if value.__class__ is cls:
            return value if strip is None else strip(value)
        raise wrong(name, value)

    if cls is bool or bare is None:
        write = PLAIN_CODECS[cls].write if cls in PLAIN_CODECS else _instance_writer(cls)
    elif bare is int:
        write = _integer_writer(name, cls)
    elif bare is float:
        write = _float_writer(cls)
    else:
        write = _text_writer(name, cls)
    return Codec(name, read, write, _one(cls), rank=EXACT, wire=name)


def _instance_writer(cls: type) -> Callable[[Any], Any]:
    def write(obj: Any) -> Any:
        if obj.__class__ is cls:
            return obj
        if isinstance(obj, decimal.Decimal):
            return _made(cls.from_decimal, obj)  # type: ignore[attr-defined]
        raise wrong_object(cls.__name__, obj)

    return write


def _integer_writer(name: str, cls: Any) -> Callable[[Any], Any]:
    least, most = (-(2**63), 2**63 - 1) if cls is int else (cls.MIN, cls.MAX)
    new = int.__new__

    def write(obj: Any) -> Any:
        if cls is Timestamp and isinstance(obj, datetime.datetime):
            return _made(Timestamp.from_datetime, obj)
        if not isinstance(obj, int) or obj.__class__ is bool:
            raise wrong_object(name, obj)
        if least <= obj <= most:
            return new(cls, obj)
        raise wrong_object(f"{name}, which is {least} to {most}", obj)

    return write


def _float_writer(cls: Any) -> Callable[[Any], Any]:
    return lambda obj: _made(cls, _write_float(obj))


def _text_writer(name: str, cls: Any) -> Callable[[Any], Any]:
    def write(obj: Any) -> Any:
        if isinstance(obj, str):
            return _made(cls, _write_string(obj))
        raise wrong_object(name, obj)

    return write


def value_class(cls: type) -> Codec | None:
    """Return the codec of a class of ``wire.values``, whose objects stay as they are.

    None for any other class.
    """
    if cls is Described:
        return Codec("a described value", _described, _write_described, _one(Described), rank=EXACT)
    name = TYPE_NAMES.get(cls)
    return exact(name, plain=False) if name in _CLASSES else None


def _described(value: Any) -> Any:
    if value.__class__ is Described:
        return value
    raise wrong("a described value", value)


def _write_described(obj: Any) -> Any:
    if obj.__class__ is Described:
        return obj
    raise wrong_object("Described", obj)


_READ_AS: Final[dict[str, frozenset[type]]] = {name: _one(cls) for name, cls in _CLASSES.items()} | {
    "list": _one(list),
    "map": MAPS,
    "array": frozenset({Array, ZeroWidthArray}),
    "null": _one(type(None)),
}


def field_codec(field_type: FieldType, keys: frozenset[Any]) -> Codec:
    """Return the codec of a declared type of ``wire.fields``.

    For example a restricted choice, or a composite. Its readers and its writer know octets only, so a value
    is encoded and decoded. That costs some microseconds, and is exact for every declaration.
    """
    expects = field_type.requires or field_type.name

    def read(value: Any) -> Any:
        try:
            octets = encode(value)
        except LocalProtocolError:
            raise wrong(expects, value) from None
        reader = field_type.readers.get(octets[0])
        if reader is None:
            raise wrong(expects, value)
        try:
            return reader(octets, 1, Budget(types=TYPES))[0]
        except RemoteProtocolError as error:
            raise Misfit(error.description) from None

    def write(obj: Any) -> Any:
        out = bytearray()
        try:
            field_type.write(out, obj, MAX_DEPTH)
        except LocalProtocolError as error:
            raise Misfit(str(error)) from None
        return decode(bytes(out))[0]

    kinds: set[type] = set()
    for code in field_type.readers:
        row = codes.ENCODINGS.get(code)
        if row is not None:
            kinds |= _READ_AS[row.type]
    if codes.DESCRIBED in field_type.readers:
        kinds.add(Described)
    return Codec(expects, read, write, frozenset(kinds), keys=keys, rank=CLOSED)
