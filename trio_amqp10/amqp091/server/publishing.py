"""The publishes of one channel: routing, confirms, returns and transactions.

Each publish (0-9-1, basic.publish) to an exchange or to a node has an outcome:

===============================  =====================================================
outcome                          in confirm mode the client gets
===============================  =====================================================
every queue has the message      basic.ack; for a stored message, after the commit
a queue is full, or failed       basic.nack
no queue was reached             basic.ack, after a basic.return if it is mandatory
===============================  =====================================================

Confirms are merged: one ``multiple`` covers all up to the first that is pending. Returns wait while the client
  does not read
them, and the container counts their octets like those of any message in memory.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.wire.content import Content
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.broker.endpoints import PublishedArrival
from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.exchanges.exchanges import Exchange
from trio_amqp10.broker.exchanges.faults import AccessRefusedError, PreconditionError
from trio_amqp10.broker.exchanges.routing import DEFAULT, further_keys
from trio_amqp10.broker.nodes.node import Node, RefusedError
from trio_amqp10.broker.nodes.relay import Feed
from trio_amqp10.broker.rights.broker_rights import address_of, to_publish
from trio_amqp10.core.reply_codes import ReplyCode091

from .direct_replies import REPLY_TO
from .native_message import Published

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.amqp091.engine.events import Arrival as Arrived
    from trio_amqp10.amqp091.wire.content import BasicProperties
    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.node import Arrival, Inlet
    from trio_amqp10.broker.nodes.queue import Queue
    from trio_amqp10.broker.rights.guard import Wish

    from .channel import ServerChannel

_MOST_EXPIRATION: Final = 315_360_000_000
"""The largest expiration in milliseconds, ten years, as at RabbitMQ."""


class Publish(PublishedArrival):
    """A publish that waits for its outcome, with its destination."""

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
        """In a transaction, the exchange and the queues at the time of the publish."""

    @property
    def refused(self) -> bool:
        """Whether a queue or a node refused it; reaching no queue is not a refusal."""
        return self.state == "rejected"

    def answered(self, refusal: RefusedError | None) -> None:
        self._publishing.on_answer(self, refusal)


def _is_of_program(node: Node) -> bool:
    """Whether the program has added this node itself, and it accepts senders."""
    return not isinstance(node, BrokerQueue | Exchange) and node.accepts_senders


def _nothing(_refusal: RefusedError | None) -> None:
    """Do nothing: ``Publish.answered`` handles the outcome."""


class _PendingPublishes(Node):
    """The publishes of a transaction to exchanges, in order, until the commit.

    Their queues are those at the time of the publish, as at RabbitMQ. A message that reached no queue is
    returned or dropped, and does not fail the commit; a queue that was deleted since then does.
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
        channel: the channel.
    """

    __slots__ = ("_acked", "_channel", "_inlet", "_nacked", "_posts", "_returns")

    def __init__(self, channel: ServerChannel) -> None:
        self._channel = channel
        # These are created on first use, because most channels only consume.
        self._inlet: Feed | None = None
        self._posts: _PendingPublishes | None = None
        self._acked: set[int] | None = None
        self._nacked: set[int] | None = None
        self._returns: deque[tuple[Publish, ReplyCode091]] | None = None

    def select(self, arrival: Arrived) -> None:
        """Handle confirm.select."""
        method: Any = arrival.method
        if not method.no_wait:
            self._channel.reply(spec.ConfirmSelectOk())

    # -- publish ----------------------------------------------------------------------------

    def publish(self, arrival: Arrived) -> None:
        """Handle basic.publish."""
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
        broker = self._channel.broker
        if broker.get_exchange(method.exchange).internal:
            raise AccessRefusedError(
                f"cannot publish to internal {broker.title_of('exchange', method.exchange)}"
            )
        properties, body, raw = arrival.content
        further: Sequence[str] = ()
        changed = self._changed(properties)
        if properties.headers:
            further = self._further(properties.headers)
            # RabbitMQ's header BCC must not reach the consumers; CC stays.
            if isinstance(properties.headers.get("BCC"), list):
                rest = {name: value for name, value in properties.headers.items() if name != "BCC"}
                changed = replace(changed or properties, headers=rest)
        if changed is not None:
            properties, raw = changed, changed.encode(USUAL)
        assert raw is not None
        published = Published(method.exchange, method.routing_key, raw, body, properties)
        # The shortcut for one queue of the default exchange; it takes all messages that need not wait.
        if not further and self._put(broker, published, arrival.number):
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
        """Keep a message until the commit."""
        channel = self._channel
        broker = channel.broker
        exchange = broker.get_exchange(publish.exchange)
        node = broker.find_node(publish.key) if exchange.name == DEFAULT and not publish.further else None
        if node is None or not _is_of_program(node):
            headers = publish.published.headers
            queues = broker.publisher.route(
                exchange, publish.published, publish.key, publish.further, lambda: headers
            )
            publish.routed = exchange, queues
            if self._posts is None:
                self._posts = _PendingPublishes(self, storing=broker.publisher.stores_messages)
            node = self._posts
        addresses = [address_of(broker, exchange.name, key) for key in (publish.key, *publish.further)]
        with suppress(RefusedError):  # the commit will fail, and report the reason
            channel.transaction.post(node, publish, publish.published.size, addresses)

    def queues_of(self, publish: Publish) -> Sequence[Node]:
        """Return the queues that get a message of a transaction at its commit."""
        return () if publish.routed is None else publish.routed[1]

    def _put(self, broker: Topology, published: Published, number: int) -> bool:
        """Put a message into its only queue if nothing must wait; otherwise return False.

        Equivalent to ``route`` for the default exchange, but much faster.
        """
        channel = self._channel
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
        """Add a publish to the next confirms."""
        if self._acked is None or self._nacked is None:
            self._acked, self._nacked = set(), set()
        (self._acked if taken else self._nacked).add(number)

    def _further(self, headers: Mapping[str, Any]) -> Sequence[str]:
        """Return the additional routing keys of the headers CC and BCC."""
        return further_keys(headers)

    def _changed(self, properties: BasicProperties) -> BasicProperties | None:
        """Return the properties to forward if they differ from the received ones."""
        expiration = properties.expiration
        if expiration is not None and int(expiration) > _MOST_EXPIRATION:
            raise PreconditionError(
                f"invalid expiration '{expiration}': expected at most {_MOST_EXPIRATION} milliseconds"
            )
        if properties.reply_to != REPLY_TO:
            return None
        address = self._channel.consuming.reply_name
        if address is None:
            raise PreconditionError("fast reply consumer does not exist")
        return replace(properties, reply_to=address)

    def route(self, inlet: Inlet, publish: Publish) -> None:
        """Forward a message to the queues of its exchange, or to the node of its key."""
        broker = self._channel.broker
        origin = self._channel.peer.origin
        if publish.routed is not None:
            # A commit: the queues were chosen at the time of the publish.
            exchange, queues = publish.routed
            broker.publisher.publish_to(
                queues, inlet, publish, exchange, publish.key, origin=origin, beyond=True
            )
            return
        exchange = broker.exchanges[publish.exchange]
        if exchange.name == DEFAULT and not publish.further:
            # The default exchange also reaches nodes of the program by their names (0-9-1, 3.1.3.1).
            node = broker.find_node(publish.key)
            if node is not None and _is_of_program(node):
                self._send(node, publish)
                return
            if not isinstance(node, BrokerQueue):
                publish.release()  # there is no such queue
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
            then=self._channel.unpause,
        ):
            self._channel.pause()  # many queues take several turns; later methods wait for them

    def _send(self, node: Node, publish: Publish) -> None:
        """Send a message to a node of the program; the outcome may come later."""
        try:
            self._channel.peer.publisher.publish(node.address, publish)
        except RefusedError as refusal:
            publish.reject(refusal.condition, refusal.description)

    # -- outcomes ---------------------------------------------------------------------------

    def on_answer(self, publish: Publish, refusal: RefusedError | None) -> None:
        """Handle the outcome of a publish: return it now, confirm it with the next ones."""
        channel = self._channel
        if channel.over:
            return
        released = publish.state == "released"
        if publish.mandatory and released:
            self._return(publish)
            return
        self._confirm(publish, taken=refusal is None or released)

    def _confirm(self, publish: Publish, *, taken: bool) -> None:
        """Confirm a publish in confirm mode, at the end of this pass or by itself."""
        if publish.number:
            self._note(publish.number, taken=taken)
            self._channel.peer.engine.touch(self._channel.engine)
            self._channel.peer.pump.wake_writer()

    def _return(self, publish: Publish, code: ReplyCode091 = ReplyCode091.NO_ROUTE) -> None:
        """Return a publish and then confirm it, now or when there is room."""
        if not self._returns and self._channel.peer.engine.has_room_for_answers:
            self._write_return(publish, code)
            return
        if self._returns is None:
            self._returns = deque()
        self._returns.append((publish, code))
        self._channel.peer.watermark.add(publish.published.size)

    def send_returns(self) -> None:
        """Write pending returns while there is room."""
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
        """Return the content of a return of the class ``kind``."""
        _ = kind
        return Content(published.properties, published.body, published.raw)

    def confirm(self) -> None:
        """Send the pending confirms."""
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
        """Drop pending confirms and returns, because the channel has ended."""
        self._acked = self._nacked = None
        for publish, _ in self._returns or ():
            self._channel.peer.watermark.remove(publish.published.size)
        self._returns = None
