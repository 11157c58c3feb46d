"""One timer for many deadlines: it calls the owner when the first deadline is due.

The owner knows its next deadline, and also does the due work whenever it is used. So one timer is enough for all its
deadlines, and a timer that fires early does no harm. There is at most one timer at a time. If many deadlines follow each
other, there is a pause between two calls.

Knows times; does not know what is due.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.core.timer_heap import Timer

_PAUSE: Final = 0.01
"""The shortest pause between two calls, in seconds."""


CallAt: TypeAlias = "Callable[[float, Callable[[], object]], Timer[Callable[[], object]]]"
"""Schedules a function at a time, in seconds on trio's clock."""


class DeadlineTimer:
    """The timer of one owner.

    Args:
        due: returns the next deadline, on trio's clock; infinity for none.
        call: does the work that is due.
        call_at: schedules a function at a time. None if there are no timers: then the due work is done only when the owner is
            used.
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
        self._timer: Timer[Callable[[], object]] | None = None

    def check(self) -> None:
        """Schedule the next deadline, which may have changed."""
        self.schedule(self._due())

    def schedule(self, due: float) -> None:
        """Fire at ``due``, unless the timer is already set for an earlier time."""
        if due < self._at and self._call_at is not None:
            self.cancel()
            self._at = due
            self._timer = self._call_at(due, self._on_time)

    def cancel(self) -> None:
        """Stop the timer: there is no deadline."""
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
