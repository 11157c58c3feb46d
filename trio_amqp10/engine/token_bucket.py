"""A bucket of tokens: so many at once, then so many a second.

Knows no clock: the caller says what time it is.
"""

from __future__ import annotations

__all__ = ["TokenBucket"]


class TokenBucket:
    """Allows ``burst`` events at once and ``per_second`` after those; a burst of None allows all."""

    __slots__ = ("_burst", "_left", "_per_second", "_since")

    def __init__(self, burst: int | None, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._left = float(burst or 0)
        self._since = 0.0

    def allows(self, now: float, tokens: float = 1.0) -> bool:
        """Take one token, if there is one, or so many; what takes more than a quarter of all at once takes that."""
        if self._burst is None:
            return True
        self._left = min(float(self._burst), self._left + (now - self._since) * self._per_second)
        self._since = now
        tokens = max(1.0, min(tokens, self._burst / 4))
        if self._left < tokens:
            return False
        self._left -= tokens
        return True
