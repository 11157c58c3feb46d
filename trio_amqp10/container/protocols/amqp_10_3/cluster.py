"""cluster.bind: what an exchange here would route to the peer is relayed to it (C 1718-1763).

It binds an exchange on one server to an exchange on another. Here it is a queue of the connection, bound as the peer has asked, whose
messages go to the peer one by one in tunnel.request, which is for serialised methods between peers (C 1562-1601): each is a
basic.publish with its content, in the frames of 10.3, for the peer to do in its own exchange of that name. It goes on the lowest
channel that the peer has open, and waits while there is none. What this very peer has published is not relayed to it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.fields import FIVE
from trio_amqp10.amqp091.frames import HEADER, METHOD
from trio_amqp10.amqp091.states import ChannelState
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.frames import FRAMES
from trio_amqp10.amqp_10_3.properties import TunnelProperties
from trio_amqp10.container.broker_rights import to_bind, to_bind_any_key
from trio_amqp10.container.nodes.node import RefusedError, SubscriptionTerms
from trio_amqp10.container.protocols.amqp091.consuming import is_of_another
from trio_amqp10.container.protocols.amqp091.faults import fault_of
from trio_amqp10.container.protocols.amqp091.outlets import ConsumerOutlet

from .content import from_basic, with_hyphens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.container.endpoints import GivenLease
    from trio_amqp10.container.nodes.queue import Queue
    from trio_amqp10.container.protocols.amqp091.connection import ServedConnection
    from trio_amqp10.container.protocols.amqp091.native_message import Published
    from trio_amqp10.container.rights.guard import Need

    from .channel_base import ChannelBase

__all__ = ["ClusterBindings", "serialised"]

_log = logging.getLogger("trio_amqp10.container")

_TAG: Final = "amq.cluster"
"""The consumer tag under which the channel has the relay."""
_NAME: Final = 60
"""Characters of a name that a short string takes, whatever they are."""
_LARGEST: Final = 0xFFFF
"""Octets of a body frame within a tunnel."""


class ClusterBindings:
    """What one peer has bound here.

    Args:
        peer: its connection.
        proxy_name: who relays (C 1581-1582).
    """

    def __init__(self, peer: ServedConnection, proxy_name: str) -> None:
        self._peer = peer
        self._proxy_name = proxy_name[:_NAME]
        self._queue: Queue | None = None
        self._name = ""
        self._outlet: _RelayOutlet | None = None

    def bind(self, method: spec.ClusterBind) -> None:
        """cluster.bind, which has no answer: what refuses it is told by channel.alert (C 561-564)."""
        broker = self._peer.broker
        _, reads = to_bind(broker, method.exchange, "queue", "", method.routing_key)
        needs: Sequence[Need] = ((("create", None),), reads)

        def ask_for_any_key() -> None:
            self._ask(to_bind_any_key(broker, method.exchange), method, partial(self._bind, method))

        self._ask(needs, method, ask_for_any_key)

    def _ask(self, needs: Sequence[Need], method: spec.ClusterBind, then: Callable[[], object]) -> None:
        """Do ``then`` if the peer has one permission of each need."""

        def on_answer(refusal: RefusedError | None) -> None:
            if not self._peer.engine.is_open:
                return
            if refusal is None:
                then()
            else:
                self._alert(method, refusal)

        if self._peer.ask(needs, on_answer):
            on_answer(None)

    def _bind(self, method: spec.ClusterBind) -> None:
        peer = self._peer
        try:
            arguments = with_hyphens(method.arguments)
            exchange = peer.broker.check_exchange(method.exchange)
            if self._queue is None:
                queue, _ = peer.broker.declare_queue("", durable=False, exclusive=True, peer=peer)
                self._queue, self._name = queue, getattr(queue, "name", queue.address)
            peer.broker.bind(exchange.name, "queue", self._name, method.routing_key, arguments, peer=peer)
        except RefusedError as refused:
            self._alert(method, refused)
        else:
            self.attach()

    def attach(self) -> None:
        """Relay on the lowest channel that is open, if there is one, and nothing relays yet."""
        queue, channel = self._queue, self._channel()
        gone = self._outlet is None or self._outlet.closed
        if queue is None or channel is None or not gone or _TAG in channel.consuming.outlets:
            return
        outlet = self._outlet = _RelayOutlet(channel, queue, self._name, self._peer.origin, self._proxy_name)
        channel.consuming.outlets[_TAG] = outlet
        outlet.begin()

    def _channel(self) -> ChannelBase | None:
        channels: Any = [
            each
            for each in self._peer.channels.values()
            if not each.over and each.engine.state is ChannelState.OPEN
        ]
        return min(channels, key=lambda each: each.number, default=None)

    def _alert(self, method: spec.ClusterBind, refusal: RefusedError) -> None:
        _log.info("cluster.bind of %r is refused: %s", self._peer.container_id, refusal)
        channel, fault = self._channel(), fault_of(refusal)
        if channel is not None:
            details = {"exchange": method.exchange, "routing_key": method.routing_key}
            alert = {"reply_code": fault.code, "reply_text": fault.reply_text, "details": details}
            channel.reply(channel.make("channel.alert", **alert))


class _RelayOutlet(ConsumerOutlet):
    """Gives the messages of a peer's queue to its tunnel; they are settled as they are sent."""

    def __init__(self, channel: ChannelBase, queue: Queue, name: str, origin: str, proxy_name: str) -> None:
        super().__init__(
            channel,
            queue,
            name,
            _TAG,
            no_ack=True,
            exclusive=True,
            window=None,
            wants=partial(is_of_another, origin),
            subscription_terms=SubscriptionTerms(name=queue.address, owner=channel.peer.owner),
        )
        self.key = channel.outlet_key
        self._proxy_name = proxy_name

    def _carried(self, published: Published) -> Any:
        properties = TunnelProperties(
            proxy_name=self._proxy_name,
            data_name=spec.BasicPublish.plan.name,
            durable=int(published.durable),
        )
        return Content(properties, serialised(published))

    def _write(self, published: Published, lease: GivenLease, carried: Any) -> int:
        _ = lease
        meta_data = {"exchange": published.exchange, "routing_key": published.routing_key}
        self._channel.engine.send(self._channel.make("tunnel.request", meta_data=meta_data), carried)
        return 0


def serialised(published: Published) -> bytes:
    """A message as the frames of a basic.publish, on channel 0."""
    method = spec.BasicPublish(exchange=published.exchange, routing_key=published.routing_key)
    content = Content(from_basic(published.properties, BasicProperties), published.body)
    return b"".join(
        (
            FRAMES.frame(METHOD, 0, method.plan.write(method, FIVE)),
            FRAMES.frame(HEADER, 0, write_header(content, FIVE, method.plan.class_id)),
            *FRAMES.body_frames(0, published.body, _LARGEST),
        )
    )
