"""Octets to values: ``decode(buf, pos) -> (value, pos)``, one small function per constructor (1.6).

Knows nothing of frames or composites: a described value becomes ``Described`` unless the budget
carries types that know its descriptor.

Every function has the shape ``(buf, pos, budget) -> (value, pos)`` where ``pos`` is the octet after
the constructor. A read past the end shows as IndexError or struct.error and is turned into a
RemoteProtocolError in one place, ``faults``, which costs nothing while all is well; only slices are
checked by hand, because a slice that is too long silently shortens. A value inside a compound may
run past the compound's end: the check at that end finds it, so each octet is still read once.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from struct import Struct
from typing import Any, Final, Protocol

from trio_amqp10.errors import Condition, RemoteProtocolError

from . import codes
from .decimals import Decimal32, Decimal64, Decimal128
from .values import (
    Array,
    Byte,
    Char,
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

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "TABLE",
    "Budget",
    "Reader",
    "Types",
    "decode",
    "malformed",
    "read_fault",
    "spend",
]

MAX_NODES: Final = 65_536
"""Values that one call makes before it refuses: a node can cost 64 times its octets in memory."""

MAX_DEPTH: Final = 32
"""Lists, maps, arrays and described values inside each other; one octet can open a level."""


class Types(Protocol):
    """What knows some descriptors: see ``composite.Registry``."""

    def decode_described(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int] | None:
        """The value whose descriptor is at ``pos``, or None for a descriptor that is not known."""


class Budget:
    """What decoding may still cost; charged cumulatively, over several calls if it is passed on.

    A budget that was exceeded is spent: its depth is not restored by an error.

    Args:
        nodes: how many values may be made.
        depth: how many levels of compound and described values.
        types: what to make of described values; without it they are ``Described``.
        allow_duplicate_keys: let the last of equal map keys win, where the standard calls such a map
            invalid (1.6.23). Keys that are equal in Python only (1 and 1.0) stay an error, since one
            dict cannot hold both and nothing should be lost in silence.
    """

    __slots__ = ("allow_duplicate_keys", "depth", "nodes", "types")

    def __init__(
        self,
        nodes: int = MAX_NODES,
        depth: int = MAX_DEPTH,
        *,
        types: Types | None = None,
        allow_duplicate_keys: bool = False,
    ) -> None:
        self.nodes = nodes
        self.depth = depth
        self.types = types
        self.allow_duplicate_keys = allow_duplicate_keys


Reader = Callable[[bytes, int, Budget], tuple[Any, int]]


def decode(buf: bytes, pos: int = 0, budget: Budget | None = None) -> tuple[Any, int]:
    """The value whose constructor is at ``pos``, and the position after it.

    Raises:
        RemoteProtocolError: ``amqp:decode-error`` for octets that are no value, among them a nesting
            deeper than the budget; ``amqp:resource-limit-exceeded`` for more nodes than the budget.
    """
    if budget is None:
        budget = Budget()
    try:
        spend(budget, 1)
        return TABLE[buf[pos]](buf, pos + 1, budget)
    except (IndexError, ValueError, struct.error) as error:
        raise read_fault(error) from None


def read_fault(error: Exception) -> RemoteProtocolError:
    """What a reader's own exception means: text in the wrong encoding, or an end too early."""
    if isinstance(error, UnicodeDecodeError):
        what = "string" if error.encoding == "utf-8" else "symbol"
        return RemoteProtocolError(f"octets of a {what} are not {error.encoding}: {error.reason}")
    return RemoteProtocolError("the octets end inside a value")


def malformed(text: str) -> RemoteProtocolError:
    """A decode-error (2.8.15)."""
    return RemoteProtocolError(text, Condition.DECODE_ERROR)


def spend(budget: Budget, nodes: int) -> None:
    """Charge ``nodes``.

    Raises:
        RemoteProtocolError: ``amqp:resource-limit-exceeded``.
    """
    budget.nodes -= nodes
    if budget.nodes < 0:
        raise RemoteProtocolError("more values than this may hold", Condition.RESOURCE_LIMIT_EXCEEDED)


def _enter(budget: Budget, nodes: int) -> None:
    """Open one level that holds ``nodes`` values."""
    budget.depth -= 1
    if budget.depth < 0:
        raise malformed("values are nested too deeply")
    spend(budget, nodes)


# Fixed width -----------------------------------------------------------------------------------

_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")
_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")
_F32: Final = Struct(">f")
_F64: Final = Struct(">d")

# Values of one octet are made once: they are the most frequent, and the cheapest to keep.
_SIGNED: Final = [octet - 256 if octet > 127 else octet for octet in range(256)]
_UBYTES: Final = [UByte(octet) for octet in range(256)]
_UINTS: Final = [UInt(octet) for octet in range(256)]
_ULONGS: Final = [ULong(octet) for octet in range(256)]
_BYTES: Final = [Byte(octet) for octet in _SIGNED]
_INTS: Final = [Int(octet) for octet in _SIGNED]

# The classes check ranges for people; what comes out of a fixed width is in range by its width.
_new_int: Final = int.__new__
_new_str: Final = str.__new__
_new_float: Final = float.__new__


