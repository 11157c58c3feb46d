"""A bound in octets on the deliveries that a link has buffered (2.5.6, 2.6.7).

Credit counts messages and the window counts transfers; neither is an octet, so two things work together::

    credit   = free // mean             how many messages of the usual size there is room for
    window   = free // max-frame-size   how many frames there is room for, whatever is in them

The first keeps the sender from beginning what would only wait; the second holds to the octet, also when
messages turn out larger than usual. What has come of a message that is not complete is not counted: it
could else never get in where it is larger than the bound. So what is held goes beyond it by less than one message.

Knows no session: the link tells it what comes and goes, and the session asks it for room.
"""

from __future__ import annotations

from typing import Final

__all__ = ["OctetBound"]

_WEIGHT = 8
"""A message counts for an eighth of the mean."""


class OctetBound:
    """What a link's queue holds, and may.

    Attributes:
        bound: octets that it may hold.
        held: octets of the complete deliveries in it.
        mean: octets of a message, as far as is known.
    """

    __slots__ = ("bound", "held", "mean")

    def __init__(self, bound: int, mean: float) -> None:
        self.bound: Final = bound
        self.held: int = 0
        self.mean: float = mean

    def came(self, size: int) -> None:
        """A delivery was queued."""
        self.held += size
        self.mean += (size - self.mean) / _WEIGHT

    def went(self, size: int) -> None:
        """One was taken from the queue."""
        self.held -= size

    def messages(self) -> int:
        """How many more messages of the usual size there is room for; one at least where nothing is held."""
        free = int((self.bound - self.held) / max(1.0, self.mean))
        return max(free, 0 if self.held else 1)

    def frames(self, size: int) -> int:
        """How many frames of ``size`` there is room for; one at least where nothing is held."""
        return max((self.bound - self.held) // size, 0 if self.held else 1)
