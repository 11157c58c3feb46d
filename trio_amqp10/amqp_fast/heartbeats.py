"""Heartbeats: when to ping, and when a silent peer is given up (RFC 006, 2.2.12, 3.2.5.1, 3.2.7).

Each end says at which interval it wants to be pinged. Pings are voluntary: a peer is given up after two intervals without an
octet, and only once it has pinged. Knows no clock: the caller says what time it is, in seconds.
"""

from __future__ import annotations

__all__ = ["Heartbeats"]


class Heartbeats:
    """Silence in both directions; nothing happens before ``begin``."""

    __slots__ = ("_asked", "_heard", "_next", "_pinged", "_wanted")

    def __init__(self) -> None:
        self._asked = 0
        self._wanted = 0
        self._pinged = False
        self._heard: float | None = None
        self._next = 0.0

    def begin(self, asked: int, wanted: int, now: float) -> None:
        """The connection is tuned.

        Args:
            asked: the interval in seconds at which the peer wants pings; 0 for none.
            wanted: the interval at which we do.
            now: the time.
        """
        self._asked = asked
        self._wanted = wanted
        self._heard = now
        self._next = now + asked

    def heard(self, now: float) -> None:
        """Octets came."""
        self._heard = now

    def pinged(self) -> None:
        """The peer has sent a ping: it is to go on."""
        self._pinged = True

    def suspend(self) -> None:
        """Nothing is read for a while, so the peer's silence starts to count at the next look."""
        self._heard = None

    def deadline(self) -> float | None:
        """When there is something to look at; None for never."""
        times = [self._next] if self._asked else []
        if self._watches:
            times.append(self._next if self._heard is None else self._heard + 2 * self._wanted)
        return min(times, default=None)

    @property
    def _watches(self) -> bool:
        return bool(self._pinged and self._wanted)

    def due(self, now: float) -> bool:
        """Whether a ping is due; if so, sets the time of the next one."""
        if not self._asked or now < self._next:
            return False
        self._next = now + self._asked
        return True

    def silent(self, now: float, reading: bool) -> bool:
        """Whether the peer has pinged once and says nothing for two intervals; never while nothing is read."""
        if not self._watches or not reading:
            return False
        if self._heard is None:
            self._heard = now
        return now - self._heard >= 2 * self._wanted
