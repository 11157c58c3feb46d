"""The clock of a container: trio's clock, and its relation to the time of day.

Trio's clock runs evenly, and in tests as fast as they want. A message that arrives with a time of day gets a deadline
on trio's clock at once, so a later change of the wall clock does not affect the messages that are held.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import trio

from .deadline_timer import DeadlineTimer
from .turns import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .deadline_timer import CallAt
    from .turns import Turns


def _endless() -> Turns:
    return ENDLESS


class Clock:
    """The source of the time, and of timers and turns, for all nodes.

    Args:
        wall: returns seconds since 1970.
        now: returns seconds on the clock of all deadlines. The default works only under trio; it is called only for messages
            with a ttl or an expiry time.

    Attributes:
        call_at: schedules a function at a time on that clock; None if there are no timers.
        turns: returns the turns that long work is divided into; in a container, those of the ``trio.run``.
    """

    __slots__ = ("call_at", "now", "turns", "wall")

    def __init__(
        self, wall: Callable[[], float] = time.time, now: Callable[[], float] = trio.current_time
    ) -> None:
        self.wall: Callable[[], float] = wall
        self.now: Callable[[], float] = now
        self.call_at: CallAt | None = None
        self.turns: Callable[[], Turns] = _endless

    def deadline_timer(self, due: Callable[[], float], call: Callable[[], object]) -> DeadlineTimer:
        """Return a timer that calls ``call`` at the time that ``due`` returns.

        See ``DeadlineTimer``.
        """
        return DeadlineTimer(due, call, self.call_at)

    def deadline(self, now: float, ttl: int | None, expiry: int | None, limit: int | None = None) -> float:
        """Return when a message that arrives ``now`` expires: the earliest given limit.

        Args:
            now: seconds on this clock.
            ttl: milliseconds from its arrival (3.2.1).
            expiry: milliseconds since 1970 (3.2.4).
            limit: milliseconds from its arrival, for all messages of its queue.
        """
        ends = [now + each / 1000 for each in (ttl, limit) if each is not None]
        if expiry is not None:
            ends.append(now + expiry / 1000 - self.wall())
        return min(ends)

    def to_wall(self, then: float) -> int:
        """Convert a time on this clock to milliseconds since 1970, for a store."""
        return round((self.wall() + then - self.now()) * 1000)

    def from_wall(self, milliseconds: int) -> float:
        """Convert milliseconds since 1970 to a time on the clock of this run."""
        return self.now() + milliseconds / 1000 - self.wall()
