"""How long to wait before something is tried again.

Knows nothing of what is tried.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses between attempts, in seconds: ``initial``, then each ``factor`` times the one before, up to ``maximum``.

    Attributes:
        jitter: take a random part of each, between half of it and all, so that many clients do not come at once.
        attempts: in a row, before it is given up; None for any number.

    The row is over, and the next pause a short one, once the peer has answered an attach.

    Raises:
        LocalProtocolError: pauses that are none, or no attempt at all.
    """

    initial: float = 0.1
    factor: float = 2.0
    maximum: float = 30.0
    jitter: bool = True
    attempts: int | None = None

    def __post_init__(self) -> None:
        if self.initial < 0 or self.factor < 1 or self.maximum < self.initial:
            raise LocalProtocolError(
                f"{self!r}: initial >= 0, factor >= 1 and maximum >= initial are possible"
            )
        if self.attempts is not None and self.attempts < 1:
            raise LocalProtocolError(
                f"attempts={self.attempts}: at least 1 is possible, or None for any number"
            )

    def pauses(self) -> Iterator[float]:
        """Before each attempt of a row, the first included."""
        pause = self.initial
        made = 0
        while self.attempts is None or made < self.attempts:
            yield pause * random.uniform(0.5, 1) if self.jitter else pause
            pause = min(pause * self.factor, self.maximum)
            made += 1
