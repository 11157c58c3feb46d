"""Shelf: what lies in order, to be taken from the front, from the middle, or put back where it was.

Blocks of at most a few hundred things, each block sorted: to add behind all others, and to take the
first, costs the same whatever the length; anywhere else, two binary searches and one short move.

Knows nothing of what lies on it but its ``order``.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Shelf", "all_after"]

_BLOCK: Final = 256


class Ordered(Protocol):
    """What has a place: no two have the same ``order``."""

    order: int


T = TypeVar("T", bound=Ordered)

_order: Final[Any] = attrgetter("order")


def _last_order(block: list[Any]) -> int:
    order: int = block[-1].order
    return order


class Shelf(Generic[T]):
    """Things sorted by their ``order``, lowest first."""

    __slots__ = ("_blocks", "_length")

    def __init__(self) -> None:
        self._blocks: list[list[T]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, thing: T) -> None:
        """Put it where it belongs."""
        blocks = self._blocks
        self._length += 1
        order = thing.order
        if not blocks or order > blocks[-1][-1].order:
            if blocks and len(blocks[-1]) < _BLOCK:
                blocks[-1].append(thing)
            else:
                blocks.append([thing])
            return
        at = bisect_left(blocks, order, key=_last_order)
        block = blocks[at]
        block.insert(bisect_left(block, order, key=_order), thing)
        if len(block) > 2 * _BLOCK:
            blocks.insert(at + 1, block[_BLOCK:])
            del block[_BLOCK:]

    def first(self) -> T | None:
        """The lowest, which stays; None if there is nothing."""
        return self._blocks[0][0] if self._blocks else None

    def pop(self) -> T:
        """Take the lowest; there must be one."""
        block = self._blocks[0]
        thing = block.pop(0)
        if not block:
            del self._blocks[0]
        self._length -= 1
        return thing

    def remove(self, thing: T) -> bool:
        """Take this one; False if it does not lie here."""
        blocks = self._blocks
        order = thing.order
        at = bisect_left(blocks, order, key=_last_order)
        if at == len(blocks):
            return False
        block = blocks[at]
        place = bisect_left(block, order, key=_order)
        if block[place] is not thing:
            return False
        del block[place]
        if not block:
            del blocks[at]
        self._length -= 1
        return True

    def after(self, order: int) -> Iterator[T]:
        """What lies behind this order, lowest first; nothing may be added or taken meanwhile."""
        blocks = self._blocks
        for block in islice(blocks, bisect_right(blocks, order, key=_last_order), None):
            start = 0 if block[0].order > order else bisect_right(block, order, key=_order)
            yield from islice(block, start, None)

    def clear(self) -> None:
        """Take all."""
        self._blocks.clear()
        self._length = 0


def all_after(shelves: Iterable[Shelf[T]], order: int) -> Iterator[T]:
    """What lies behind this order on any of the shelves, lowest first."""
    each = [shelf.after(order) for shelf in shelves]
    return each[0] if len(each) == 1 else heapq.merge(*each, key=_order)
