"""Translation of values between the draft and the final standard (Book II, 2.5).

The two type systems differ in a few encodings. The draft has two more for strings, in UTF-16; its arrays are an
encoding of lists, and no type; it has none of the short forms of integers and lists, no boolean of one octet, and no
decimal128. So both use one codec: received octets are rewritten before they are decoded, and encoded octets are
rewritten before they are sent. Knows no composite.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Final

from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.decimals import Decimal128
from trio_amqp10.amqp10.wire.decode_budget import Budget, check_compound, enter, malformed, read_fault, spend
from trio_amqp10.amqp10.wire.encode import encode, write_compound

_STRING8_UTF16: Final = 0xA2
_STRING32_UTF16: Final = 0xB2

_U32: Final = Struct(">I")

Swap = Callable[[bytes, int], tuple[bytes, int]]
"""A function that rewrites the value after a constructor.

Given the octets and the position after the constructor, it returns the new octets with their constructor, and the
position after the value.
"""


def from_draft(octets: bytes, *, strict: bool = False, budget: Budget | None = None) -> bytes:
    """Return the same values in the encodings of the final standard.

    Args:
        octets: values of the draft, one after the other, whole.
        strict: whether encodings that only the final standard has are refused.
        budget: how many values may be read; 65,536 if None.

    Raises:
        RemoteProtocolError: ``amqp:decode-error`` for octets that are no values; and as ``wire.decode.decode``.
    """
    return _rewrite(octets, _FROM_DRAFT, _FINAL_CODES if strict else frozenset(), budget)


def to_draft(octets: bytes, budget: Budget | None = None) -> bytes:
    """Return the same values in the encodings of the draft.

    An array becomes a list, and a decimal128 the text of its number.

    Args:
        octets: values of the final standard, one after the other, whole.
        budget: as of ``from_draft``.

    Raises:
        RemoteProtocolError: as ``from_draft``.
    """
    return _rewrite(octets, _TO_DRAFT, frozenset(), budget)


def _rewrite(
    octets: bytes, swaps: Mapping[int, Swap], refused: frozenset[int], budget: Budget | None
) -> bytes:
    rewriter = _Rewriter(octets, swaps, refused, Budget() if budget is None else budget)
    pos = 0
    try:
        while pos < len(octets):
            spend(rewriter.budget, 1)
            pos = rewriter.value(pos)
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise read_fault(error) from None
    if pos > len(octets):
        raise malformed("the octets end inside a value")
    return bytes(rewriter.out)


class _Rewriter:
    """A pass over consecutive values that appends each in its new encoding."""

    __slots__ = ("_buf", "_refused", "_swaps", "budget", "out")

    def __init__(
        self, buf: bytes, swaps: Mapping[int, Swap], refused: frozenset[int], budget: Budget
    ) -> None:
        self._buf = buf
        self._swaps = swaps
        self._refused = refused
        self.budget = budget
        self.out = bytearray()

    def value(self, pos: int) -> int:
        """Rewrite the value whose constructor is at ``pos``; return its end."""
        return self._one(self._buf[pos], pos + 1)

    def _one(self, code: int, pos: int) -> int:
        """Rewrite the value with this constructor, whose octets are at ``pos``.

        Return its end.
        """
        buf = self._buf
        if code in self._refused:
            raise malformed(f"{code:#04x} constructs no type in the draft of 2010")
        swap = self._swaps.get(code)
        if swap is not None:
            octets, pos = swap(buf, pos)
            self.out += octets
            return pos
        if code == codes.DESCRIBED:
            enter(self.budget, 2)
            self.out.append(code)
            pos = self.value(self.value(pos))
            self.budget.depth += 1
            return pos
        row = codes.ENCODINGS.get(code)
        if row is None:
            raise malformed(f"{code:#04x} constructs no type")
        if row.category == "compound":
            return self._compound(code, pos, row.width)
        if row.category == "array":
            return self._array(pos, row.width)
        size = row.width
        if row.category == "variable":
            size += int.from_bytes(buf[pos : pos + row.width], "big")
        self.out.append(code)
        self.out += buf[pos : pos + size]
        return pos + size

    def _compound(self, code: int, pos: int, width: int) -> int:
        end, count, pos = self._bounds(pos, width)
        check_compound(self._buf, pos, end, count)
        before, self.out = self.out, bytearray()
        enter(self.budget, count)
        for _ in range(count):
            pos = self.value(pos)
        self.budget.depth += 1
        _check_end(pos, end)
        short, long = _FORMS[code]
        write_compound(before, short, long, count, self.out)
        self.out = before
        return end

    def _array(self, pos: int, width: int) -> int:
        """Rewrite an array as a list of elements, each with the common constructor."""
        end, count, pos = self._bounds(pos, width)
        check_compound(self._buf, pos, end, 0)
        before, self.out = self.out, bytearray()
        enter(self.budget, count)
        described = 0
        while self._buf[pos] == codes.DESCRIBED:
            enter(self.budget, 1)
            self.out.append(codes.DESCRIBED)
            pos = self.value(pos + 1)
            described += 1
        descriptors, self.out = bytes(self.out), bytearray()
        spend(self.budget, count * described)
        code = self._buf[pos]
        pos += 1
        for _ in range(count):
            self.out += descriptors
            pos = self._one(code, pos)
        self.budget.depth += 1 + described
        _check_end(pos, end)
        write_compound(before, codes.LIST8, codes.LIST32, count, self.out)
        self.out = before
        return end

    def _bounds(self, pos: int, width: int) -> tuple[int, int, int]:
        """Return the end of a compound or array, its count, and the start of its elements."""
        if width == 1:
            return pos + 1 + self._buf[pos], self._buf[pos + 1], pos + 2
        size, count = _U32.unpack_from(self._buf, pos)[0], _U32.unpack_from(self._buf, pos + 4)[0]
        return pos + 4 + size, count, pos + 8


def _check_end(pos: int, end: int) -> None:
    if pos != end:
        raise malformed(
            f"elements end {abs(end - pos)} octets {'before' if pos < end else 'after'} their size"
        )


_FORMS: Final = {
    codes.LIST8: (codes.LIST8, codes.LIST32),
    codes.LIST32: (codes.LIST8, codes.LIST32),
    codes.MAP8: (codes.MAP8, codes.MAP32),
    codes.MAP32: (codes.MAP8, codes.MAP32),
}


def _utf16(width: int) -> Swap:
    def swap(buf: bytes, pos: int) -> tuple[bytes, int]:
        start = pos + width
        end = start + int.from_bytes(buf[pos:start], "big")
        if end > len(buf):
            raise malformed("the octets end inside a value")
        try:
            return encode(buf[start:end].decode("utf-16-be")), end
        except UnicodeDecodeError as error:
            raise malformed(f"octets of a string are not UTF-16: {error.reason}") from None

    return swap


def _constant(octets: bytes) -> Swap:
    return lambda _buf, pos: (octets, pos)


def _widened(code: int, size: int, *, signed: bool = False) -> Swap:
    def swap(buf: bytes, pos: int) -> tuple[bytes, int]:
        number = int.from_bytes(bytes((buf[pos],)), "big", signed=signed)
        return bytes((code,)) + number.to_bytes(size, "big", signed=signed), pos + 1

    return swap


def _boolean(buf: bytes, pos: int) -> tuple[bytes, int]:
    if buf[pos] > 1:
        raise malformed(f"a boolean of {buf[pos]:#04x}")
    return bytes((codes.TRUE if buf[pos] else codes.FALSE,)), pos + 1


def _decimal128(buf: bytes, pos: int) -> tuple[bytes, int]:
    if pos + 16 > len(buf):
        raise malformed("the octets end inside a value")
    return encode(str(Decimal128(buf[pos : pos + 16]))), pos + 16


_FROM_DRAFT: Final[dict[int, Swap]] = {_STRING8_UTF16: _utf16(1), _STRING32_UTF16: _utf16(4)}

_TO_DRAFT: Final[dict[int, Swap]] = {
    codes.UINT0: _constant(bytes((codes.UINT, 0, 0, 0, 0))),
    codes.SMALL_UINT: _widened(codes.UINT, 4),
    codes.ULONG0: _constant(bytes((codes.ULONG, *bytes(8)))),
    codes.SMALL_ULONG: _widened(codes.ULONG, 8),
    codes.SMALL_INT: _widened(codes.INT, 4, signed=True),
    codes.SMALL_LONG: _widened(codes.LONG, 8, signed=True),
    codes.BOOLEAN: _boolean,
    codes.LIST0: _constant(bytes((codes.LIST8, 1, 0))),
    codes.DECIMAL128: _decimal128,
}

_FINAL_CODES: Final = frozenset(_TO_DRAFT)
"""Encodings that only the final standard has."""
