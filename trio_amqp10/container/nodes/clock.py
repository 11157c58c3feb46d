"""Clock: trio's time, and what a time of day is on it.

Trio's clock runs evenly, and in tests as fast as they like; so a time of day is looked at once, when a
message arrives with it, and becomes a time on trio's clock. A wall clock that is set later changes
nothing for messages that are here.
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

__all__ = ["Clock"]


def _endless() -> Turns:
    return ENDLESS


class Clock:
    """What nodes ask for the time.

    Args:
        wall: gives seconds since 1970.
        now: gives seconds on the clock that deadlines are on; the default needs trio to run, and is asked
            only by messages with a ttl or an expiry time.

    Attributes:
        call_at: has a function called at a time on that clock; None if there is no timer.
        turns: gives the turns that long work takes; in a container, those of the ``trio.run``.
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
        """What has ``call`` called when the time has come that ``due`` gives; see ``DeadlineTimer``."""
        return DeadlineTimer(due, call, self.call_at)

    def deadline(self, now: float, ttl: int | None, expiry: int | None, limit: int | None = None) -> float:
        """When a message that arrives ``now`` is no longer worth delivering: the earliest of those that are given.

        Args:
            now: seconds on our clock.
            ttl: milliseconds from its arrival (3.2.1).
            expiry: milliseconds since 1970 (3.2.4).
            limit: milliseconds from its arrival, for all messages of its queue.
        """
        ends = [now + each / 1000 for each in (ttl, limit) if each is not None]
        if expiry is not None:
            ends.append(now + expiry / 1000 - self.wall())
        return min(ends)

    def to_wall(self, then: float) -> int:
        """What a time on our clock is in milliseconds since 1970, to be kept where our clock is not."""
        return round((self.wall() + then - self.now()) * 1000)

    def from_wall(self, milliseconds: int) -> float:
        """The opposite, on the clock of this run."""
        return self.now() + milliseconds / 1000 - self.wall()
