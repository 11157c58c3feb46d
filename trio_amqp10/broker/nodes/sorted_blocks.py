"""A sorted list in blocks: fast at the front, in the middle, and at the end.

A block has at most a few hundred items, and each block is sorted. Adding the last item and taking the first item have the
same cost for any length; at any other place the cost is two binary searches and one short move.

Knows nothing of an item but its ``order``.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BLOCK: Final = 256


class Ordered(Protocol):
    """An item; no two items have the same ``order``."""

    order: int


T = TypeVar("T", bound=Ordered)

_order: Final[Any] = attrgetter("order")


def _last_order(block: list[Any]) -> int:
    order: int = block[-1].order
    return order


class SortedBlocks(Generic[T]):
    """Items sorted by their ``order``, lowest first."""

    __slots__ = ("_blocks", "_length")

    def __init__(self) -> None:
        self._blocks: list[list[T]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, thing: T) -> None:
        """Insert an item in order."""
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
        """Return the first item without removing it, or None."""
        return self._blocks[0][0] if self._blocks else None

    def last(self) -> T:
        """Return the last item without removing it; there must be one."""
        return self._blocks[-1][-1]

    def pop(self) -> T:
        """Remove and return the first item; there must be one."""
        block = self._blocks[0]
        thing = block.pop(0)
        if not block:
            del self._blocks[0]
        self._length -= 1
        return thing

    def remove(self, thing: T) -> bool:
        """Remove this item; return False if it is not here."""
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
        """Iterate over the items after this order, lowest first.

        Nothing may be added or removed meanwhile.
        """
        blocks = self._blocks
        for block in islice(blocks, bisect_right(blocks, order, key=_last_order), None):
            start = 0 if block[0].order > order else bisect_right(block, order, key=_order)
            yield from islice(block, start, None)

    def drop_some(self) -> None:
        """Drop a few hundred items, in no order; there must be one."""
        self._length -= len(self._blocks.pop())


def all_after(lists: Iterable[SortedBlocks[T]], order: int) -> Iterator[T]:
    """Iterate over the items of all these lists after this order, lowest first."""
    each = [blocks.after(order) for blocks in lists]
    return each[0] if len(each) == 1 else heapq.merge(*each, key=_order)
