"""Outlets of a channel of 0-9-1: a consumer, which has a window, and a basic.get, which takes one message.

Know leases and deliveries; what the client answers is in ``consuming``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.content import BasicProperties
from trio_amqp10.amqp091.content import Content as Carried
from trio_amqp10.amqp091.values import Int64
from trio_amqp10.container.broker.queues import BrokerQueue
from trio_amqp10.container.endpoints import GivenLease, WindowOutlet
from trio_amqp10.container.nodes.queue import Queue
from trio_amqp10.errors import Condition, LocalProtocolError

from .content import to_published

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Interest, Node

    from .channel import ServerChannel
    from .content import Published

__all__ = ["NOTHING", "ChannelOutlet", "ConsumerOutlet", "GetOutlet", "is_quorum"]

NOTHING: Final = BasicProperties()
"""Stands for properties whose octets are sent as they are."""

_QUORUM: Final = "quorum"
_ATTEMPTS: Final = "x-delivery-count"


def is_quorum(node: Node) -> bool:
    """Whether it was declared as a quorum queue."""
    return isinstance(node, BrokerQueue) and node.arguments.get("x-queue-type") == _QUORUM


class ChannelOutlet(WindowOutlet):
    """What gives messages of one node to a channel.

    Args:
        channel: that receives them.
        node: that has them.
        name: of the queue, for messages that name no routing key.
        no_ack: whether a message is the client's once it is sent.
        others: as of ``WindowOutlet``.
    """

    def __init__(
        self,
        channel: ServerChannel,
        node: Node,
        name: str,
        on_closed: Callable[[str | None, str | None], object],
        *,
        no_ack: bool,
        window: int | None,
        interest: Interest | None = None,
    ) -> None:
        super().__init__(channel.peer, node, self._deliver, on_closed, window=window, interest=interest)
        self.address = node.address
        self.quorum = is_quorum(node)
        self._channel = channel
        self._name = name
        self._no_ack = no_ack

    def _deliver(self, content: Content, lease: GivenLease) -> None:
        channel = self._channel
        published = to_published(content, self._name)
        raw = published.raw
        if self.quorum and published.failures:
            headers = {**published.headers, _ATTEMPTS: Int64(published.failures)}
            carried = Carried(replace(published.properties, headers=headers), published.body)
        else:
            carried = Carried(NOTHING, published.body, raw)
        tag = channel.engine.numbers.deliveries.last + 1
        try:
            channel.engine.send(self._method(tag, published, lease), carried)
        except LocalProtocolError as fault:  # its properties are larger than a frame
            lease.rejected(Condition.RESOURCE_LIMIT_EXCEEDED.value, str(fault))
            return
        channel.peer.pump.ring()
        if self._no_ack:
            lease.accepted()
        else:
            channel.consuming.unacked[tag] = lease

    def _method(self, tag: int, published: Published, lease: GivenLease) -> Any:
        raise NotImplementedError


class ConsumerOutlet(ChannelOutlet):
    """A consumer; see ``ChannelOutlet``.

    Args:
        tag: its consumer tag.
        exclusive: whether no other consumer may have the queue.

    Attributes:
        tag, exclusive: as given.
    """

    def __init__(
        self,
        channel: ServerChannel,
        node: Node,
        name: str,
        tag: str,
        *,
        no_ack: bool,
        exclusive: bool,
        window: int | None,
        interest: Interest,
    ) -> None:
        super().__init__(
            channel,
            node,
            name,
            partial(channel.consuming.on_cancelled, tag),
            no_ack=no_ack,
            window=None if no_ack else window,
            interest=interest,
        )
        self.tag = tag
        self.exclusive = exclusive
        self._giving = False

    def ready(self) -> bool:
        return not self._giving and self._channel.consuming.has_room() and super().ready()

    def give(self, content: Content | Any, lease: Any, tag: bytes | None = None) -> None:
        self._giving = True
        try:
            super().give(content, lease, tag)
        finally:
            self._giving = False

    def wake(self) -> None:
        if self._giving:  # the node goes on by itself
            return
        if self._channel.consuming.settling:
            self._channel.consuming.wake_later(self)
        else:
            super().wake()

    def resize(self, window: int | None) -> None:
        """Another window from now on."""
        if not self._no_ack:
            self._window = window
            self.wake()

    def stop(self) -> None:
        """Nothing more is given; what was given stays with the client."""
        self._detach()

    def _deliver(self, content: Content, lease: GivenLease) -> None:
        super()._deliver(content, lease)
        if not self._no_ack:
            self._channel.consuming.out += 1

    def _method(self, tag: int, published: Published, lease: GivenLease) -> Any:
        return spec.BasicDeliver(
            consumer_tag=self.tag,
            delivery_tag=tag,
            redelivered=lease.redelivered,
            exchange=published.exchange,
            routing_key=published.routing_key,
        )


class GetOutlet(ChannelOutlet):
    """One basic.get."""

    def _method(self, tag: int, published: Published, lease: GivenLease) -> Any:
        node = self._node
        return spec.BasicGetOk(
            delivery_tag=tag,
            redelivered=lease.redelivered,
            exchange=published.exchange,
            routing_key=published.routing_key,
            message_count=node.available if isinstance(node, Queue) else 0,
        )
