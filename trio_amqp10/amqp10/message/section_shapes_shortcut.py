"""Read sections that look like earlier ones in one step (3.2).

The messages of a sender differ in little more than an id or a number. If two sections have the same octets
except for the values of some fields, the common part is kept as a *shape*: the fixed octets, and the places
of the others, each with a fixed constructor and size. A section that fits a shape has the fields of the
section that the shape was made of, except for those values. The reader that was given reads every other
section. Knows nothing of the meaning of a section.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.decode_budget import NO_BUDGET
from trio_amqp10.amqp10.wire.readers import SCALARS
from trio_amqp10.amqp10.wire.shortcut_memos import READ_FAULTS, SYMBOLS
from trio_amqp10.amqp10.wire.values import Timestamp, ULong

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_MISSES: Final = 1_024
"""The largest pause, in sections that did not fit, before a new shape is made.

A shape is made of the second section of a size, and again after 2, 4, 8 and so on misses up to this number,
and from 2 on again. So sections that never fit cost little, and a change is learned.
"""

_HEAD: Final = 6
"""Octets before the first item of a section.

These are ``00``, the descriptor, and one octet each for constructor, size and count.
"""


_BOOLEANS: Final = {bytes((codes.TRUE,)): True, bytes((codes.FALSE,)): False}
_new_int: Final[Any] = int.__new__
_KINDS: Final[dict[int, tuple[int, str, Callable[[Any], Any] | None]]] = {
    codes.TRUE: (0, "s", _BOOLEANS.__getitem__),
    codes.FALSE: (0, "s", _BOOLEANS.__getitem__),
    codes.STRING8: (2, "s", bytes.decode),
    codes.SYMBOL8: (2, "s", SYMBOLS.__getitem__),
    codes.BINARY8: (2, "s", None),
    codes.ULONG: (1, "Q", partial(_new_int, ULong)),
    codes.TIMESTAMP: (1, "q", partial(_new_int, Timestamp)),
    codes.LONG: (1, "q", None),
    codes.SMALL_LONG: (1, "b", None),
    codes.DOUBLE: (1, "d", None),
}
"""How to read a value that differs, by its constructor.

The number of fixed octets before it, its format for ``struct``, and the function that converts the result, if
any. For other types of a fixed width see ``_kind``.
"""


def _kind(code: int) -> tuple[int, str, Callable[[Any], Any] | None] | None:
    if 0x50 <= code < 0xA0:  # the constructor defines the width (1.2)
        read = SCALARS[code]
        return 1, "s", lambda octets: read(octets, 0, NO_BUDGET)[0]
    return None


_MOST_FREE: Final = 3
"""Values of a section that may differ: e.g. an id, another message's id, a time."""

_Shape = tuple[Any, Any, bytes, Any, Any, bytes, Any, Any, bytes, Any, Any, bytes]
"""The parts of a shape, in the order in which ``Learned.read`` uses them.

The function that splits a section into fixed and free parts in turn; the values of a section that fits; the
first fixed part; then three times: the place of a free part among the values, or None, its conversion, and
the fixed part after it.
"""


def _shape(before: bytes, octets: bytes, values: Any) -> _Shape | None:
    """Return the shape of two sections of one size, or None if they have none.

    ``octets`` gave ``values``; ``before`` only shows which values differ. A section that fits has the
    constructors and sizes of ``octets``.
    """
    keyed = values.__class__ is dict
    form = ">"
    shape: list[Any] = []
    place: Any = -1
    pos, begun = _HEAD, 0
    while pos < len(octets):
        if keyed:
            place, pos = SCALARS[octets[pos]](octets, pos + 1, NO_BUDGET)
        else:
            place += 1
        code = octets[pos]
        stop = SCALARS[code](octets, pos + 1, NO_BUDGET)[1]
        if before[pos:stop] != octets[pos:stop]:
            kind = _KINDS.get(code) or _kind(code)
            if kind is None:
                return None
            width, letter, make = kind
            fixed = octets[begun : pos + width]
            form += f"{len(fixed)}s{stop - pos - width if letter == 's' else ''}{letter}"
            shape += (fixed, place, make)
            begun = stop
        pos = stop
    shape.append(octets[begun:])
    free = len(shape) // 3
    if free > _MOST_FREE:
        return None
    shape += (None, None, b"") * (_MOST_FREE - free)
    form += f"{len(octets) - begun}s" + "0s0s" * (_MOST_FREE - free)
    return cast("_Shape", (Struct(form).unpack_from, values.copy(), *shape))


