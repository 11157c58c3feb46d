"""A message from a queue, and its settlement (0-9-1, basic.deliver, basic.ack).

Settling is synchronous: settlements are collected until the next write, and then sent in as few methods as
  possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from trio_amqp10.amqp091.conversion.translate import to_sections
from trio_amqp10.amqp091.engine.contents_shortcut import NO_PROPERTIES
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp10.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp091.wire.content import Content


class SettlingChannel(Protocol):
    """The members of a channel that a delivery uses.

    ``ChannelBase`` implements them; a protocol avoids a circle of imports.
    """

    epoch: int

    def is_unsettled(self, tag: int, epoch: int) -> bool: ...
    def ack(self, tag: int, epoch: int, multiple: bool) -> None: ...
    def reject(self, tag: int, epoch: int, requeue: bool) -> None: ...


class _NackingChannel(SettlingChannel, Protocol):
    def nack(self, tag: int, epoch: int, requeue: bool, multiple: bool) -> None: ...


class DeliveryBase:
    """One message, with the parts that both versions share.

    Attributes:
        body: its octets.
        tag: its delivery tag, from 1 for each channel.
    """

    __slots__ = ("_channel", "_content", "_epoch", "_method", "body", "tag")

    def __init__(
        self, channel: SettlingChannel, method: Any, content: Content, epoch: int | None = None
    ) -> None:
        self._channel = channel
        self._content = content
        self._epoch = channel.epoch if epoch is None else epoch
        self._method = method
        self.body: bytes = content.body
        self.tag: int = method.delivery_tag

    @property
    def redelivered(self) -> bool:
        """Whether the server has delivered the message before."""
        redelivered: bool = self._method.redelivered
        return redelivered

    @property
    def exchange(self) -> str:
        """The exchange to which the message was published."""
        exchange: str = self._method.exchange
        return exchange

    @property
    def routing_key(self) -> str:
        """The routing key of the message."""
        routing_key: str = self._method.routing_key
        return routing_key

    @property
    def consumer_tag(self) -> str:
        """The tag of the consumer that received the message; empty after a ``get``."""
        tag: str = getattr(self._method, "consumer_tag", "")
        return tag

    @property
    def message_count(self) -> int | None:
        """The number of messages left in the queue after a ``get``; otherwise None."""
        count: int | None = getattr(self._method, "message_count", None)
        return count

    @property
    def properties(self) -> BasicProperties:
        """The fourteen properties of the basic class (0-9-1, basic).

        The value of an absent property is None.
        """
        content = self._content
        # All contents without properties share one object; make another, because the program may change it.
        if content.octets == NO_PROPERTIES:
            self._content = content = content._replace(properties=BasicProperties(), octets=None)
        properties: BasicProperties = content.properties
        return properties

    @property
    def headers(self) -> Mapping[str, Any]:
        """The property ``headers``; empty if it is absent."""
        return self._content.properties.headers or {}

    @property
    def settled(self) -> bool:
        """Whether the delivery needs no settlement any more."""
        return not self._channel.is_unsettled(self.tag, self._epoch)

    def ack(self, *, multiple: bool = False) -> None:
        """Accept the message: the server may forget it (0-9-1, basic.ack).

        Synchronous; the acknowledgement is sent with the next write of the connection.

        Args:
            multiple: accept all unsettled deliveries of the channel up to this one.

        Raises:
            LocalProtocolError: the delivery is already settled, or came with ``no_ack``.
            trio_amqp10.amqp091.DeliveryLostError: the connection was lost since then, and restored: the server
                delivers the message again.
            ChannelClosedError, ConnectionClosedError: the channel or the connection is closed or lost.
            trio.ClosedResourceError: the channel was closed here.
        """
        self._channel.ack(self.tag, self._epoch, multiple)

    def reject(self, *, requeue: bool = True) -> None:
        """Refuse the message (0-9-1, basic.reject). Synchronous; errors as ``ack``.

        Args:
            requeue: put the message back into the queue; otherwise it is dead-lettered or dropped.
        """
        self._channel.reject(self.tag, self._epoch, requeue)

    def __repr__(self) -> str:
        return (
            f"<Delivery {self.tag}, exchange {self.exchange!r}, key {self.routing_key!r}, {len(self.body)} octets"
            f"{', redelivered' if self.redelivered else ''}>"
        )


class Delivery(DeliveryBase):
    """One message.

    Attributes:
        body: its octets.
        tag: its delivery tag, from 1 for each channel.
    """

    __slots__ = ()

    _channel: _NackingChannel

    def to_message(self) -> Message:
        """Return this message as an AMQP 1.0 message.

        The rules are those that RabbitMQ 4 publishes; see ``amqp091.translate``. ``delivery_count`` is the
        number of failed deliveries, from the header ``x-delivery-count`` of a quorum queue. Data without an
        equivalent in AMQP 1.0 is left out: ``cluster_id``, decimals, and headers that are tables or arrays
        unless their names begin with ``x-``.
        """
        content = self._content
        failures = self.headers.get("x-delivery-count")
        return Message.from_payload(
            to_sections(
                content.properties,
                content.body,
                exchange=self.exchange,
                routing_key=self.routing_key,
                failures=failures if isinstance(failures, int) and 0 <= failures < 2**32 else 0,
                redelivered=self.redelivered,
            )
        )

    def nack(self, *, requeue: bool = True, multiple: bool = False) -> None:
        """Refuse the message (RabbitMQ's basic.nack). Synchronous; errors as ``ack``.

        Args:
            requeue: put the message back into the queue; otherwise it is dead-lettered or dropped.
            multiple: refuse all unsettled deliveries of the channel up to this one.
        """
        self._channel.nack(self.tag, self._epoch, requeue, multiple)
