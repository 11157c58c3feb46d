"""A message that came from a queue, and its settling (0-9-1, basic.deliver, basic.get-ok, basic.ack).

Settling is synchronous: what many deliveries say of themselves until the next write leaves in as few methods as can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from trio_amqp10.amqp091.content import BasicProperties
from trio_amqp10.amqp091.fast import NO_PROPERTIES
from trio_amqp10.amqp091.translate import to_sections
from trio_amqp10.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp091.content import Content

__all__ = ["Delivery", "DeliveryBase"]


class SettlingChannel(Protocol):
    """What a delivery asks of its channel: that of 0-9-1, or that of 10.3."""

    epoch: int

    def is_unsettled(self, tag: int, epoch: int) -> bool: ...
    def ack(self, tag: int, epoch: int, multiple: bool) -> None: ...
    def reject(self, tag: int, epoch: int, requeue: bool) -> None: ...


class _NackingChannel(SettlingChannel, Protocol):
    def nack(self, tag: int, epoch: int, requeue: bool, multiple: bool) -> None: ...


class DeliveryBase:
    """One message, with what versions have in common.

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
        """Whether it was given out before."""
        redelivered: bool = self._method.redelivered
        return redelivered

    @property
    def exchange(self) -> str:
        """The exchange to which it was published."""
        exchange: str = self._method.exchange
        return exchange

    @property
    def routing_key(self) -> str:
        """The key with which it was published."""
        routing_key: str = self._method.routing_key
        return routing_key

    @property
    def consumer_tag(self) -> str:
        """The consumer that got it; empty after a ``get``."""
        tag: str = getattr(self._method, "consumer_tag", "")
        return tag

    @property
    def message_count(self) -> int | None:
        """Messages that were left in the queue after a ``get``; None for a consumer's."""
        count: int | None = getattr(self._method, "message_count", None)
        return count

    @property
    def properties(self) -> BasicProperties:
        """The fourteen properties of the basic class (0-9-1, basic); None for one that is absent."""
        content = self._content
        if content.octets == NO_PROPERTIES:  # then all deliveries share them, until a program may change them
            self._content = content = content._replace(properties=BasicProperties(), octets=None)
        properties: BasicProperties = content.properties
        return properties

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
            trio_amqp10.amqp091.DeliveryLostError: the connection was lost since, and came back: the server gives the message out again.
            ChannelClosedError, ConnectionClosedError: the channel or the connection is gone.
            trio.ClosedResourceError: the channel was closed here.
        """
        self._channel.ack(self.tag, self._epoch, multiple)

    def reject(self, *, requeue: bool = True) -> None:
        """Refuse it (0-9-1, basic.reject). Synchronous; errors as ``ack``.

        Args:
            requeue: put it back into the queue; otherwise it is a dead letter, or is dropped.
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
        """This message as one of AMQP 1.0, by the rules that RabbitMQ 4 publishes; see ``amqp091.translate``.

        ``delivery_count`` is what a quorum queue says of failed deliveries in ``x-delivery-count``. What has no place in AMQP 1.0
        is left out: ``cluster_id``, decimals, and headers that are tables or arrays unless their names begin with ``x-``.
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
        """Refuse it (RabbitMQ's basic.nack). Synchronous; errors as ``ack``.

        Args:
            requeue: put it back into the queue; otherwise it goes to the queue's dead-letter exchange, or is dropped.
            multiple: refuse all unsettled deliveries of the channel up to this one.
        """
        self._channel.nack(self.tag, self._epoch, requeue, multiple)
