"""Decoding of values: ``decode(buf, pos) -> (value, pos)`` (1.6).

A described value becomes ``Described`` unless the budget has types that know its descriptor. This module does not know frames or
composites.

A reader has the signature ``(buf, pos, budget) -> (value, pos)``, where ``pos`` is the octet after the constructor; each
constructor has one reader. A read past the end raises IndexError or struct.error, which ``read_fault`` converts to a
RemoteProtocolError in one place, so that valid input costs no checks. Only slices are checked explicitly, because Python
shortens a slice that is too long. A value inside a compound may extend past the end of the compound: the check at that end finds
it, so each octet is still read once.

A map becomes a dict. If its keys are equal in Python but not in AMQP (1, 1.0, True and UInt(1), or "a" and Symbol("a")), or are
not hashable, it becomes a ``PairMap``; identical keys are an error (1.6.23).
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Any, Final

from trio_amqp10.core.peer_rules import DUPLICATE_MAP_KEYS

from . import codes
from .decode_budget import NO_BUDGET, Budget, check_compound, enter, malformed, read_fault, size_fault, spend
from .pair_map import PairMap, simplest
from .readers import SCALARS, Reader
from .values import Array, Described, ZeroWidthArray

__all__ = ["TABLE", "Budget", "Reader", "decode", "read_descriptor"]

_U32: Final = Struct(">I")


def decode(buf: bytes, pos: int = 0, budget: Budget | None = None) -> tuple[Any, int]:
    """Decode the value at ``pos``; return it and the position after it.

    Raises:
        RemoteProtocolError: ``amqp:decode-error`` for malformed octets, or a nesting deeper than the budget;
            ``amqp:resource-limit-exceeded`` for more values than the budget.
    """
    if budget is None:
        budget = Budget()
    try:
        spend(budget, 1)
        return TABLE[buf[pos]](buf, pos + 1, budget)
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise read_fault(error) from None


# Compounds, arrays and described values ----------------------------------------------------------


def _list0(_buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return [], pos


def _list8(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    return _items(buf, pos + 2, pos + 1 + buf[pos], buf[pos + 1], budget)


def _list32(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return _items(buf, pos + 8, end, _U32.unpack_from(buf, pos + 4)[0], budget)


def _items(buf: bytes, pos: int, end: int, count: int, budget: Budget) -> tuple[Any, int]:
    check_compound(buf, pos, end, count)
    enter(budget, count)
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
    enter(budget, count)
    table = TABLE
    pairs: dict[Any, Any] = {}
    for index in range(count >> 1):
        key, pos = table[buf[pos]](buf, pos + 1, budget)
        value, pos = table[buf[pos]](buf, pos + 1, budget)
        try:
            if key not in pairs:
                pairs[key] = value
                continue
        except TypeError:  # the key is not hashable
            pass
        return _all_pairs(buf, pos, end, budget, pairs, (key, value), (count >> 1) - index - 1)
    if pos != end:
        raise size_fault(pos, end)
    budget.depth += 1
    return pairs, end


def _all_pairs(
    buf: bytes,
    pos: int,
    end: int,
    budget: Budget,
    before: dict[Any, Any],
    pair: tuple[Any, Any],
    left: int,
) -> tuple[Any, int]:
    """Continue with a map at a pair that a dict cannot hold.

    Args:
        buf, pos, end, budget: as for ``_pairs``.
        before: the earlier pairs.
        pair: the pair that a dict cannot hold.
        left: the number of pairs after it.
    """
    table = TABLE
    pairs = PairMap(before)
    repeated = False
    key, value = pair
    while True:
        if not pairs.add(key, value):
            if not budget.allow_duplicate_keys:
                raise malformed(f"map key {key!r} appears twice", DUPLICATE_MAP_KEYS)
            pairs[key] = value
            repeated = True
        if not left:
            break
        key, pos = table[buf[pos]](buf, pos + 1, budget)
        value, pos = table[buf[pos]](buf, pos + 1, budget)
        left -= 1
    if pos != end:
        raise size_fault(pos, end)
    budget.depth += 1
    if not repeated:
        return pairs, end
    budget.tolerate(DUPLICATE_MAP_KEYS)
    return simplest(pairs.items()), end


def _array8(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    return _elements(buf, pos + 2, pos + 1 + buf[pos], buf[pos + 1], budget)


def _array32(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    end = pos + 4 + _U32.unpack_from(buf, pos)[0]
    return _elements(buf, pos + 8, end, _U32.unpack_from(buf, pos + 4)[0], budget)


def _elements(buf: bytes, pos: int, end: int, count: int, budget: Budget) -> tuple[Any, int]:
    check_compound(buf, pos, end, 0)
    enter(budget, 0)
    depth = budget.depth
    code = buf[pos]
    pos += 1
    descriptors: list[Any] = []
    while code == codes.DESCRIBED:
        enter(budget, 1)
        descriptor, pos = read_descriptor(buf, pos)
        descriptors.append(descriptor)
        code = buf[pos]
        pos += 1
    row = codes.ENCODINGS.get(code)
    if row is None:
        raise malformed(f"{code:#04x} is not a known constructor")
    result: Any
    if code in codes.ZERO_WIDTH:
        result = ZeroWidthArray(code, count)
    else:
        check_compound(buf, pos, end, count)
        spend(budget, count)
        reader = TABLE[code]
        items: list[Any] = []
        for _ in range(count):
            value, pos = reader(buf, pos, budget)
            items.append(value)
        result = Array(items, row.type)
    result.descriptors = tuple(descriptors)
    if pos != end:
        raise size_fault(pos, end)
    budget.depth = depth + 1
    return result, end


def read_descriptor(buf: bytes, pos: int) -> tuple[Any, int]:
    """Decode the descriptor at ``pos``, which must be a primitive value (1.2).

    Compound descriptors are refused, because no honest peer needs them.
    """
    row = codes.ENCODINGS.get(buf[pos])
    if row is None or row.type in ("list", "map", "array"):
        raise malformed(f"{buf[pos]:#04x} is not the constructor of a descriptor")
    return TABLE[buf[pos]](buf, pos + 1, NO_BUDGET)


def _described(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    types = budget.types
    if types is not None:
        known = types.decode_described(buf, pos, budget)
        if known is not None:
            return known
    enter(budget, 2)
    descriptor, pos = read_descriptor(buf, pos)
    value, pos = TABLE[buf[pos]](buf, pos + 1, budget)
    budget.depth += 1
    result = Described(None, value)
    result.descriptor = descriptor  # unchanged, because ``Described`` would convert a long to a ulong
    return result, pos


def _unknown(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    raise malformed(f"{buf[pos - 1]:#04x} is not a known constructor")


_READERS: Final[dict[int, Reader]] = SCALARS | {
    codes.DESCRIBED: _described,
    codes.LIST0: _list0,
    codes.LIST8: _list8,
    codes.LIST32: _list32,
    codes.MAP8: _map8,
    codes.MAP32: _map32,
    codes.ARRAY8: _array8,
    codes.ARRAY32: _array32,
}

TABLE: Final[list[Reader]] = [_READERS.get(code, _unknown) for code in range(256)]
"""The reader of each constructor octet.

A reader charges the budget for the values inside its value, not for the value itself.
"""
