"""Heartbeats: when to write one, and when the peer is lost.

Each end looks from time to time whether to write a heartbeat, and gives up a peer that was silent for too long. Silence does not
count while nothing is read. The caller passes the time in seconds.

Knows no clock and no protocol.
"""

from __future__ import annotations


class Heartbeats:
    """The timers of both directions of one connection; none runs before ``begin``.

    Attributes:
        patience: seconds of silence after which the peer is lost; 0 for any time.
    """

    __slots__ = ("_every", "_last_input", "_look", "patience")

    def __init__(self) -> None:
        self.patience: float = 0
        self._every: float = 0
        self._last_input: float | None = None
        self._look = 0.0

    def begin(self, every: float, patience: float, now: float) -> None:
        """Start the timers.

        Args:
            every: seconds between the times at which ``due`` is True; 0 for none.
            patience: see ``patience``.
            now: the current time.
        """
        self.patience = patience
        self._every = every
        self._last_input = now
        self._look = now + every

    def note_input(self, now: float) -> None:
        """Note that octets arrived."""
        self._last_input = now

    def suspend(self) -> None:
        """Note that nothing is read: the peer's silence counts again from the next check."""
        self._last_input = None

    def deadline(self) -> float | None:
        """Return the time of the next check; None for never."""
        times = [self._look] if self._every else []
        if self.patience:
            times.append(self._look if self._last_input is None else self._last_input + self.patience)
        return min(times, default=None)

    def due(self, now: float) -> bool:
        """Whether to write a heartbeat now; sets the time of the next check."""
        if now >= self._look:
            self._look = now + (self._every or self.patience)
            return self._every > 0
        return False

    def silent(self, now: float, reading: bool) -> bool:
        """Whether the peer sent nothing for too long; False while nothing is read."""
        if not self.patience or not reading:
            return False
        if self._last_input is None:
            self._last_input = now
        return now - self._last_input >= self.patience
