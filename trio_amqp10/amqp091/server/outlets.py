"""The outlets of a 0-9-1 channel: a consumer with a window, and a basic.get.

Outlets send deliveries and keep leases; ``consuming`` handles the client's acknowledgements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.content import Content as Carried
from trio_amqp10.amqp091.wire.typed_values import Int64
from trio_amqp10.broker.endpoints import GivenLease, WindowOutlet
from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.nodes.node import NotTakenError
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.core.errors import LocalProtocolError

from .native_message import to_published

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.engine.channel import Channel
    from trio_amqp10.amqp091.wire.methods import Method
    from trio_amqp10.broker.channel_peer import ChannelPeer
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.form_registry import Wants
    from trio_amqp10.broker.nodes.node import Node, SubscriptionTerms

    from .native_message import Published
    from .server_habits import Habits

NOTHING: Final = BasicProperties()
"""A placeholder for properties whose received octets are sent."""

_QUORUM: Final = "quorum"
_new: Final[Callable[..., Any]] = cast("Any", tuple).__new__
"""Makes a named tuple without its own ``__new__``, in half of the time."""

_ATTEMPTS: Final = "x-delivery-count"


def is_quorum(node: Node) -> bool:
    """Whether the node was declared as a quorum queue."""
    return isinstance(node, BrokerQueue) and node.arguments.get("x-queue-type") == _QUORUM


class OutletConsuming(Protocol):
    """The members of the channel's consuming half that an outlet uses.

    ``Consuming`` implements them; a protocol avoids a circle of imports.
    """

    unacked: dict[int, GivenLease]
    settling: bool
    out: int

    def has_room(self) -> bool: ...
    def wake_later(self, outlet: ConsumerOutlet) -> None: ...
    def on_cancelled(self, tag: str, condition: str | None, description: str | None) -> None: ...


class OutletChannel(Protocol):
    """The members of a channel that an outlet uses.

    ``ServerChannel`` implements them; a protocol avoids a circle of imports.
    """

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
    """An outlet that sends messages of one node to a channel.

    Args:
        channel: the channel that receives them.
        node: the node.
        name: the queue's name, as the routing key of messages without one.
        no_ack: whether the client needs no acknowledgement.
        others: see ``WindowOutlet``.
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
        """Send a message to the client; return whether it needs an acknowledgement."""
        channel = self._channel
        published = self.published(content)
        try:
            tag = self._write(published, lease, self._carried(published))
        except LocalProtocolError as fault:
            if channel.engine.state is not ChannelState.OPEN:
                raise
            raise NotTakenError(f"the message cannot be sent in AMQP 0-9-1: {fault}") from fault
        channel.peer.messages_out += 1
        if self._no_ack:
            lease.accepted()
            return False
        channel.consuming.unacked[tag] = lease
        return True

    def published(self, content: Content) -> Published:
        """Return the message in the form of 0-9-1.

        Raises:
            NotTakenError: it cannot be translated.
        """
        try:
            return to_published(content, self._name, like_rabbitmq=self._channel.habits.like_rabbitmq)
        except Exception as fault:
            raise NotTakenError(f"the message cannot be translated to AMQP 0-9-1: {fault!r}") from fault

    @property
    def counts_requeued(self) -> bool:
        """Whether a requeued message counts as failed.

        True for a quorum queue, and for a queue with a delay for redelivery.
        """
        node = self._node
        return self.quorum or (isinstance(node, Queue) and node.policy.redelivery_delay is not None)

    def _carried(self, published: Published) -> Carried:
        """Return the content for the client.

        Its octets are those that were received, except for the count of attempts of a quorum queue.
        """
        if self.quorum and published.failures:
            headers = {**published.headers, _ATTEMPTS: Int64(published.failures)}
            return Carried(replace(published.properties, headers=headers), published.body)
        carried: Carried = _new(Carried, (NOTHING, published.body, published.raw))
        return carried

    def _write(self, published: Published, lease: GivenLease, carried: Carried) -> int:
        """Send the message; return the delivery tag."""
        raise NotImplementedError


class ConsumerOutlet(ChannelOutlet):
    """A consumer; see ``ChannelOutlet``.

    Args:
        tag: its consumer tag.
        exclusive: whether the queue may have no other consumer.

    Attributes:
        tag, exclusive: as given.
        messages: the number of messages sent to it.
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
        """Return figures like those of a link.

        ``credit`` is the number of messages that it may get now; None for no limit.
        """
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
        """Change the window."""
        if not self._no_ack:
            self._window = window
            self.wake()

    def stop(self) -> None:
        """Send no more messages; the client may still settle earlier ones."""
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
