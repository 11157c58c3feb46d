"""Allocate handles and channels: the lowest number not in use (2.5.1, 2.6.2)."""

from __future__ import annotations

from heapq import heappop, heappush


class FreeNumbers:
    """The set of free numbers from 0 on, as a heap of the freed ones."""

    __slots__ = ("_freed", "_unused")

    def __init__(self) -> None:
        self._freed: list[int] | None = None  # None before the first
        self._unused = 0  # this number and all above it were never taken

    def lowest(self) -> int:
        """Return the lowest free number."""
        return self._freed[0] if self._freed else self._unused

    def take(self) -> int:
        """Take the lowest free number, and return it."""
        if self._freed:
            return heappop(self._freed)
        self._unused += 1
        return self._unused - 1

    def free(self, number: int) -> None:
        """Free a number that was taken."""
        if self._freed is None:
            self._freed = []
        heappush(self._freed, number)
