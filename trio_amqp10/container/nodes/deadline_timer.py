"""One timer for many deadlines: calls the owner when the first of them is due.

The owner knows its next deadline, and does what is due whenever it is used. So one timer is enough for all its
deadlines, and a timer that fires early does no harm. There is at most one timer at a time; if many deadlines
follow each other, there is a pause between two calls.

Knows times; does not know what is due.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

__all__ = ["CallAt", "Cancellable", "DeadlineTimer"]

_PAUSE: Final = 0.01
"""Seconds at least between two times."""


class Cancellable(Protocol):
    """A timer of the container."""

    def cancel(self) -> None:
        """Do not call the function, if it was not called yet."""
        ...


CallAt = Callable[[float, Callable[[], object]], Cancellable]
"""Has a function called at a time, in seconds on trio's clock."""


class DeadlineTimer:
    """The timer of one owner.

    Args:
        due: gives the next deadline, on trio's clock; infinite for none.
        call: does what is due.
        call_at: calls a function at a time; None if there is no timer: then the owner is only checked when it is used.
    """

    __slots__ = ("_at", "_call", "_call_at", "_due", "_timer")

    def __init__(
        self,
        due: Callable[[], float],
        call: Callable[[], object],
        call_at: CallAt | None,
    ) -> None:
        self._due = due
        self._call = call
        self._call_at = call_at
        self._at = math.inf
        self._timer: Cancellable | None = None

    def check(self) -> None:
        """The next deadline may have changed."""
        self.schedule(self._due())

    def schedule(self, due: float) -> None:
        """There is a deadline then; costs nothing if the timer is set for an earlier time."""
        if due < self._at and self._call_at is not None:
            self.cancel()
            self._at = due
            self._timer = self._call_at(due, self._on_time)

    def cancel(self) -> None:
        """There is no deadline any more."""
        self._at = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        called_at = self._at
        self._at = math.inf
        self._timer = None
        try:
            self._call()
        finally:
            self.schedule(max(self._due(), called_at + _PAUSE))
