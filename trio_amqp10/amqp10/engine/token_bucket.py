"""A token bucket: a burst at once, then a rate per second.

Knows no clock: the caller passes the time.
"""

from __future__ import annotations


class TokenBucket:
    """A limit of ``burst`` events at once, and ``per_second`` after those.

    A burst of None means no limit.
    """

    __slots__ = ("_burst", "_left", "_per_second", "_since")

    def __init__(self, burst: int | None, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._left = float(burst or 0)
        self._since = 0.0

    def allows(self, now: float, tokens: float = 1.0) -> bool:
        """Take ``tokens`` if there are as many; return whether there were.

        At least one and at most a quarter of the burst is taken.
        """
        if self._burst is None:
            return True
        self._left = min(float(self._burst), self._left + (now - self._since) * self._per_second)
        self._since = now
        tokens = max(1.0, min(tokens, self._burst / 4))
        if self._left < tokens:
            return False
        self._left -= tokens
        return True
