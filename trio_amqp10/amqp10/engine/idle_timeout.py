"""Idle time-outs of both ends: when to send, and when the peer is dead (2.4.5).

Knows no clock: the caller passes the time, in seconds of its own clock.
"""

from __future__ import annotations


class IdleTimeout:
    """The two idle time-outs of a connection.

    We announce half of our own threshold, so that a late frame is not fatal. For the peer's time-out a frame
    must be sent in every half of it: a check every quarter writes an empty frame if no other frame was
    written since the last check.

    Args:
        threshold: seconds of silence after which the peer is dead; None for no limit.
    """

    __slots__ = ("_heartbeat_at", "_quarter", "_threshold", "last_received")

    def __init__(self, threshold: float | None) -> None:
        self._threshold = threshold
        self._quarter: float | None = None
        self._heartbeat_at: float | None = None
        self.last_received: float | None = None

    @property
    def announced(self) -> int | None:
        """The idle-time-out of our open, in milliseconds; None for no time-out."""
        return None if self._threshold is None else max(1, int(min(self._threshold * 500, 0xFFFFFFFF)))

    def peer_wants(self, milliseconds: int | None, now: float) -> None:
        """Set the peer's idle-time-out; 0 and None both mean no time-out."""
        if milliseconds:
            self._quarter = milliseconds / 4000
            self._heartbeat_at = now + self._quarter

    def deadline(self) -> float | None:
        """Return the time of the next check, or None."""
        if self._threshold is None or self.last_received is None:
            return self._heartbeat_at
        silent_at = self.last_received + self._threshold
        return silent_at if self._heartbeat_at is None else min(silent_at, self._heartbeat_at)

    def silent_for(self, now: float) -> float | None:
        """Return the seconds of silence of the peer, or None if they are allowed."""
        if self._threshold is None or self.last_received is None:
            return None
        silence = now - self.last_received
        return silence if silence >= self._threshold else None

    def exceeded(self, now: float, wrote: bool) -> float | None:
        """Return for how many seconds we wrote nothing, if the peer has given us up.

        This is a lower bound. The peer gives up after twice its announced time, which should be half of its
        threshold. It happens only if a check comes much too late, because the process or the machine stood
        still.
        """
        if wrote or self._quarter is None or self._heartbeat_at is None:
            return None
        silence = now - self._heartbeat_at + self._quarter
        return silence if silence >= 8 * self._quarter else None

    def heartbeat_due(self, now: float, wrote: bool) -> bool | None:
        """Return whether an empty frame must be written; None before the next check."""
        if self._quarter is None or self._heartbeat_at is None or now < self._heartbeat_at:
            return None
        self._heartbeat_at = now + self._quarter
        return not wrote
