"""Idle time-outs of both ends: when to send, and when the peer is dead (2.4.5).

Knows no clock: the caller says what time it is, in seconds of its own clock.
"""

from __future__ import annotations

__all__ = ["IdleTimeout"]


class IdleTimeout:
    """The two idle time-outs of a connection.

    Half of our own threshold is what we announce, so that a frame that is late is not fatal; the
    peer's is met with a frame in every half of it. To that end we look every quarter, and write an
    empty frame where nothing else was written since the last look.
    """

    __slots__ = ("_heartbeat_at", "_quarter", "_threshold", "last_received")

    def __init__(self, threshold: float | None) -> None:
        self._threshold = threshold
        self._quarter: float | None = None
        self._heartbeat_at: float | None = None
        self.last_received: float | None = None

    @property
    def announced(self) -> int | None:
        """What our open says, in milliseconds; None for no time-out."""
        return None if self._threshold is None else max(1, min(int(self._threshold * 500), 0xFFFFFFFF))

    def peer_wants(self, milliseconds: int | None, now: float) -> None:
        """The peer's open: 0 and None both say that it does not mind silence."""
        if milliseconds:
            self._quarter = milliseconds / 4000
            self._heartbeat_at = now + self._quarter

    def deadline(self) -> float | None:
        """When there is something to look at."""
        if self._threshold is None or self.last_received is None:
            return self._heartbeat_at
        silent_at = self.last_received + self._threshold
        return silent_at if self._heartbeat_at is None else min(silent_at, self._heartbeat_at)

    def silent_for(self, now: float) -> float | None:
        """Seconds of silence, if they are too many."""
        if self._threshold is None or self.last_received is None:
            return None
        silence = now - self.last_received
        return silence if silence >= self._threshold else None

    def exceeded(self, now: float, wrote: bool) -> float | None:
        """Seconds in which we wrote nothing, if they are more than the peer waits; they are at least so many.

        That is twice what it announced, which should be half of its threshold. It takes a look that comes much too
        late, because the process or the machine stood still.
        """
        if wrote or self._quarter is None or self._heartbeat_at is None:
            return None
        silence = now - self._heartbeat_at + self._quarter
        return silence if silence >= 8 * self._quarter else None

    def heartbeat_due(self, now: float, wrote: bool) -> bool | None:
        """None before the next look is due; then whether an empty frame is called for."""
        if self._quarter is None or self._heartbeat_at is None or now < self._heartbeat_at:
            return None
        self._heartbeat_at = now + self._quarter
        return not wrote
