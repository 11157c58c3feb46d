"""Keep the credit of a receiving link topped up (2.6.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.engine.states import LinkState

if TYPE_CHECKING:
    from trio_amqp10.engine.receiver import ReceiverLink

__all__ = ["CreditWindow"]

_ATTACHED = LinkState.ATTACHED


class CreditWindow:
    """How many deliveries a link keeps granted or waiting; asked for by halves, not one by one.

    Attributes:
        size: messages; 0 if nothing is granted by itself.
        half: at so many, more are granted.
    """

    __slots__ = ("half", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.half = size // 2

    def is_low(self, link: ReceiverLink) -> bool:
        """Whether it is time to grant more; False while the link is not attached."""
        return link.credit + len(link.queue) <= self.half and self.size > 0 and link.state is _ATTACHED

    def fill(self, link: ReceiverLink, most: int | None = None) -> None:
        """Grant what is missing, but never more than ``most``."""
        credit = self.size - len(link.queue)
        if most is not None and most < credit:
            credit = most
        if credit > link.credit:
            link.set_credit(credit)
