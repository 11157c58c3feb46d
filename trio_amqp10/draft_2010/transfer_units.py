"""Credit in transfer units: of a link whose receiver counts octets of messages too (D 1264-1278).

Where the receiver's attach has a ``transfer-unit``, the transfer-count goes up by one for each so many octets of a message, so that a
message takes as much credit as it has units, begun ones included. The engine counts messages, and is given credit for one at a time. A
message that the credit does not cover is sent as far as it goes (D 1024), and the rest waits for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.engine.serial_numbers import add, distance

if TYPE_CHECKING:
    from .outgoing_message import OutgoingMessage
    from .sections import DraftSection

__all__ = ["TransferUnits"]


class TransferUnits:
    """Count and limit of a sender of ours, in units.

    Args:
        unit: octets.

    Attributes:
        count: the transfer-count.
        limit: the highest that the receiver permits.
        rest: the message that waits for credit, and its sections.
    """

    __slots__ = ("_unit", "_used", "count", "limit", "rest")

    def __init__(self, unit: int) -> None:
        self._unit = unit
        self._used = 0
        self.count: int = 0
        self.limit: int = 0
        self.rest: tuple[OutgoingMessage, list[DraftSection]] | None = None

    @property
    def free(self) -> int:
        """Units that may be sent now."""
        return max(0, distance(self.limit, self.count))

    @property
    def messages(self) -> int:
        """Messages that the engine may begin now: one, if there is credit and none waits for more."""
        return int(self.free > 0 and self.rest is None)

    def use_up_credit(self) -> None:
        """The credit that is left counts as used (D 1020)."""
        if self.rest is None:
            self.count = self.limit

    def take(self, message: OutgoingMessage, sections: list[DraftSection]) -> tuple[int, int | None]:
        """Use credit for a message, or for what is left of it.

        Returns:
            The octet that the transfers due now begin at, and the one that they end before; None for all of it.
        """
        total = sum(len(octets) for _, octets in sections)
        start = self._used * self._unit
        left = max(1, -(-total // self._unit)) - self._used
        if left <= self.free:
            self.count = add(self.count, left)
            self._used = 0
            self.rest = None
            return start, None
        self._used += self.free
        self.count = self.limit
        self.rest = message, sections
        return start, self._used * self._unit
