"""A message that came from a queue, and its settling (0-9-1, basic.deliver, basic.get-ok, basic.ack).

Settling is synchronous: what many deliveries say of themselves until the next write leaves in as few methods as can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp091.content import BasicProperties, Content
    from trio_amqp10.amqp091.spec import BasicDeliver, BasicGetOk

    from .channel import Channel

__all__ = ["Delivery"]


class Delivery:
    """One message.

    Attributes:
        body: its octets.
        tag: its delivery tag, from 1 for each channel.
        redelivered: whether it was given out before.
        exchange: the exchange to which it was published.
        routing_key: the key with which it was published.
        consumer_tag: the consumer that got it; empty after a ``get``.
        message_count: messages that were left in the queue after a ``get``; None for a consumer's.
    """

    __slots__ = (
        "_channel",
        "_content",
        "_epoch",
        "body",
        "consumer_tag",
        "exchange",
        "message_count",
        "redelivered",
        "routing_key",
        "tag",
    )

    def __init__(self, channel: Channel, method: BasicDeliver | BasicGetOk, content: Content) -> None:
        self._channel = channel
        self._content = content
        self._epoch = channel.epoch
        self.body = content.body
        self.tag = method.delivery_tag
        self.redelivered = method.redelivered
        self.exchange = method.exchange
        self.routing_key = method.routing_key
        self.consumer_tag: str = getattr(method, "consumer_tag", "")
        self.message_count: int | None = getattr(method, "message_count", None)

    @property
    def properties(self) -> BasicProperties:
        """The fourteen properties of the basic class (0-9-1, basic); None for one that is absent."""
        return self._content.properties

    @property
    def headers(self) -> Mapping[str, Any]:
        """The property ``headers``; empty if it is absent."""
        return self._content.properties.headers or {}

    @property
    def settled(self) -> bool:
        """Whether the server waits for no answer to it any more."""
        return not self._channel.is_unsettled(self.tag, self._epoch)

    def ack(self, *, multiple: bool = False) -> None:
        """Accept it: the server may forget it (0-9-1, basic.ack). Synchronous; written with the next pass.

        Args:
            multiple: accept all unsettled deliveries of the channel up to this one.

        Raises:
            LocalProtocolError: it is settled already, or came with ``no_ack``.
            DeliveryLostError: the connection was lost since, and came back: the server gives the message out again.
            ChannelClosedError, ConnectionClosedError: the channel or the connection is gone.
            trio.ClosedResourceError: the channel was closed here.
        """
        self._channel.ack(self.tag, self._epoch, multiple)

    def nack(self, *, requeue: bool = True, multiple: bool = False) -> None:
        """Refuse it (RabbitMQ's basic.nack). Synchronous; errors as ``ack``.

        Args:
            requeue: put it back into the queue; otherwise it goes to the queue's dead-letter exchange, or is dropped.
            multiple: refuse all unsettled deliveries of the channel up to this one.
        """
        self._channel.nack(self.tag, self._epoch, requeue, multiple)

    def reject(self, *, requeue: bool = True) -> None:
        """Refuse it (0-9-1, basic.reject); as ``nack``, for servers without that. Errors as ``ack``."""
        self._channel.reject(self.tag, self._epoch, requeue)

    def __repr__(self) -> str:
        return (
            f"<Delivery {self.tag}, exchange {self.exchange!r}, key {self.routing_key!r}, {len(self.body)} octets"
            f"{', redelivered' if self.redelivered else ''}>"
        )
