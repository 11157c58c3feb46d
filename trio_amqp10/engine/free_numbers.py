"""Allocate handles and channels: the lowest number not in use (2.5.1, 2.6.2)."""

from __future__ import annotations

from heapq import heappop, heappush

__all__ = ["FreeNumbers"]


class FreeNumbers:
    """Which numbers from 0 on are free; each step costs no more than the logarithm of how many were freed."""

    __slots__ = ("_freed", "_unused")

    def __init__(self) -> None:
        self._freed: list[int] = []
        self._unused = 0  # it and all above it were never taken

    def lowest(self) -> int:
        """The lowest that is free."""
        return self._freed[0] if self._freed else self._unused

    def take(self) -> int:
        """Have the lowest be in use."""
        if self._freed:
            return heappop(self._freed)
        self._unused += 1
        return self._unused - 1

    def free(self, number: int) -> None:
        """One that was taken is free again."""
        heappush(self._freed, number)
