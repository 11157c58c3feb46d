"""Credit in transfer units, for a receiver that counts octets too (D 1264-1278).

If the receiver's attach has a ``transfer-unit``, the transfer-count increases by one for each such number of octets of
a message, so a message takes as much credit as it has units, the last one in part. The engine counts messages, and gets
credit for one at a time. If the credit is less than a message, as much of it is sent as the credit covers (D 1024), and
the rest waits for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.amqp10.engine.serial_numbers import add, distance

if TYPE_CHECKING:
    from .outgoing_message import OutgoingMessage
    from .sections import DraftSection


class TransferUnits:
    """The transfer-count and limit, in units, of a link on which this peer sends.

    Args:
        unit: octets of one unit.

    Attributes:
        count: the transfer-count.
        limit: the highest count that the receiver permits.
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
        """Messages that the engine may begin now.

        One, if there is credit and no message waits for more.
        """
        return int(self.free > 0 and self.rest is None)

    def use_up_credit(self) -> None:
        """Count the remaining credit as used, for a receiver that drains (D 1020)."""
        if self.rest is None:
            self.count = self.limit

    def take(self, message: OutgoingMessage, sections: list[DraftSection]) -> tuple[int, int | None]:
        """Use credit for a message, or for the rest of it.

        Returns:
            The first octet to send now, and the octet to end before; None for the end of the message.
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
