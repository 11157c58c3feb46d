"""CreditLimit: bounds the credit and unsettled messages of each link.

Link credit counts messages, whatever their size (2.6.7). So octets are converted to messages by the size of recent
messages: the largest one counts, and fades as smaller ones arrive. Before the first message, credit is small.

Knows receivers and numbers; neither the spool nor messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import trio_amqp10 as amqp

_FIRST_SIZE: Final = 2**20
"""The assumed octets of a message before the first has arrived."""
_FADING: Final = 0.5
"""The factor by which the largest size fades with each batch of smaller messages."""


class CreditLimit:
    """The credit of the links of one connection.

    Args:
        messages: the most messages granted and not settled, for each link.
        octets: about the most octets of them, for each link; a larger message arrives alone.
    """

    def __init__(self, messages: int, octets: int) -> None:
        self._messages = messages
        self._octets = octets
        self._size: float | None = None
        self._granted: dict[amqp.Receiver, int] = {}

    @property
    def most(self) -> int:
        """The most messages that a link may have granted and not settled; at least 1."""
        return max(1, min(self._messages, int(self._octets / (self._size or _FIRST_SIZE))))

    @property
    def links(self) -> list[amqp.Receiver]:
        """The links that have been granted credit."""
        return list(self._granted)

    def weigh(self, size: int) -> None:
        """Take into account the octets of the largest message of a batch."""
        self._size = max(float(size), (self._size or 0.0) * _FADING, 1.0)

    def grant(self, receiver: amqp.Receiver) -> None:
        """Raise the credit of a link to its limit."""
        granted = self._granted.get(receiver, 0)
        more = self.most - granted
        if more > 0:
            self._granted[receiver] = granted + more
            receiver.grant(more)

    def settled(self, receiver: amqp.Receiver, count: int) -> None:
        """Note that so many messages of a link are settled."""
        self._granted[receiver] = self._granted.get(receiver, 0) - count

    def forget_links(self) -> None:
        """Forget all links, because their connection is closed; keep the size of messages."""
        self._granted.clear()
