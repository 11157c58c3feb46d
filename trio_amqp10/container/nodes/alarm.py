"""Alarm: has what is due done when its time comes, by the timers of a container.

Whoever has things that end with time knows when the next of them does, and does what is due whenever it is
touched. So one timer for all that it has is enough, and one that rings early does no harm. There is at most one
at a time, and where much is due in a row, there is a pause from one time to the next.

Knows times; does not know for what.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

__all__ = ["Alarm", "CallAt", "Cancellable"]

_PAUSE: Final = 0.01
"""Seconds at least between two times."""


class Cancellable(Protocol):
    """A timer, as far as an alarm needs it."""

    def cancel(self) -> None:
        """Do not call the function, if it was not called yet."""
        ...


CallAt = Callable[[float, Callable[[], object]], Cancellable]
"""Has a function called at a time, in seconds on trio's clock."""


class Alarm:
    """One for whoever has things that end.

    Args:
        due: gives when something is due next, on trio's clock; infinite for never.
        ring: does what is due.
        call_at: calls a function at a time; None where nobody does, and to be touched has to do.
    """

    __slots__ = ("_at", "_call_at", "_due", "_ring", "_timer")

    def __init__(
        self,
        due: Callable[[], float],
        ring: Callable[[], object],
        call_at: CallAt | None,
    ) -> None:
        self._due = due
        self._ring = ring
        self._call_at = call_at
        self._at = math.inf
        self._timer: Cancellable | None = None

    def check(self) -> None:
        """Something may be due at another time than before."""
        self.expect(self._due())

    def expect(self, due: float) -> None:
        """Something is due then; to be told of it costs nothing where the alarm is set for an earlier time."""
        if due < self._at and self._call_at is not None:
            self.stop()
            self._at = due
            self._timer = self._call_at(due, self._on_time)

    def stop(self) -> None:
        """Nothing is due any more."""
        self._at = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        rang = self._at
        self._at = math.inf
        self._timer = None
        try:
            self._ring()
        finally:
            self.expect(max(self._due(), rang + _PAUSE))
