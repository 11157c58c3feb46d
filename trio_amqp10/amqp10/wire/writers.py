"""Encoders of scalars: a writer for each type (1.6.1 to 1.6.21).

``encode`` describes the signature of a writer, and has the writers of values that contain others.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from trio_amqp10.core.errors import LocalProtocolError

from . import codes
from .decimals import Decimal32, Decimal64, Decimal128
from .values import Char, Timestamp

Writer = Callable[[bytearray, Any, int], None]

# Fixed width -----------------------------------------------------------------------------------

_U32: Final = Struct(">I")


def check_class(value: Any, classes: Any, what: str) -> None:
    """Raise ``LocalProtocolError`` if the value has none of ``classes``."""
    if not isinstance(value, classes):
        raise LocalProtocolError(f"{value!r} is not {what}")


def check_integer(value: Any, name: str) -> None:
    """Raise ``LocalProtocolError`` if the value is not an int; a bool is not accepted."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise LocalProtocolError(f"{value!r} is not {name}: it takes an int")


def _integer(
    name: str, code: int, form: str, small_code: int | None = None, zero: int | None = None
) -> Writer:
    """Return a writer of integers, with a precomputed table of short encodings."""
    pack = Struct(">B" + form).pack
    signed = form.islower()
    short: dict[int, bytes] = {}
    if small_code is not None:
        for octet in range(256):
            short[octet - 256 if signed and octet > 127 else octet] = bytes((small_code, octet))
    if zero is not None:
        short[0] = bytes((zero,))

    def write(out: bytearray, value: Any, _depth: int) -> None:
        check_integer(value, name)
        try:
            out += short.get(value) or pack(code, value)
        except struct.error:
            raise LocalProtocolError(f"{value} is out of the range of {name}") from None

    return write


write_ulong: Final = _integer("a ulong", codes.ULONG, "Q", codes.SMALL_ULONG, codes.ULONG0)
_write_signed_long: Final = _integer("a long", codes.LONG, "q", codes.SMALL_LONG)


def write_int(out: bytearray, value: Any, depth: int) -> None:
    """Append a plain int as a long, or as a ulong above 2^63 - 1."""
    if value > 0x7FFF_FFFF_FFFF_FFFF:
        write_ulong(out, value, depth)
    else:
        _write_signed_long(out, value, depth)


def write_null(out: bytearray, _value: Any, _depth: int) -> None:
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
    if value != value:  # Hardware conversion would quiet a signalling NaN, so its bits are moved here.
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
        out += four(size)
    out += data


def four(size: int) -> bytes:
    try:
        return _U32.pack(size)
    except struct.error:
        raise LocalProtocolError(
            f"{size} octets or elements are more than AMQP can count (2^32 - 1)"
        ) from None


def _write_binary(out: bytearray, value: Any, _depth: int) -> None:
    _write_octets(out, codes.BINARY8, codes.BINARY32, binary_octets(value))


def binary_octets(value: Any) -> bytes:
    check_class(value, (bytes, bytearray, memoryview), "bytes")
    return value if isinstance(value, bytes) else bytes(value)


def _write_string(out: bytearray, value: Any, _depth: int) -> None:
    _write_octets(out, codes.STRING8, codes.STRING32, string_octets(value))


def string_octets(value: Any) -> bytes:
    if not isinstance(value, str):
        raise LocalProtocolError(f"{value!r} is not a str")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"a lone surrogate at {error.start} cannot be sent: {value!r}") from None


def write_symbol(out: bytearray, value: Any, _depth: int) -> None:
    _write_octets(out, codes.SYMBOL8, codes.SYMBOL32, symbol_octets(value))


def symbol_octets(value: Any) -> bytes:
    if not isinstance(value, str):
        raise LocalProtocolError(f"{value!r} is not a symbol: it takes a str")
    try:
        return value.encode("ascii")
    except UnicodeEncodeError:
        raise LocalProtocolError(f"a symbol is ASCII only, not {value!r}") from None


SCALARS: Final[dict[str, Writer]] = {
    "boolean": _write_boolean,
    "ubyte": _integer("a ubyte", codes.UBYTE, "B"),
    "ushort": _integer("a ushort", codes.USHORT, "H"),
    "uint": _integer("a uint", codes.UINT, "I", codes.SMALL_UINT, codes.UINT0),
    "ulong": write_ulong,
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
    "symbol": write_symbol,
}
