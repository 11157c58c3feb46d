"""Values to octets, each in its shortest encoding: ``encode(value)`` (1.6).

Knows nothing of frames or of the fields of composites: an object whose class has
``__amqp_encode__(self, out)`` encodes itself, wherever it stands. Such an object that nests further
values and should count towards the depth has ``__amqp_encode_at__(self, out, depth)`` instead.

Every function has the shape ``(out, value, depth)`` and appends a constructor and its octets;
``depth`` is how many more levels may open below here. The functions of ``WRITERS`` check the type
of what they are given, so that they serve declared fields as well.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import Any, Final

from trio_amqp10.errors import LocalProtocolError

from . import codes
from .decimals import Decimal32, Decimal64, Decimal128
from .decode import MAX_DEPTH
from .values import (
    TYPE_NAMES,
    Array,
    Char,
    Described,
    Timestamp,
    ZeroWidthArray,
)

__all__ = ["WRITERS", "Writer", "encode", "encode_into", "write_compound", "write_value"]

Writer = Callable[[bytearray, Any, int], None]


def encode(value: Any) -> bytes:
    """The octets of ``value``.

    Raises:
        LocalProtocolError: AMQP has no such value, or it is nested more than 32 levels deep.
    """
    out = bytearray()
    write_value(out, value, MAX_DEPTH)
    return bytes(out)


def encode_into(out: bytearray, value: Any) -> None:
    """Append the octets of ``value``; after an error ``out`` is as it was.

    Raises:
        LocalProtocolError: as for ``encode``.
    """
    start = len(out)
    try:
        write_value(out, value, MAX_DEPTH)
    except BaseException:
        del out[start:]
        raise


def write_value(out: bytearray, value: Any, depth: int) -> None:
    """Append any value, by its class."""
    writer = _BY_CLASS.get(value.__class__)
    (writer or _find_writer(value))(out, value, depth)


def _find_writer(value: Any) -> Writer:
    """For what is not exactly one of the known classes: what encodes itself, and subclasses."""
    cls = type(value)
    at = getattr(cls, "__amqp_encode_at__", None)
    if at is not None:
        return lambda out, value, depth: at(value, out, depth)
    hook = getattr(cls, "__amqp_encode__", None)
    if hook is not None:
        return lambda out, value, _depth: hook(value, out)
    for base in cls.__mro__:
        if base in _BY_CLASS:
            return _BY_CLASS[base]
    if isinstance(value, Mapping):
        return _write_map
    hint = "; use Decimal128.from_decimal(...)" if cls.__name__ == "Decimal" else ""
    raise LocalProtocolError(f"AMQP has no type for a {cls.__module__}.{cls.__qualname__}{hint}")


# Fixed width -----------------------------------------------------------------------------------

_U32: Final = Struct(">I")


def _integer(
    name: str, code: int, form: str, small_code: int | None = None, zero: int | None = None
) -> Writer:
    """A writer of integers: the table of its shorter encodings is made once, here."""
    pack = Struct(">B" + form).pack
    signed = form.islower()
    short: dict[int, bytes] = {}
    if small_code is not None:
        for octet in range(256):
            short[octet - 256 if signed and octet > 127 else octet] = bytes((small_code, octet))
    if zero is not None:
        short[0] = bytes((zero,))

    def write(out: bytearray, value: Any, _depth: int) -> None:
        if not isinstance(value, int) or value.__class__ is bool:
            raise LocalProtocolError(f"{value!r} is not {name}: it takes an int")
        try:
            out += short.get(value) or pack(code, value)
        except struct.error:
            raise LocalProtocolError(f"{value} is out of the range of {name}") from None

    return write


_write_ulong: Final = _integer("a ulong", codes.ULONG, "Q", codes.SMALL_ULONG, codes.ULONG0)
_write_signed_long: Final = _integer("a long", codes.LONG, "q", codes.SMALL_LONG)


def _write_int(out: bytearray, value: Any, depth: int) -> None:
    """A plain int travels as long, and as ulong above 2^63 - 1."""
    if value > 0x7FFF_FFFF_FFFF_FFFF:
        _write_ulong(out, value, depth)
    else:
        _write_signed_long(out, value, depth)


def _write_null(out: bytearray, _value: Any, _depth: int) -> None:
    out.append(codes.NULL)


def _write_boolean(out: bytearray, value: Any, _depth: int) -> None:
    if value is True:
        out.append(codes.TRUE)
    elif value is False:
        out.append(codes.FALSE)
    else:
        raise LocalProtocolError(f"{value!r} is not a boolean")


_F32: Final = Struct(">f")
_F64: Final = Struct(">d")
_WIDE: Final = Struct(">Q")


def _float_octets(value: float) -> bytes:
    if value != value:  # narrowing in hardware would quiet a signalling NaN: move its bits by hand
        (wide,) = _WIDE.unpack(_F64.pack(value))
        payload = (wide >> 29) & 0x7FFFFF or 0x400000
        return _U32.pack((wide >> 63) << 31 | 0xFF << 23 | payload)
    try:
        return _F32.pack(value)
    except OverflowError:
        raise LocalProtocolError(f"{value!r} does not fit a 32-bit float") from None


def _write_float(out: bytearray, value: Any, _depth: int) -> None:
    out.append(codes.FLOAT)
    out += _float_octets(_real(value))


def _write_double(out: bytearray, value: Any, _depth: int) -> None:
    out.append(codes.DOUBLE)
    out += _F64.pack(_real(value))


def _real(value: Any) -> float:
    if isinstance(value, float):
        return value
    raise LocalProtocolError(f"{value!r} is not a float")


def _decimal(cls: type[Decimal32 | Decimal64 | Decimal128], code: int) -> Writer:
    def write(out: bytearray, value: Any, _depth: int) -> None:
        if not isinstance(value, cls):
            raise LocalProtocolError(
                f"{value!r} is not a {cls.__name__}: use {cls.__name__}.from_decimal(...)"
            )
        out.append(code)
        out += value.bits

    return write


def _write_char(out: bytearray, value: Any, _depth: int) -> None:
    if not isinstance(value, str):
        raise LocalProtocolError(f"{value!r} is not a char")
    out.append(codes.CHAR)
    out += _U32.pack(ord(Char(value)))


_write_milliseconds: Final = _integer("a timestamp", codes.TIMESTAMP, "q")


def _write_timestamp(out: bytearray, value: Any, depth: int) -> None:
    if isinstance(value, datetime.datetime):
        value = Timestamp.from_datetime(value)
    _write_milliseconds(out, value, depth)


def _write_uuid(out: bytearray, value: Any, _depth: int) -> None:
    if not isinstance(value, uuid.UUID):
        raise LocalProtocolError(f"{value!r} is not a uuid.UUID")
    out.append(codes.UUID)
    out += value.bytes


# Variable width --------------------------------------------------------------------------------


def _write_octets(out: bytearray, code8: int, code32: int, data: bytes) -> None:
    size = len(data)
    if size < 256:
        out.append(code8)
        out.append(size)
    else:
        out.append(code32)
        out += _four(size)
    out += data


def _four(size: int) -> bytes:
    try:
        return _U32.pack(size)
    except struct.error:
        raise LocalProtocolError(
            f"{size} octets or elements are more than AMQP can count (2^32 - 1)"
        ) from None


def _write_binary(out: bytearray, value: Any, _depth: int) -> None:
    _write_octets(out, codes.BINARY8, codes.BINARY32, _binary_octets(value))


def _binary_octets(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise LocalProtocolError(f"{value!r} is not bytes")


def _write_string(out: bytearray, value: Any, _depth: int) -> None:
    _write_octets(out, codes.STRING8, codes.STRING32, _string_octets(value))


def _string_octets(value: Any) -> bytes:
    if not isinstance(value, str):
        raise LocalProtocolError(f"{value!r} is not a str")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"a lone surrogate at {error.start} cannot be sent: {value!r}") from None


def _write_symbol(out: bytearray, value: Any, _depth: int) -> None:
    _write_octets(out, codes.SYMBOL8, codes.SYMBOL32, _symbol_octets(value))


def _symbol_octets(value: Any) -> bytes:
    if not isinstance(value, str):
        raise LocalProtocolError(f"{value!r} is not a symbol: it takes a str")
    try:
        return value.encode("ascii")
    except UnicodeEncodeError:
        raise LocalProtocolError(f"a symbol is ASCII only, not {value!r}") from None


# Compounds, arrays and described values ----------------------------------------------------------


def below(depth: int, levels: int = 1) -> int:
    """What is left of ``depth`` after ``levels`` more."""
    if depth < levels:
        raise LocalProtocolError(f"values are nested more than {MAX_DEPTH} levels deep")
    return depth - levels


def write_compound(out: bytearray, code8: int, code32: int, count: int, body: bytes | bytearray) -> None:
    """Append constructor, size and count, then ``body``: in the short form where both fit an octet."""
    size = len(body) + 1
    if size < 256 and count < 256:
        out += bytes((code8, size, count))
    else:
        out.append(code32)
        out += _four(size + 3)
        out += _four(count)
    out += body


def _write_list(out: bytearray, value: Any, depth: int) -> None:
    if not isinstance(value, (list, tuple)):
        raise LocalProtocolError(f"{value!r} is not a list")
    depth = below(depth)
    if not value:
        out.append(codes.LIST0)
        return
    write_compound(out, codes.LIST8, codes.LIST32, len(value), _list_body(value, depth))


def _list_body(value: Iterable[Any], depth: int) -> bytearray:
    body = bytearray()
    for item in value:
        write_value(body, item, depth)
    return body


def _write_map(out: bytearray, value: Any, depth: int) -> None:
    if not isinstance(value, Mapping):
        raise LocalProtocolError(f"{value!r} is not a mapping")
    write_compound(out, codes.MAP8, codes.MAP32, 2 * len(value), _map_body(value, below(depth)))


def _map_body(value: Mapping[Any, Any], depth: int) -> bytearray:
    body = bytearray()
    for key, each in value.items():
        write_value(body, key, depth)
        write_value(body, each, depth)
    return body


def _write_described(out: bytearray, value: Any, depth: int) -> None:
    depth = below(depth)
    out.append(codes.DESCRIBED)
    _write_descriptor(out, value.descriptor, depth)
    write_value(out, value.value, depth)


def _write_descriptor(out: bytearray, value: Any, depth: int) -> None:
    """A plain str or int is meant as the symbol or ulong that the standard allows here (1.2)."""
    if value.__class__ is str:
        _write_symbol(out, value, depth)
    elif value.__class__ is int:
        _write_ulong(out, value, depth)
    elif value is None or value.__class__ in _PRIMITIVE:
        write_value(out, value, depth)
    else:
        raise LocalProtocolError(f"a descriptor is a Symbol or a ULong, not {value!r}")


def _write_array(out: bytearray, value: Any, depth: int) -> None:
    if value.__class__ is ZeroWidthArray:
        return _write_zero_width_array(out, value, depth)
    if not isinstance(value, Array):
        raise LocalProtocolError(f"{value!r} is not an Array")
    array: Array[Any] = value
    depth = below(depth, 1 + len(array.descriptors))
    body = bytearray()
    for descriptor in array.descriptors:
        body.append(codes.DESCRIBED)
        _write_descriptor(body, descriptor, depth)
    try:
        body += _ELEMENTS[array.type](array, depth)
    except LocalProtocolError as error:
        raise LocalProtocolError(f"an array of {array.type}: {error}") from None
    write_compound(out, codes.ARRAY8, codes.ARRAY32, len(array), body)
    return None


def _write_zero_width_array(out: bytearray, value: ZeroWidthArray, depth: int) -> None:
    depth = below(depth, 1 + len(value.descriptors))
    body = bytearray()
    for descriptor in value.descriptors:
        body.append(codes.DESCRIBED)
        _write_descriptor(body, descriptor, depth)
    body.append(value.code)
    write_compound(out, codes.ARRAY8, codes.ARRAY32, value.count, body)


# The elements of an array share one constructor, which comes first: the shortest that fits them all.

Elements = Callable[[list[Any], int], bytes]


def _fixed(name: str, code: int) -> Elements:
    """Elements of one width: what the writer of a single one appends, less its constructor."""
    writer = WRITERS[name]
    width = codes.ENCODINGS[code].width

    def elements(items: list[Any], depth: int) -> bytes:
        out = bytearray((code,))
        one = bytearray()
        for item in items:
            one.clear()
            writer(one, item, depth)
            out += one[-width:]
        return bytes(out)

    return elements


def _integers(
    name: str, code: int, form: str, small_code: int | None = None, small_form: str = ""
) -> Elements:
    def elements(items: list[Any], _depth: int) -> bytes:
        for item in items:
            if not isinstance(item, int) or item.__class__ is bool:
                raise LocalProtocolError(f"{item!r} is not {name}: it takes an int")
        count = len(items)
        if small_code is not None:
            try:
                return struct.pack(f">B{count}{small_form}", small_code, *items)
            except struct.error:
                pass
        try:
            return struct.pack(f">B{count}{form}", code, *items)
        except struct.error:
            raise LocalProtocolError(f"an element is out of the range of {name}") from None

    return elements


def _variable(code8: int, code32: int, octets: Callable[[Any], bytes]) -> Elements:
    def elements(items: list[Any], _depth: int) -> bytes:
        chunks = [octets(item) for item in items]
        if all(len(chunk) < 256 for chunk in chunks):
            return bytes((code8,)) + b"".join([bytes((len(chunk),)) + chunk for chunk in chunks])
        return bytes((code32,)) + b"".join([_four(len(chunk)) + chunk for chunk in chunks])

    return elements


def _compounds(name: str, code8: int, code32: int) -> Elements:
    """Lists, maps or arrays in an array: all short, or all long, and never the empty list's own code."""
    writer = WRITERS[name]

    def elements(items: list[Any], depth: int) -> bytes:
        chunks: list[tuple[int, bytes]] = []
        for item in items:
            one = bytearray()
            writer(one, item, depth)
            if one[0] == code32:
                chunks.append((_U32.unpack_from(one, 5)[0], bytes(one[9:])))
            else:
                chunks.append((one[2] if len(one) > 1 else 0, bytes(one[3:])))
        short = all(count < 256 and len(body) < 255 for count, body in chunks)
        out = bytearray((code8 if short else code32,))
        for count, body in chunks:
            if short:
                out += bytes((len(body) + 1, count))
            else:
                out += _four(len(body) + 4) + _four(count)
            out += body
        return bytes(out)

    return elements


