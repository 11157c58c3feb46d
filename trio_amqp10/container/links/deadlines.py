"""Deadlines of termini: which have passed, without a look at those that have not.

Knows times and termini; does not know what happens when one has expired.
"""

from __future__ import annotations

import heapq
import itertools
from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .kept import Kept

__all__ = ["Deadlines"]

_STALE: Final = 64


class Deadlines:
    """The deadlines of many termini; a terminus has the one that it was given last."""

    __slots__ = ("_count", "_heap", "_most")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Kept]] = []
        self._count = itertools.count()
        self._most = _STALE

    def add(self, kept: Kept, deadline: float) -> None:
        """Give a terminus its deadline."""
        kept.deadline = deadline
        if deadline == inf:
            return
        if len(self._heap) >= self._most:  # half of it may be deadlines that count no more
            self._heap = [each for each in self._heap if each[2].deadline == each[0]]
            heapq.heapify(self._heap)
            self._most = 2 * len(self._heap) + _STALE
        heapq.heappush(self._heap, (deadline, next(self._count), kept))

    def due(self, now: float) -> list[Kept]:
        """Those whose deadline has passed; each is given once."""
        found: dict[Kept, None] = {}
        while self._heap and self._heap[0][0] <= now:
            deadline, _, kept = heapq.heappop(self._heap)
            if kept.deadline == deadline:
                found[kept] = None
        return list(found)

    def next(self) -> float:
        """The earliest, or an earlier one that counts no more; infinite if there is none."""
        return self._heap[0][0] if self._heap else inf
