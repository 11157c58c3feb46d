"""CreditLimit: how many messages each link may have granted and not settled, by number and by octets.

AMQP grants messages, whatever their size (2.6.7); so octets are turned into messages by the size of those that came
lately. The largest counts, and less and less as others come. Before any has come, few are granted.

Knows receivers and numbers; neither the spool nor what is received.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import trio_amqp10 as amqp

__all__ = ["CreditLimit"]

_FIRST_SIZE: Final = 2**20
"""Octets that a message is taken to have before any has come."""
_FADING: Final = 0.5
"""What is left of the size of the largest message with each batch that has smaller ones."""


class CreditLimit:
    """What the links of one connection may have granted.

    Args:
        messages: at most, for each link.
        octets: at most, for each link, about; a message that is larger comes alone.
    """

    def __init__(self, messages: int, octets: int) -> None:
        self._messages = messages
        self._octets = octets
        self._size: float | None = None
        self._granted: dict[amqp.Receiver, int] = {}

    @property
    def most(self) -> int:
        """What a link may have granted and not settled; at least one message."""
        return max(1, min(self._messages, int(self._octets / (self._size or _FIRST_SIZE))))

    @property
    def links(self) -> list[amqp.Receiver]:
        """The links that had a grant."""
        return list(self._granted)

    def weigh(self, size: int) -> None:
        """The largest message of a batch had so many octets."""
        self._size = max(float(size), (self._size or 0.0) * _FADING, 1.0)

    def grant(self, receiver: amqp.Receiver) -> None:
        """Grant what the link may have, and has not."""
        granted = self._granted.get(receiver, 0)
        more = self.most - granted
        if more > 0:
            self._granted[receiver] = granted + more
            receiver.grant(more)

    def settled(self, receiver: amqp.Receiver, count: int) -> None:
        """So many of the link's messages are settled."""
        self._granted[receiver] = self._granted.get(receiver, 0) - count

    def forget_links(self) -> None:
        """Their connection is gone; how large messages are is still known."""
        self._granted.clear()
