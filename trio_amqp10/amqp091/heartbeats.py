"""Heartbeats: when to write one, and when a silent peer is given up (0-9-1, 4.2.7).

An end looks every half interval whether it wrote anything since the last look, and writes a heartbeat if it did not. It
gives the peer up after two intervals without an octet. Knows no clock: the caller says what time it is, in seconds.
"""

from __future__ import annotations

__all__ = ["Heartbeats"]


class Heartbeats:
    """Silence in both directions; nothing happens before ``begin``."""

    __slots__ = ("_heard", "_interval", "_look")

    def __init__(self) -> None:
        self._interval = 0
        self._heard: float | None = None
        self._look = 0.0

    def begin(self, interval: int, now: float) -> None:
        """Both ends agreed on an interval in seconds; 0 for none."""
        self._interval = interval
        self._heard = now
        self._look = now + interval / 2

    def heard(self, now: float) -> None:
        """Octets came."""
        self._heard = now

    def suspend(self) -> None:
        """Nothing is read for a while, so the peer's silence starts to count at the next look."""
        self._heard = None

    def deadline(self) -> float | None:
        """When there is something to look at; None for never."""
        if not self._interval:
            return None
        return self._look if self._heard is None else min(self._look, self._heard + 2 * self._interval)

    def due(self, now: float) -> bool:
        """Whether a look is due; if so, sets the time of the next one."""
        if not self._interval or now < self._look:
            return False
        self._look = now + self._interval / 2
        return True

    def silent(self, now: float, reading: bool) -> bool:
        """Whether the peer said nothing for two intervals; never while nothing is read."""
        if not self._interval or not reading:
            return False
        if self._heard is None:
            self._heard = now
        return now - self._heard >= 2 * self._interval
