"""Alarm: has a service do what is due, by the timers of its container.

Entities know when something is due next, and do it when they are touched; so one timer for all of them is
enough, and one that rings early does no harm.

Knows times; does not know for what.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Alarm"]


class Alarm:
    """One for a service.

    Args:
        due: gives when something is due next, on trio's clock; infinite for never.
        ring: does what is due.
        call_at: calls a function at a time.
    """

    def __init__(
        self,
        due: Callable[[], float],
        ring: Callable[[], object],
        call_at: Callable[[float, Callable[[], object]], object],
    ) -> None:
        self._due = due
        self._ring = ring
        self._call_at = call_at
        self._at = math.inf

    def check(self) -> None:
        """Something may be due at another time than before."""
        due = self._due()
        if due < self._at:
            self._at = due
            self._call_at(due, self._on_time)

    def _on_time(self) -> None:
        self._at = math.inf
        self._ring()
        self.check()
