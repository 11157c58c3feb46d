"""cluster.bind: relays messages of an exchange to the peer (C 1718-1763).

cluster.bind binds an exchange of one server to an exchange of another. Here, an exclusive queue of the connection is bound as the
peer has asked. Each of its messages is sent to the peer in a tunnel.request, the method for serialised methods between peers
(C 1562-1601): it contains a basic.publish with its content, in frames of 10.3, which the peer carries out on its own exchange of
that name. The lowest open channel of the peer is used; without one the messages wait. Messages that this peer published are not
relayed to it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.server.consuming import is_of_another
from trio_amqp10.amqp091.server.faults import fault_of
from trio_amqp10.amqp091.server.outlets import ConsumerOutlet
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.frames import HEADER, METHOD
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.wire.frames import FRAMES
from trio_amqp10.amqp_10_3.wire.properties import TunnelProperties
from trio_amqp10.broker.nodes.node import RefusedError, SubscriptionTerms
from trio_amqp10.broker.rights.broker_rights import to_bind, to_bind_any_key

from .content import from_basic, with_hyphens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.amqp091.server.connection import ServedConnection
    from trio_amqp10.amqp091.server.native_message import Published
    from trio_amqp10.broker.endpoints import GivenLease
    from trio_amqp10.broker.nodes.queue import Queue
    from trio_amqp10.broker.rights.guard import Need

    from .channel_base import ChannelBase

_log = logging.getLogger("trio_amqp10.container")

_TAG: Final = "amq.cluster"
"""The consumer tag of the relay on its channel."""
_NAME: Final = 60
"""The characters of a name that fit in a short string in any case."""
_LARGEST: Final = 0xFFFF
"""The maximum octets of a body frame within a tunnel."""


class ClusterBindings:
    """The bindings of one peer.

    Args:
        peer: the connection of the peer.
        proxy_name: the name of this container, sent as the relaying proxy (C 1581-1582).
    """

    def __init__(self, peer: ServedConnection, proxy_name: str) -> None:
        self._peer = peer
        self._proxy_name = proxy_name[:_NAME]
        self._queue: Queue | None = None
        self._name = ""
        self._outlet: _RelayOutlet | None = None

    def bind(self, method: spec.ClusterBind) -> None:
        """Carry out cluster.bind; a refusal is sent as an alert (C 561-564)."""
        broker = self._peer.broker
        _, reads = to_bind(broker, method.exchange, "queue", "", method.routing_key)
        needs: Sequence[Need] = ((("create", None),), reads)

        def ask_for_any_key() -> None:
            self._ask(to_bind_any_key(broker, method.exchange), method, partial(self._bind, method))

        self._ask(needs, method, ask_for_any_key)

    def _ask(self, needs: Sequence[Need], method: spec.ClusterBind, then: Callable[[], object]) -> None:
        """Call ``then`` if the peer has one permission of each need, or send an alert."""

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
        """Begin the relay on the lowest open channel, unless it is active already."""
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
    """Sends the messages of a peer's queue through its tunnel.

    Each message is settled when it is sent.
    """

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
    """Encode a message as the frames of a basic.publish, on channel 0."""
    method = spec.BasicPublish(exchange=published.exchange, routing_key=published.routing_key)
    content = Content(from_basic(published.properties, BasicProperties), published.body)
    return b"".join(
        (
            FRAMES.frame(METHOD, 0, method.plan.write(method, FIVE)),
            FRAMES.frame(HEADER, 0, write_header(content, FIVE, method.plan.class_id)),
            *FRAMES.body_frames(0, published.body, _LARGEST),
        )
    )
