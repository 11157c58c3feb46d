"""TimerHeap: items by the time at which they are due, the earliest first.

Connections, containers, and expiring messages and termini each have one; its owner waits for the next time, or
checks at each call. A binary heap finds the earliest item; a cancelled timer releases its item at once, and stays
in the heap as an empty place until it is the earliest, or until more than half of the heap is empty. So the heap has at most as
many empty places as timers, or a few, and the cost of a call grows with the logarithm of their number, if the cost of removing
empty places is shared among the calls that made them.

Knows no clock: the caller passes the time. Does not know the meaning of an item.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

_FEW: Final = 32
"""Empty places for which a pass over the heap is not worth its cost."""


class Timer(Generic[T]):
    """One item of a heap until it is due or cancelled; made by ``TimerHeap.add``.

    Attributes:
        item: the item; None after it was taken or cancelled.
    """

    __slots__ = ("_heap", "item")

    def __init__(self, heap: TimerHeap[T] | None, item: T) -> None:
        self._heap = heap
        self.item: T | None = item

    def cancel(self) -> None:
        """Remove the item from its heap; do nothing if it was removed already."""
        if self.item is not None:
            self.item = None
            if self._heap is not None:
                self._heap.empty += 1
                self._heap.sweep()


class TimerHeap(Generic[T]):
    """Items by the time at which they are due; the length ignores cancelled items.

    Times are numbers of one clock, in any unit. An item must not be None.

    Attributes:
        places: the heap: time, number and timer of each. It is empty only if no item can become due.
        empty: places of cancelled timers in the heap; at most as many as other places, or 32.
    """

    __slots__ = ("_added", "empty", "places")

    def __init__(self) -> None:
        self.places: list[tuple[float, int, Timer[T]]] = []
        self._added = 0
        self.empty: int = 0

    def __len__(self) -> int:
        return len(self.places) - self.empty

    def add(self, time: float, item: T) -> Timer[T]:
        """Add an item that is due at ``time``; never, if that is infinite.

        Items of the same time are due in the order in which they were added.
        """
        if time == inf:
            return Timer(None, item)
        timer = Timer(self, item)
        self._added += 1
        heappush(self.places, (time, self._added, timer))
        return timer

    def next(self) -> float:
        """Return when the next item is due; infinite if there is none."""
        places = self.places
        while places and places[0][2].item is None:
            heappop(places)
            self.empty -= 1
        return places[0][0] if places else inf

    def pop_due(self, now: float) -> Iterator[T]:
        """Remove and yield each item that is due at ``now`` or before.

        Items that are added meanwhile may be among them.
        """
        places = self.places
        while places and places[0][0] <= now:
            timer = heappop(places)[2]
            item, timer.item = timer.item, None
            if item is None:
                self.empty -= 1
                continue
            if self.empty:
                self.sweep()
            yield item

    def clear(self) -> None:
        """Cancel all items."""
        for _, _, timer in self.places:
            timer.item = None
        self.places.clear()
        self.empty = 0

    def sweep(self) -> None:
        """Remove the empty places if they are more than half of all, and more than a few."""
        places = self.places
        if self.empty > _FEW and 2 * self.empty > len(places):
            places[:] = [place for place in places if place[2].item is not None]
            heapify(places)
            self.empty = 0
