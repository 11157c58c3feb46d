"""The pauses between repeated attempts, and the point at which they stop.

Knows no clock and does not know the purpose of the attempts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.number_fields import check_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The pauses, in seconds, between attempts to dial again.

    The first pause is ``initial``; each further one is ``factor`` times the pause before it, up to ``maximum``.

    Attributes:
        jitter: multiply each pause by a random number between 0.5 and 1, so that many clients do not dial at the same time.
        attempts: attempts of one series before giving up; None for any number.
        give_up_after: seconds from the first failure of a series after which no attempt begins; None for any time.

    A series is the attempts between two successes. A success counts, and the next pause is ``initial`` again, once the peer
    has answered an attach, or the connection has lasted longer than the pause before it.

    Raises:
        LocalProtocolError: a pause is negative, the pauses become shorter, or no attempt is allowed.
    """

    initial: float = 0.1
    factor: float = 2.0
    maximum: float = 30.0
    jitter: bool = True
    attempts: int | None = None
    give_up_after: float | None = None

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.initial < 0 or self.factor < 1 or self.maximum < self.initial:
            raise LocalProtocolError(f"{self!r}: expected initial >= 0, factor >= 1 and maximum >= initial")
        if self.attempts is not None and self.attempts < 1:
            raise LocalProtocolError(f"attempts={self.attempts}: expected at least 1, or None for any number")
        if self.give_up_after is not None and not self.give_up_after > 0:
            raise LocalProtocolError(
                f"give_up_after={self.give_up_after}: expected seconds above 0, or None for any time"
            )

    def pauses(self) -> Iterator[float]:
        """Yield the pause before each attempt of a series, the first included."""
        pause = self.initial
        made = 0
        while self.attempts is None or made < self.attempts:
            yield pause * random.uniform(0.5, 1) if self.jitter else pause
            pause = min(pause * self.factor, self.maximum)
            made += 1


class Attempts:
    """Counts the attempts of a series, and computes the pause before each.

    Args:
        backoff: the pauses, and how many attempts there may be.

    Attributes:
        made: attempts of this series that have begun.
        pause: seconds of the last pause.
    """

    __slots__ = ("_backoff", "_began", "_reached", "_series", "made", "pause")

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._series: Iterator[float] | None = None
        self._began = 0.0
        self._reached: float | None = None
        self.made: int = 0
        self.pause: float = 0.0

    def next_pause(self, now: float) -> float | None:
        """Return the seconds until the next attempt, or None to give up.

        If the last series has ended, begin a new one, with its first pause.
        """
        if self._series is None:
            self._series = self._backoff.pauses()
            self._began = now
            self.made = 0
        self._reached = None
        limit = self._backoff.give_up_after
        pause = next(self._series, None)
        if pause is None or (limit is not None and now + pause > self._began + limit):
            return None
        self.made += 1
        self.pause = pause
        return pause

    def reached(self, now: float) -> None:
        """Note that the last attempt has succeeded; see ``lasted``."""
        self._reached = now

    def lasted(self, now: float) -> bool:
        """Whether the last success has lasted longer than the pause before it."""
        return self._reached is not None and now - self._reached > self.pause

    def end(self) -> None:
        """End the series: the next pause is the first one again."""
        self._series = None

    def __str__(self) -> str:
        return f"{self.made} attempt{'' if self.made == 1 else 's'}"