def _unknown(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    raise malformed(f"{buf[pos - 1]:#04x} constructs no type")


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
    if value != value:  # widening in hardware would quiet a signalling NaN: move its bits by hand
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
    """A slice that may not be short."""
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
    return str(_octets(buf, pos + 1, end), "utf-8"), end


def _string32(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return str(_octets(buf, pos + 4, end), "utf-8"), end


def _symbol8(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    end = pos + 1 + buf[pos]
    return _new_str(Symbol, _octets(buf, pos + 1, end), "ascii"), end


def _symbol32(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return _new_str(Symbol, _octets(buf, pos + 4, end), "ascii"), end


# Compounds, arrays and described values ----------------------------------------------------------


def check_compound(buf: bytes, pos: int, end: int, count: int) -> None:
    """Refuse a size or count that the octets cannot hold, before anything is made (row by row of 1.6.22)."""
    if end > len(buf):
        raise malformed("the octets end inside a value")
    if count > end - pos:
        raise malformed(f"{count} elements in {max(end - pos, 0)} octets")


def size_fault(pos: int, end: int) -> RemoteProtocolError:
    """The elements ended elsewhere than their size says."""
    return malformed(f"elements end {abs(end - pos)} octets {'before' if pos < end else 'after'} their size")


def _list0(_buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return [], pos


def _list8(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    return _items(buf, pos + 2, pos + 1 + buf[pos], buf[pos + 1], budget)


def _list32(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return _items(buf, pos + 8, end, _U32.unpack_from(buf, pos + 4)[0], budget)


def _items(buf: bytes, pos: int, end: int, count: int, budget: Budget) -> tuple[Any, int]:
    check_compound(buf, pos, end, count)
    _enter(budget, count)
    table = TABLE
    items: list[Any] = []
    for _ in range(count):
        value, pos = table[buf[pos]](buf, pos + 1, budget)
        items.append(value)
    if pos != end:
        raise size_fault(pos, end)
    budget.depth += 1
    return items, end


def _map8(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    return _pairs(buf, pos + 2, pos + 1 + buf[pos], buf[pos + 1], budget)


def _map32(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return _pairs(buf, pos + 8, end, _U32.unpack_from(buf, pos + 4)[0], budget)


def _pairs(buf: bytes, pos: int, end: int, count: int, budget: Budget) -> tuple[Any, int]:
    check_compound(buf, pos, end, count)
    if count & 1:
        raise malformed(f"a map of {count} elements has a key without a value")
    _enter(budget, count)
    table = TABLE
    pairs: dict[Any, Any] = {}
    kinds: dict[Any, type] = {}
    for _ in range(count >> 1):
        key, pos = table[buf[pos]](buf, pos + 1, budget)
        value, pos = table[buf[pos]](buf, pos + 1, budget)
        try:
            known = key in pairs
        except TypeError:
            raise malformed(f"a {key.__class__.__name__} as a map key is not supported") from None
        if known:
            kinds = kinds or {each: each.__class__ for each in pairs}
            _check_duplicate(key, kinds, budget)
        elif kinds:
            kinds[key] = key.__class__
        pairs[key] = value
    if pos != end:
        raise size_fault(pos, end)
    budget.depth += 1
    return pairs, end


def _check_duplicate(key: Any, kinds: dict[Any, type], budget: Budget) -> None:
    """Two keys that are one to Python: a duplicate if of one type, else more than a dict can tell."""
    if kinds[key] is not key.__class__:
        raise malformed(f"map keys that differ in their type only: {key!r} and a {kinds[key].__name__}")
    if not budget.allow_duplicate_keys:
        raise malformed(f"map key {key!r} appears twice")


def _array8(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    return _elements(buf, pos + 2, pos + 1 + buf[pos], buf[pos + 1], budget)


def _array32(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return _elements(buf, pos + 8, end, _U32.unpack_from(buf, pos + 4)[0], budget)


def _elements(buf: bytes, pos: int, end: int, count: int, budget: Budget) -> tuple[Any, int]:
    check_compound(buf, pos, end, 0)
    _enter(budget, 0)
    depth = budget.depth
    code = buf[pos]
    pos += 1
    descriptors: list[Any] = []
    while code == codes.DESCRIBED:
        _enter(budget, 1)
        descriptor, pos = read_descriptor(buf, pos, budget)
        descriptors.append(descriptor)
        code = buf[pos]
        pos += 1
    row = codes.ENCODINGS.get(code)
    if row is None:
        raise malformed(f"{code:#04x} constructs no type")
    result: Any
    if code in codes.ZERO_WIDTH:
        result = ZeroWidthArray(code, count, descriptors)
    else:
        check_compound(buf, pos, end, count)
        spend(budget, count)
        reader = TABLE[code]
        items: list[Any] = []
        for _ in range(count):
            value, pos = reader(buf, pos, budget)
            items.append(value)
        result = Array(items, row.type, descriptors)
    if pos != end:
        raise size_fault(pos, end)
    budget.depth = depth + 1
    return result, end


def read_descriptor(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    """The descriptor at ``pos``: any primitive value (1.2), since a peer that nests there only means harm."""
    row = codes.ENCODINGS.get(buf[pos])
    if row is None or row.type in ("list", "map", "array"):
        raise malformed(f"{buf[pos]:#04x} does not construct a descriptor")
    return TABLE[buf[pos]](buf, pos + 1, budget)


def _described(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    types = budget.types
    if types is not None:
        known = types.decode_described(buf, pos, budget)
        if known is not None:
            return known
    _enter(budget, 2)
    descriptor, pos = read_descriptor(buf, pos, budget)
    value, pos = TABLE[buf[pos]](buf, pos + 1, budget)
    budget.depth += 1
    return Described(descriptor, value), pos


_READERS: Final[dict[int, Reader]] = {
    codes.DESCRIBED: _described,
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
    codes.LIST0: _list0,
    codes.LIST8: _list8,
    codes.LIST32: _list32,
    codes.MAP8: _map8,
    codes.MAP32: _map32,
    codes.ARRAY8: _array8,
    codes.ARRAY32: _array32,
}

TABLE: Final[list[Reader]] = [_READERS.get(code, _unknown) for code in range(256)]
"""The reader of each constructor octet; readers do not spend for the value itself, only for what is in it."""