class _Paced:
    """Skips most attempts while no section fits: only one in 65 is compared."""

    __slots__ = ("_pause", "_row")

    def __init__(self) -> None:
        self._row = 0  # how many in a row did not fit, up to 10
        self._pause = 0  # how many of the next ones are not compared

    def _missed(self) -> None:
        """Pause after the fourth miss in a row, for 1, 2, 4 and so on up to 64 sections."""
        row = self._row = min(self._row + 1, 10)
        self._pause = 1 << row >> 4


class Learned(_Paced):
    """A reader of the sections of one place, which learns from earlier sections.

    Args:
        read: reads a section: the list of its fields or a dict of its pairs, all scalars in a ``list8`` or
            ``map8`` after a ``smallulong``; None for any other section.
    """

    __slots__ = ("_met", "_read", "_shapes")

    def __init__(self, read: Callable[[bytes, int, int], Any]) -> None:
        super().__init__()
        self._read = read
        self._shapes: dict[int, _Shape] = {}  # by the size of the section: at most 260
        self._met: dict[int, tuple[int, bytes]] = {}  # by size: how many did not fit, and the last of them

    def read(self, buf: bytes, start: int, end: int) -> Any:
        """Return what ``read`` returns for this section."""
        if self._pause:
            self._pause -= 1
            return self._read(buf, start, end)
        shape = self._shapes.get(end - start)
        if shape is not None:
            split, values, a, place1, make1, b, place2, make2, c, place3, make3, d = shape
            try:
                at_a, free1, at_b, free2, at_c, free3, at_d = split(buf, start)
                if at_a == a and at_b == b and at_c == c and at_d == d:
                    self._row = 0
                    values = values.copy()
                    if place1 is not None:
                        values[place1] = free1 if make1 is None else make1(free1)
                        if place2 is not None:
                            values[place2] = free2 if make2 is None else make2(free2)
                            if place3 is not None:
                                values[place3] = free3 if make3 is None else make3(free3)
                    return values
            except READ_FAULTS:
                pass  # a free value is malformed: the reader decides what is wrong
        values = self._read(buf, start, end)
        self._missed()
        if values is not None:
            self._meet(buf[start:end], values)
        return values

    def _meet(self, octets: bytes, values: Any) -> None:
        size = len(octets)
        misses, before = self._met.get(size, (0, b""))
        self._met[size] = misses % MOST_MISSES + 1, octets
        if misses & (misses - 1) == 0 and before:
            shape = _shape(before, octets, values)
            if shape is not None:
                self._shapes[size] = shape


_WIDE: Final = 0x10
"""The bit of a constructor that means a size of four octets, not one (1.2)."""

_MOST_SIZES: Final = 1_024
"""Message sizes that are remembered; if there are more, all are forgotten."""


class LearnedSpans(_Paced):
    """Finds sections that begin at the same places as in an earlier message.

    Only messages of the same number of octets are compared.

    Args:
        find: finds the sections of a message, (start, end) or None for each place, if each has a size of one
            octet or of four after a head of four; None for any other message.
    """

    __slots__ = ("_find", "_met", "_shapes")

    def __init__(self, find: Callable[[bytes], list[tuple[int, int] | None] | None]) -> None:
        super().__init__()
        self._find = find
        self._shapes: dict[int, tuple[Any, Any, list[tuple[int, int] | None]]] = {}
        self._met: dict[int, int] = {}

    def find(self, payload: bytes) -> list[tuple[int, int] | None] | None:
        """Return what the argument ``find`` returns for this message."""
        if self._pause:
            self._pause -= 1
            return self._find(payload)
        shape = self._shapes.get(len(payload))
        if shape is not None:
            split, heads, spans = shape
            if split(payload) == heads:
                self._row = 0
                return spans.copy()
        found = self._find(payload)
        self._missed()
        if found is not None:
            self._meet(payload, found)
        return found

    def _meet(self, payload: bytes, spans: list[tuple[int, int] | None]) -> None:
        size = len(payload)
        misses = self._met.get(size, 0)
        if not misses and len(self._met) >= _MOST_SIZES:
            self._met.clear()
            self._shapes.clear()
        self._met[size] = misses % MOST_MISSES + 1
        if misses and misses & (misses - 1) == 0:
            form = ">"
            for span in spans:
                if span is not None:
                    head = 8 if payload[span[0] + 3] & _WIDE else 5
                    form += f"{head}s{span[1] - span[0] - head}x"
            split = Struct(form).unpack_from
            self._shapes[size] = split, split(payload), spans.copy()
