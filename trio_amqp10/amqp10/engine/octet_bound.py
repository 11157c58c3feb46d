"""A bound in octets on the deliveries that a link has buffered (2.5.6, 2.6.7).

Credit counts messages and the window counts transfers, but neither counts octets, so two numbers work
together::

    credit   = free // mean             how many messages of the usual size there is room for
    window   = free // max-frame-size   how many frames there is room for, of any content

The credit keeps the sender from beginning messages that would only wait. The window enforces the bound in
octets, even if messages are larger than usual. The octets of an incomplete message are not counted, because
otherwise a message larger than the bound could never arrive. So the bound may be exceeded by less than one
message.

Knows no session: the link reports arrivals and removals, and the session asks for room.
"""

from __future__ import annotations

from typing import Final

_WEIGHT = 8
"""Each message changes the mean by one eighth of the difference."""


class OctetBound:
    """The octets in a link's queue, and their bound.

    Attributes:
        bound: octets that the queue may hold.
        held: octets of the complete deliveries in it.
        mean: the estimated octets of a message.
    """

    __slots__ = ("bound", "held", "mean")

    def __init__(self, bound: int, mean: float) -> None:
        self.bound: Final = bound
        self.held: int = 0
        self.mean: float = mean

    def came(self, size: int) -> None:
        """Count a delivery that was queued."""
        self.held += size
        self.mean += (size - self.mean) / _WEIGHT

    def went(self, size: int) -> None:
        """Count a delivery that was taken from the queue."""
        self.held -= size

    def messages(self) -> int:
        """Return how many messages of the usual size fit; at least 1 if none is held."""
        free = int((self.bound - self.held) / max(1.0, self.mean))
        return max(free, 0 if self.held else 1)

    def frames(self, size: int) -> int:
        """Return how many frames of ``size`` octets fit; at least 1 if none is held."""
        return max((self.bound - self.held) // size, 0 if self.held else 1)
