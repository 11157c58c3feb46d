"""How long to wait before something is tried again, and when to stop trying.

Knows nothing of what is tried, and no clock.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Attempts", "Backoff"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses between attempts, in seconds: ``initial``, then each ``factor`` times the one before, up to ``maximum``.

    Attributes:
        jitter: take a random part of each, between half of it and all, so that many clients do not come at once.
        attempts: in a row, before it is given up; None for any number.
        give_up_after: seconds from the first failure in a row after which no attempt begins; None for any time.

    The row is over, and the next pause a short one, once the peer has answered an attach, or a connection has lasted longer
    than the pause before it.

    Raises:
        LocalProtocolError: pauses that are none, or no attempt at all.
    """

    initial: float = 0.1
    factor: float = 2.0
    maximum: float = 30.0
    jitter: bool = True
    attempts: int | None = None
    give_up_after: float | None = None

    def __post_init__(self) -> None:
        if self.initial < 0 or self.factor < 1 or self.maximum < self.initial:
            raise LocalProtocolError(
                f"{self!r}: initial >= 0, factor >= 1 and maximum >= initial are possible"
            )
        if self.attempts is not None and self.attempts < 1:
            raise LocalProtocolError(f"attempts={self.attempts}: expected at least 1, or None for any number")
        if self.give_up_after is not None and not self.give_up_after > 0:
            raise LocalProtocolError(
                f"give_up_after={self.give_up_after}: seconds above 0 are possible, or None for any time"
            )

    def pauses(self) -> Iterator[float]:
        """Before each attempt of a row, the first included."""
        pause = self.initial
        made = 0
        while self.attempts is None or made < self.attempts:
            yield pause * random.uniform(0.5, 1) if self.jitter else pause
            pause = min(pause * self.factor, self.maximum)
            made += 1


class Attempts:
    """Attempts in a row to have one thing again: the pause before each, until they are given up.

    Args:
        backoff: how often, and for how long.

    Attributes:
        made: attempts of this row that have begun.
        pause: seconds of the last pause.
    """

    __slots__ = ("_backoff", "_began", "_reached", "_row", "made", "pause")

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._row: Iterator[float] | None = None
        self._began = 0.0
        self._reached: float | None = None
        self.made: int = 0
        self.pause: float = 0.0

    def next_pause(self, now: float) -> float | None:
        """Seconds until the next attempt of the row; None if there is to be none. A new row begins with its first pause."""
        if self._row is None:
            self._row = self._backoff.pauses()
            self._began = now
            self.made = 0
        self._reached = None
        limit = self._backoff.give_up_after
        pause = next(self._row, None)
        if pause is None or (limit is not None and now + pause > self._began + limit):
            return None
        self.made += 1
        self.pause = pause
        return pause

    def reached(self, now: float) -> None:
        """The last attempt has succeeded; the row ends if that lasts."""
        self._reached = now

    def lasted(self, now: float) -> bool:
        """Whether the success of the last attempt has lasted for longer than the pause before it."""
        return self._reached is not None and now - self._reached > self.pause

    def end(self) -> None:
        """The row is over: the next pause is the first one again."""
        self._row = None

    def __str__(self) -> str:
        return f"{self.made} attempt{'' if self.made == 1 else 's'}"