WRITERS: Final[dict[str, Writer]] = {
    "boolean": _write_boolean,
    "ubyte": _integer("a ubyte", codes.UBYTE, "B"),
    "ushort": _integer("a ushort", codes.USHORT, "H"),
    "uint": _integer("a uint", codes.UINT, "I", codes.SMALL_UINT, codes.UINT0),
    "ulong": _write_ulong,
    "byte": _integer("a byte", codes.BYTE, "b"),
    "short": _integer("a short", codes.SHORT, "h"),
    "int": _integer("an int", codes.INT, "i", codes.SMALL_INT),
    "long": _write_signed_long,
    "float": _write_float,
    "double": _write_double,
    "decimal32": _decimal(Decimal32, codes.DECIMAL32),
    "decimal64": _decimal(Decimal64, codes.DECIMAL64),
    "decimal128": _decimal(Decimal128, codes.DECIMAL128),
    "char": _write_char,
    "timestamp": _write_timestamp,
    "uuid": _write_uuid,
    "binary": _write_binary,
    "string": _write_string,
    "symbol": _write_symbol,
    "list": _write_list,
    "map": _write_map,
    "array": _write_array,
}
"""The writer of each type of the standard, by name; each refuses values of another type."""

_ELEMENTS: Final[dict[str, Elements]] = {
    "boolean": lambda items, depth: bytes((codes.BOOLEAN,)) + bytes([_bit(item) for item in items]),
    "ubyte": _integers("a ubyte", codes.UBYTE, "B"),
    "ushort": _integers("a ushort", codes.USHORT, "H"),
    "uint": _integers("a uint", codes.UINT, "I", codes.SMALL_UINT, "B"),
    "ulong": _integers("a ulong", codes.ULONG, "Q", codes.SMALL_ULONG, "B"),
    "byte": _integers("a byte", codes.BYTE, "b"),
    "short": _integers("a short", codes.SHORT, "h"),
    "int": _integers("an int", codes.INT, "i", codes.SMALL_INT, "b"),
    "long": _integers("a long", codes.LONG, "q", codes.SMALL_LONG, "b"),
    "float": _fixed("float", codes.FLOAT),
    "double": _fixed("double", codes.DOUBLE),
    "decimal32": _fixed("decimal32", codes.DECIMAL32),
    "decimal64": _fixed("decimal64", codes.DECIMAL64),
    "decimal128": _fixed("decimal128", codes.DECIMAL128),
    "char": _fixed("char", codes.CHAR),
    "timestamp": _fixed("timestamp", codes.TIMESTAMP),
    "uuid": _fixed("uuid", codes.UUID),
    "binary": _variable(codes.BINARY8, codes.BINARY32, _binary_octets),
    "string": _variable(codes.STRING8, codes.STRING32, _string_octets),
    "symbol": _variable(codes.SYMBOL8, codes.SYMBOL32, _symbol_octets),
    "list": _compounds("list", codes.LIST8, codes.LIST32),
    "map": _compounds("map", codes.MAP8, codes.MAP32),
    "array": _compounds("array", codes.ARRAY8, codes.ARRAY32),
}


def _bit(value: Any) -> int:
    if value.__class__ is not bool:
        raise LocalProtocolError(f"{value!r} is not a boolean")
    return int(value)


_BY_CLASS: Final[dict[type, Writer]] = {cls: WRITERS[name] for cls, name in TYPE_NAMES.items()} | {
    type(None): _write_null,
    int: _write_int,
    tuple: _write_list,
    bytearray: _write_binary,
    memoryview: _write_binary,
    datetime.datetime: _write_timestamp,
    ZeroWidthArray: _write_array,
    Described: _write_described,
}

_PRIMITIVE: Final = frozenset(TYPE_NAMES) - {list, dict, Array}
