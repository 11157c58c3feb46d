"""Decoders of scalars: a reader for each constructor (1.6.1 to 1.6.21).

``decode`` describes the signature of a reader, and has the readers of values that contain others.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from . import codes
from .decimals import Decimal32, Decimal64, Decimal128
from .decode_budget import Budget, malformed
from .values import Byte, Char, Float, Int, Short, Symbol, Timestamp, UByte, UInt, ULong, UShort

Reader = Callable[[bytes, int, Budget], tuple[Any, int]]

# Fixed width -----------------------------------------------------------------------------------

_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")
_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")
_F32: Final = Struct(">f")
_F64: Final = Struct(">d")

# Values of one octet are created once, because they are the most frequent and few.
_SIGNED: Final = [octet - 256 if octet > 127 else octet for octet in range(256)]
_UBYTES: Final = [UByte(octet) for octet in range(256)]
_UINTS: Final = [UInt(octet) for octet in range(256)]
_ULONGS: Final = [ULong(octet) for octet in range(256)]
_BYTES: Final = [Byte(octet) for octet in _SIGNED]
_INTS: Final = [Int(octet) for octet in _SIGNED]

# The range checks of the classes are skipped here: the width guarantees the range.
_new_int: Final = int.__new__
_new_str: Final = str.__new__
_new_float: Final = float.__new__


def _null(_buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return None, pos


def _true(_buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return True, pos


def _false(_buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return False, pos


def _boolean(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    octet = buf[pos]
    if octet > 1:
        raise malformed(f"{octet:#04x} is not the octet of a boolean")
    return octet == 1, pos + 1


def _ubyte(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _UBYTES[buf[pos]], pos + 1


def _ushort(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _new_int(UShort, _U16.unpack_from(buf, pos)[0]), pos + 2


def _uint(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _new_int(UInt, _U32.unpack_from(buf, pos)[0]), pos + 4


def _small_uint(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _UINTS[buf[pos]], pos + 1


def _uint0(_buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _UINTS[0], pos


def _ulong(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _new_int(ULong, _U64.unpack_from(buf, pos)[0]), pos + 8


def _small_ulong(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _ULONGS[buf[pos]], pos + 1


def _ulong0(_buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _ULONGS[0], pos


def _byte(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _BYTES[buf[pos]], pos + 1


def _short(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _new_int(Short, _I16.unpack_from(buf, pos)[0]), pos + 2


def _int(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _new_int(Int, _I32.unpack_from(buf, pos)[0]), pos + 4


def _small_int(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _INTS[buf[pos]], pos + 1


def _long(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _I64.unpack_from(buf, pos)[0], pos + 8


def _small_long(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _SIGNED[buf[pos]], pos + 1


def _timestamp(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _new_int(Timestamp, _I64.unpack_from(buf, pos)[0]), pos + 8


def _float(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    value = _F32.unpack_from(buf, pos)[0]
    if value != value:  # Hardware conversion would quiet a signalling NaN, so its bits are moved here.
        bits = _U32.unpack_from(buf, pos)[0]
        wide = (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
        value = _F64.unpack(_U64.pack(wide))[0]
    return _new_float(Float, value), pos + 4


def _double(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _F64.unpack_from(buf, pos)[0], pos + 8


def _decimal32(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return Decimal32(_octets(buf, pos, pos + 4)), pos + 4


def _decimal64(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return Decimal64(_octets(buf, pos, pos + 8)), pos + 8


def _decimal128(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return Decimal128(_octets(buf, pos, pos + 16)), pos + 16


def _char(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    point = _U32.unpack_from(buf, pos)[0]
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise malformed(f"{point:#x} is not a Unicode character")
    return _new_str(Char, chr(point)), pos + 4


def _uuid(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return uuid.UUID(bytes=_octets(buf, pos, pos + 16)), pos + 16


# Variable width --------------------------------------------------------------------------------


def _octets(buf: bytes, pos: int, end: int) -> bytes:
    """Return a slice; raise if octets are missing."""
    if end > len(buf):
        raise malformed("the octets end inside a value")
    return buf[pos:end]


def _binary8(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    end = pos + 1 + buf[pos]
    return _octets(buf, pos + 1, end), end


def _binary32(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return _octets(buf, pos + 4, end), end


def _string8(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    end = pos + 1 + buf[pos]
    return _octets(buf, pos + 1, end).decode(), end


def _string32(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return _octets(buf, pos + 4, end).decode(), end


def _symbol8(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    end = pos + 1 + buf[pos]
    return _new_str(Symbol, _octets(buf, pos + 1, end), "ascii"), end


def _symbol32(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return _new_str(Symbol, _octets(buf, pos + 4, end), "ascii"), end


SCALARS: Final[dict[int, Reader]] = {
    codes.NULL: _null,
    codes.TRUE: _true,
    codes.FALSE: _false,
    codes.BOOLEAN: _boolean,
    codes.UBYTE: _ubyte,
    codes.USHORT: _ushort,
    codes.UINT: _uint,
    codes.SMALL_UINT: _small_uint,
    codes.UINT0: _uint0,
    codes.ULONG: _ulong,
    codes.SMALL_ULONG: _small_ulong,
    codes.ULONG0: _ulong0,
    codes.BYTE: _byte,
    codes.SHORT: _short,
    codes.INT: _int,
    codes.SMALL_INT: _small_int,
    codes.LONG: _long,
    codes.SMALL_LONG: _small_long,
    codes.FLOAT: _float,
    codes.DOUBLE: _double,
    codes.DECIMAL32: _decimal32,
    codes.DECIMAL64: _decimal64,
    codes.DECIMAL128: _decimal128,
    codes.CHAR: _char,
    codes.TIMESTAMP: _timestamp,
    codes.UUID: _uuid,
    codes.BINARY8: _binary8,
    codes.BINARY32: _binary32,
    codes.STRING8: _string8,
    codes.STRING32: _string32,
    codes.SYMBOL8: _symbol8,
    codes.SYMBOL32: _symbol32,
}
