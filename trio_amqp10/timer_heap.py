"""TimerHeap: what is due at a time, the earliest first.

Connections that keep time, timers of a container, messages and termini that expire: each has one of these, and its owner waits, or
looks whenever it is touched. A binary heap finds the earliest; a timer that is cancelled lets go of its item at once, and stays
in the heap as an empty place until it is the earliest, or until more than half of the heap is empty. So the heap has at most as
many empty places as timers, or a few, and the steps of a call grow with the logarithm of their number, if the removal of
empty places is spread over the calls that made them.

Knows no clock: the caller says what time it is. Does not know what is due.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Timer", "TimerHeap"]

T = TypeVar("T")

_FEW: Final = 32
"""Empty places that are not worth a pass over the heap."""


class Timer(Generic[T]):
    """One item of a heap, until it is due or cancelled; made by ``TimerHeap.add``.

    Attributes:
        item: what is due; None once it was taken or cancelled.
    """

    __slots__ = ("_heap", "item")

    def __init__(self, heap: TimerHeap[T] | None, item: T) -> None:
        self._heap = heap
        self.item: T | None = item

    def cancel(self) -> None:
        """Take it out of its heap; nothing happens if it is not there any more."""
        if self.item is not None:
            self.item = None
            if self._heap is not None:
                self._heap.empty += 1
                self._heap.sweep()


class TimerHeap(Generic[T]):
    """Items by the time at which they are due; its length is the number of those that are not cancelled.

    Times are numbers of one clock, whatever its unit. An item is not None.

    Attributes:
        places: the heap: time, number and timer of each. It is false only if nothing was added that may still be due.
        empty: places of cancelled timers that are in the heap still; never more than its length, or 32.
    """

    __slots__ = ("_added", "empty", "places")

    def __init__(self) -> None:
        self.places: list[tuple[float, int, Timer[T]]] = []
        self._added = 0
        self.empty: int = 0

    def __len__(self) -> int:
        return len(self.places) - self.empty

    def add(self, time: float, item: T) -> Timer[T]:
        """Have ``item`` be due at ``time``, after what was added before for the same time; never, if that is infinite."""
        if time == inf:
            return Timer(None, item)
        timer = Timer(self, item)
        self._added += 1
        heappush(self.places, (time, self._added, timer))
        return timer

    def next(self) -> float:
        """When the next item is due; infinite if there is none."""
        places = self.places
        while places and places[0][2].item is None:
            heappop(places)
            self.empty -= 1
        return places[0][0] if places else inf

    def pop_due(self, now: float) -> Iterator[T]:
        """Take out one item after another that is due ``now`` or before; what is added meanwhile may be among them."""
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
        """Cancel all."""
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
