"""What a client publishes on one channel: to an exchange, or to a node; confirms, returns, transactions (0-9-1, basic.publish).

===============================  =====================================================
what became of a publish         in confirm mode the client gets
===============================  =====================================================
every queue has it               basic.ack; for one that is stored, after the commit
a queue is full, or failed       basic.nack
it reached no queue              basic.ack, behind a basic.return if it is mandatory
===============================  =====================================================

Confirms of one pass are merged: all up to the first that is open are one ``multiple``. Returns that the client does not read wait,
as far as there is no room for them, and the container counts their octets as those of any message that it holds.

Knows exchanges and arrivals; does not know how a message is stored.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.content import Content
from trio_amqp10.amqp091.fields import USUAL
from trio_amqp10.amqp091.states import ChannelState
from trio_amqp10.container.broker.broker_queue import BrokerQueue
from trio_amqp10.container.broker.exchanges import Exchange
from trio_amqp10.container.broker.faults import PreconditionError
from trio_amqp10.container.broker.routing import DEFAULT, further_keys
from trio_amqp10.container.broker_rights import address_of, to_publish
from trio_amqp10.container.endpoints import PublishedArrival
from trio_amqp10.container.nodes.node import Node, RefusedError
from trio_amqp10.container.nodes.relay import Feed
from trio_amqp10.reply_codes import ReplyCode091

from .native_message import Published
from .replying import REPLY_TO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.amqp091.content import BasicProperties
    from trio_amqp10.amqp091.events import Arrival as Arrived
    from trio_amqp10.container.nodes.node import Arrival, Inlet
    from trio_amqp10.container.nodes.queue import Queue
    from trio_amqp10.container.rights.guard import Wish

    from .channel import ServerChannel

__all__ = ["Publish", "Publishing"]

_MOST_EXPIRATION: Final = 0xFFFFFFFF
"""Milliseconds; about 49 days, as RabbitMQ has it."""


class Publish(PublishedArrival):
    """A publish that waits for its answer, and where it goes."""

    __slots__ = (
        "_publishing",
        "exchange",
        "further",
        "key",
        "mandatory",
        "method",
        "number",
        "published",
        "routed",
    )

    def __init__(
        self,
        publishing: Publishing,
        published: Published,
        further: Sequence[str],
        number: int,
        method: Any,
    ) -> None:
        super().__init__(published, _nothing)
        self._publishing = publishing
        self.published: Final = published
        self.exchange: Final = published.exchange
        self.key: Final = published.routing_key
        self.further: Final = further
        self.mandatory: bool = method.mandatory
        self.method: Any = method
        self.number: int = number
        self.routed: tuple[Exchange, Sequence[Queue]] | None = None
        """In a transaction: the exchange, and the queues that it led to when this was published; None otherwise."""

    @property
    def refused(self) -> bool:
        """Whether a queue or a node refused it: that it reached none is no refusal here."""
        return self.state == "rejected"

    def answered(self, refusal: RefusedError | None) -> None:
        self._publishing.on_answer(self, refusal)


def _nothing(_refusal: RefusedError | None) -> None:
    """The publish itself knows whom to tell."""


class _Posts(Node):
    """Where a transaction keeps the publishes of a channel to exchanges until its commit, in their order.

    Their queues are those of the moment when they were published, as at RabbitMQ. Messages that had none are returned or
    dropped, which is no failure of the commit; a queue that is gone since is one.
    """

    accepts_senders = True

    def __init__(self, publishing: Publishing, *, storing: bool) -> None:
        super().__init__("(transaction)")
        self._publishing = publishing
        self._storing = storing

    @property
    def stores_messages(self) -> bool:
        return self._storing

    def on_arrivals(self, inlet: Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            assert isinstance(arrival, Publish)
            self._publishing.route(inlet, arrival)

    def holders(self, inlet: Inlet, arrival: Arrival) -> Sequence[Node]:  # noqa: ARG002
        assert isinstance(arrival, Publish)
        return self._publishing.queues_of(arrival)


class Publishing:
    """The publishes of one channel.

    Args:
        channel: whose they are.
    """

    __slots__ = ("_acked", "_channel", "_inlet", "_nacked", "_posts", "_returns")

    def __init__(self, channel: ServerChannel) -> None:
        self._channel = channel
        self._inlet: Feed | None = (
            None  # this and the others are made when first used: most channels only consume
        )
        self._posts: _Posts | None = None
        self._acked: set[int] | None = None
        self._nacked: set[int] | None = None
        self._returns: deque[tuple[Publish, ReplyCode091]] | None = None

    def select(self, arrival: Arrived) -> None:
        """confirm.select."""
        method: Any = arrival.method
        if not method.no_wait:
            self._channel.reply(spec.ConfirmSelectOk())

    # -- in ---------------------------------------------------------------------------------

    def publish(self, arrival: Arrived) -> None:
        """basic.publish."""
        channel = self._channel
        if not channel.peer.guard.asks:
            self._take(arrival)
            return
        method: Any = arrival.method
        assert arrival.content is not None
        headers = arrival.content.properties.headers
        further = self._further(headers) if headers else ()
        wish: Wish = ("send", address_of(channel.broker, method.exchange, method.routing_key))
        if not further and channel.peer.is_granted(wish):
            self._take(arrival)
        else:
            needs = to_publish(channel.broker, method.exchange, (method.routing_key, *further))
            channel.ask(needs, partial(self._take, arrival))

    def _take(self, arrival: Arrived) -> None:
        method: Any = arrival.method
        assert arrival.content is not None
        self._channel.broker.get_exchange(method.exchange).check_publish()
        properties, body, raw = arrival.content
        further: Sequence[str] = ()
        changed = self._changed(properties)
        if properties.headers:
            further = self._further(properties.headers)
            if isinstance(properties.headers.get("BCC"), list):
                rest = {name: value for name, value in properties.headers.items() if name != "BCC"}
                changed = replace(changed or properties, headers=rest)
        if changed is not None:
            properties, raw = changed, changed.encode(USUAL)
        assert raw is not None
        published = Published(method.exchange, method.routing_key, raw, body, properties)
        if not further and self._put(published, arrival.number):
            self._channel.peer.on_publish()
            return
        publish = Publish(self, published, further, arrival.number, method)
        if self._channel.transactional:
            self._post(publish)
        else:
            if self._inlet is None:
                self._inlet = Feed(self._channel.peer)
            self.route(self._inlet, publish)
        self._channel.peer.on_publish()

    def _post(self, publish: Publish) -> None:
        """Hold a message back for the commit."""
        channel = self._channel
        broker = channel.broker
        exchange = broker.get_exchange(publish.exchange)
        node = self._node_of(publish) if exchange.name == DEFAULT and not publish.further else None
        if node is None:
            headers = publish.published.headers
            queues = broker.publisher.route(
                exchange, publish.published, publish.key, publish.further, lambda: headers
            )
            publish.routed = exchange, queues
            if self._posts is None:
                self._posts = _Posts(self, storing=broker.publisher.stores_messages)
            node = self._posts
        addresses = [address_of(broker, exchange.name, key) for key in (publish.key, *publish.further)]
        with suppress(RefusedError):  # the commit fails, and says so
            channel.transaction.post(node, publish, publish.published.size, addresses)

    def _node_of(self, publish: Publish) -> Node | None:
        """The node of the program that the key of a message names; None for a declared queue, or no node that takes it."""
        node = self._channel.broker.find_node(publish.key)
        if node is None or isinstance(node, BrokerQueue | Exchange) or not node.accepts_senders:
            return None
        return node

    def queues_of(self, publish: Publish) -> Sequence[Node]:
        """The queues that get a message of a transaction at its commit."""
        return () if publish.routed is None else publish.routed[1]

    def _put(self, published: Published, number: int) -> bool:
        """Put a message into the one queue that it is for, where nothing has to wait; False if it is not as usual.

        As ``route`` does it for the default exchange, at a fraction of the cost.
        """
        channel = self._channel
        broker = channel.broker
        if published.exchange != DEFAULT or channel.transactional or broker.publisher.stores_messages:
            return False
        queue = broker.find_node(published.routing_key)
        if not isinstance(queue, BrokerQueue):
            return False
        taken = broker.publisher.put(broker.exchanges[DEFAULT], queue, published, channel.peer.origin)
        if number and not channel.over:
            self._note(number, taken=taken)
        return True

    def _note(self, number: int, *, taken: bool) -> None:
        """Confirm a publish with the next others."""
        if self._acked is None or self._nacked is None:
            self._acked, self._nacked = set(), set()
        (self._acked if taken else self._nacked).add(number)

    def _further(self, headers: Mapping[str, Any]) -> Sequence[str]:
        """Routing keys beside its own: those of the headers CC and BCC."""
        return further_keys(headers)

    def _changed(self, properties: BasicProperties) -> BasicProperties | None:
        """The properties as they go on, if they cannot go on as they came."""
        expiration = properties.expiration
        if expiration is not None and int(expiration) > _MOST_EXPIRATION:
            raise PreconditionError(f"invalid expiration '{expiration}'")
        if properties.reply_to != REPLY_TO:
            return None
        address = self._channel.consuming.reply_name
        if address is None:
            raise PreconditionError("fast reply consumer does not exist")
        return replace(properties, reply_to=address)

    def route(self, inlet: Inlet, publish: Publish) -> None:
        """Hand a message on to the queues that its exchange reaches, or to the node that its key names."""
        broker = self._channel.broker
        origin = self._channel.peer.origin
        if publish.routed is not None:
            exchange, queues = publish.routed
            broker.publisher.publish_to(
                queues, inlet, publish, exchange, publish.key, origin=origin, beyond=True
            )
            return
        exchange = broker.exchanges[publish.exchange]
        if exchange.name == DEFAULT and not publish.further:
            node = self._node_of(publish)
            if node is not None:
                self._send(node, publish)
                return
            if not isinstance(broker.find_node(publish.key), BrokerQueue):
                publish.release()
                return
        headers = publish.published.headers
        if not broker.publisher.publish(
            inlet,
            publish,
            exchange,
            publish.key,
            publish.further,
            lambda: headers,
            origin=origin,
            then=self._channel.go_on,
        ):
            self._channel.hold_on()

    def _send(self, node: Node, publish: Publish) -> None:
        """To a node of the program: it takes the message when it likes to, and the client waits until then."""
        try:
            self._channel.peer.publisher.publish(node.address, publish)
        except RefusedError as refusal:
            publish.reject(refusal.condition, refusal.description)

    # -- answers ----------------------------------------------------------------------------

    def on_answer(self, publish: Publish, refusal: RefusedError | None) -> None:
        """What became of a publish: a return at once, a confirm with the next others."""
        channel = self._channel
        if channel.over:
            return
        released = publish.state == "released"
        if publish.mandatory and released:
            self._return(publish)
            return
        self._confirm(publish, taken=refusal is None or released)

    def _confirm(self, publish: Publish, *, taken: bool) -> None:
        """Confirm a publish, if the client asked for that, with the next others: at the end of this pass, or by itself."""
        if publish.number:
            self._note(publish.number, taken=taken)
            self._channel.peer.engine.touch(self._channel.engine)
            self._channel.peer.pump.wake_writer()

    def _return(self, publish: Publish, code: ReplyCode091 = ReplyCode091.NO_ROUTE) -> None:
        """Return a publish, and confirm it behind that, now or when there is room."""
        if not self._returns and self._channel.peer.engine.has_room_for_answers:
            self._write_return(publish, code)
            return
        if self._returns is None:
            self._returns = deque()
        self._returns.append((publish, code))
        self._channel.peer.watermark.add(publish.published.size)

    def send_returns(self) -> None:
        """Write the returns that waited for room, as far as there is room now."""
        while self._returns and self._channel.peer.engine.has_room_for_answers:
            publish, code = self._returns.popleft()
            self._channel.peer.watermark.remove(publish.published.size)
            self._write_return(publish, code)

    def _write_return(self, publish: Publish, code: ReplyCode091) -> None:
        kind, _, _ = publish.method.plan.name.partition(".")
        method = self._channel.make(
            f"{kind}.return",
            reply_code=code,
            reply_text=code.name,
            exchange=publish.exchange,
            routing_key=publish.key,
        )
        self._channel.reply(method, self._returned(publish.published, kind))
        self._confirm(publish, taken=True)

    def _returned(self, published: Published, kind: str) -> Content:
        """The content of a return of the class ``kind``."""
        _ = kind
        return Content(published.properties, published.body, published.raw)

    def confirm(self) -> None:
        """Send the confirms that are due."""
        acked, nacked, engine = self._acked, self._nacked, self._channel.engine
        if acked is None or nacked is None or not (acked or nacked) or engine.state is not ChannelState.OPEN:
            return
        front = engine.numbers.publishes.front(acked)
        if front:
            several = [number for number in acked if number <= front]
            engine.send(spec.BasicAck(delivery_tag=front, multiple=len(several) > 1))
            acked.difference_update(several)
        for number in sorted(acked):
            engine.send(spec.BasicAck(delivery_tag=number))
        for number in sorted(nacked):
            engine.send(spec.BasicNack(delivery_tag=number, requeue=False))
        acked.clear()
        nacked.clear()

    def end(self) -> None:
        """The channel is over: nothing is answered any more."""
        self._acked = self._nacked = None
        for publish, _ in self._returns or ():
            self._channel.peer.watermark.remove(publish.published.size)
        self._returns = None
