"""Outlets of a channel of 0-9-1: a consumer, which has a window, and a basic.get, which takes one message.

Know leases and deliveries; what the client answers is in ``consuming``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from trio_amqp10.amqp091.content import BasicProperties
from trio_amqp10.amqp091.content import Content as Carried
from trio_amqp10.amqp091.states import ChannelState
from trio_amqp10.amqp091.values import Int64
from trio_amqp10.container.broker.broker_queue import BrokerQueue
from trio_amqp10.container.endpoints import GivenLease, WindowOutlet
from trio_amqp10.container.nodes.node import NotTakenError
from trio_amqp10.container.nodes.queue import Queue
from trio_amqp10.errors import LocalProtocolError

from .native_message import to_published

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.channel import Channel
    from trio_amqp10.amqp091.methods import Method
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.form_registry import Wants
    from trio_amqp10.container.nodes.node import Node, SubscriptionTerms
    from trio_amqp10.container.protocols.channel_peer import ChannelPeer

    from .native_message import Published
    from .rabbitmq_compatibility import Habits

__all__ = ["NOTHING", "ChannelOutlet", "ConsumerOutlet", "GetOutlet", "is_quorum"]

NOTHING: Final = BasicProperties()
"""Stands for properties whose octets are sent as they are."""

_QUORUM: Final = "quorum"
_new: Final[Callable[..., Any]] = cast("Any", tuple).__new__
"""Makes a named tuple without its own ``__new__``, which costs more than what it holds."""

_ATTEMPTS: Final = "x-delivery-count"


def is_quorum(node: Node) -> bool:
    """Whether it was declared as a quorum queue."""
    return isinstance(node, BrokerQueue) and node.arguments.get("x-queue-type") == _QUORUM


class OutletConsuming(Protocol):
    """What an outlet asks of the consuming half of its channel."""

    unacked: dict[int, GivenLease]
    settling: bool
    out: int

    def has_room(self) -> bool: ...
    def wake_later(self, outlet: ConsumerOutlet) -> None: ...
    def on_cancelled(self, tag: str, condition: str | None, description: str | None) -> None: ...


class OutletChannel(Protocol):
    """What an outlet asks of its channel."""

    @property
    def peer(self) -> ChannelPeer[Any, Any]: ...
    @property
    def habits(self) -> Habits: ...
    @property
    def engine(self) -> Channel: ...
    @property
    def consuming(self) -> OutletConsuming: ...
    def make(self, name: str, **arguments: Any) -> Method: ...


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
        channel: OutletChannel,
        node: Node,
        name: str,
        *,
        no_ack: bool,
        window: int | None,
        wants: Wants | None = None,
        subscription_terms: SubscriptionTerms | None = None,
    ) -> None:
        super().__init__(
            channel.peer,
            node,
            window=window,
            wants=wants,
            subscription_terms=subscription_terms,
        )
        self.address: str = node.address
        self.quorum: Final = is_quorum(node)
        self._channel = channel
        self._name = name
        self._no_ack = no_ack

    def deliver(self, content: Content, lease: GivenLease) -> bool:
        """Send a message to the client; whether it waits for an acknowledgement."""
        channel = self._channel
        published = self.published(content)
        try:
            tag = self._write(published, lease, self._carried(published))
        except LocalProtocolError as fault:
            if channel.engine.state is not ChannelState.OPEN:
                raise
            raise NotTakenError(f"it cannot be written: {fault}") from fault
        channel.peer.messages_out += 1
        if self._no_ack:
            lease.accepted()
            return False
        channel.consuming.unacked[tag] = lease
        return True

    def published(self, content: Content) -> Published:
        """The message as 0-9-1 has it.

        Raises:
            NotTakenError: it cannot be translated.
        """
        try:
            return to_published(content, self._name, like_rabbitmq=self._channel.habits.like_rabbitmq)
        except Exception as fault:
            raise NotTakenError(f"it cannot be translated: {fault!r}") from fault

    @property
    def counts_requeued(self) -> bool:
        """Whether what is requeued has failed: from a quorum queue, and where what fails waits for its next delivery."""
        node = self._node
        return self.quorum or (isinstance(node, Queue) and node.policy.redelivery_delay is not None)

    def _carried(self, published: Published) -> Carried:
        """The content that the client gets: its octets as they came, but for the count of attempts of a quorum queue."""
        if self.quorum and published.failures:
            headers = {**published.headers, _ATTEMPTS: Int64(published.failures)}
            return Carried(replace(published.properties, headers=headers), published.body)
        carried: Carried = _new(Carried, (NOTHING, published.body, published.raw))
        return carried

    def _write(self, published: Published, lease: GivenLease, carried: Carried) -> int:
        """Send it; returns the delivery tag."""
        raise NotImplementedError


class ConsumerOutlet(ChannelOutlet):
    """A consumer; see ``ChannelOutlet``.

    Args:
        tag: its consumer tag.
        exclusive: whether no other consumer may have the queue.

    Attributes:
        tag, exclusive: as given.
        messages: that it was given.
    """

    def __init__(
        self,
        channel: OutletChannel,
        node: Node,
        name: str,
        tag: str,
        *,
        no_ack: bool,
        exclusive: bool,
        window: int | None,
        wants: Wants | None,
        subscription_terms: SubscriptionTerms,
    ) -> None:
        super().__init__(
            channel,
            node,
            name,
            no_ack=no_ack,
            window=None if no_ack else window,
            wants=wants,
            subscription_terms=subscription_terms,
        )
        self.tag = tag
        self.exclusive = exclusive
        self.messages: int = 0

    def statistics(self) -> dict[str, Any]:
        """As those of a link: its credit is what it may be given now, None for any number."""
        unsettled = len(self.unsettled)
        return {
            "state": "GONE" if self.closed else "ATTACHED",
            "address": self.address,
            "messages": self.messages,
            "credit": None if self._window is None else max(0, self._window - unsettled),
            "unsettled": unsettled,
        }

    def ready(self) -> bool:
        return self._channel.consuming.has_room() and super().ready()

    def wake(self) -> None:
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

    def deliver(self, content: Content, lease: GivenLease) -> bool:
        waits = super().deliver(content, lease)
        self.messages += 1
        if waits:
            self._channel.consuming.out += 1
        return waits

    def ended_by_node(self, condition: str | None, description: str | None) -> None:
        self._channel.consuming.on_cancelled(self.tag, condition, description)

    def _write(self, published: Published, lease: GivenLease, carried: Carried) -> int:
        return self._channel.engine.deliver(
            self.tag, published.exchange, published.routing_key, carried, redelivered=lease.redelivered
        )


class GetOutlet(ChannelOutlet):
    """One basic.get."""

    def _write(self, published: Published, lease: GivenLease, carried: Carried) -> int:
        node, engine = self._node, self._channel.engine
        tag = engine.numbers.deliveries.last + 1
        method = self._channel.make(
            "basic.get-ok",
            delivery_tag=tag,
            redelivered=lease.redelivered,
            exchange=published.exchange,
            routing_key=published.routing_key,
            message_count=node.available if isinstance(node, Queue) else 0,
        )
        engine.send(method, carried)
        return tag
