"""A channel to a peer that has queues, and perhaps topics, but no exchanges.

* A durable queue is a node of its name. Each process that declares bindings knows them, as programs of Celery do, and the process
  that publishes picks the queues.
* A queue that is not durable, bound to an exchange, is a subscription to the topic of the exchange's name. The subscriber picks
  the messages of its bindings.
* So a message for an exchange of which this process knows durable queues goes to these; any other goes to the topic.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from amqp.exceptions import NotFound
from kombu.log import get_logger

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.core.errors import AmqpError

from .channel import Channel, Inflow, Place
from .errors import kombu_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.peer.connection import Connection

    from .wire import Link, Wire

_MANAGEMENT: Final = "$management"
_log = get_logger(__name__)

_TRIES: Final = 3
"""Times that a topic is tried: another client may be making it."""


class NodeChannel(Channel):
    """Uses queues, and topics in place of exchanges."""

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._subscriptions: dict[str, dict[str, Inflow]] = {}
        """By queue, then by exchange."""

    # -- routes -----------------------------------------------------------------------------------

    def queue_declare(self, queue: str | None = None, passive: bool = False, **options: Any) -> Any:
        """Note a queue. The peer has it, or makes it when it is used first."""
        declared = super().queue_declare(queue, passive=passive, **options)
        if options.get("durable", False):
            self._transport.durable.add(declared.queue)
        return declared

    def exchange_declare(self, exchange: str | None = None, type: str = "direct", **options: Any) -> None:  # noqa: A002
        """Note an exchange."""
        if options.get("passive"):
            return
        super().exchange_declare(exchange, type, **options)

    def queue_bind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Any = None,
        **kwargs: Any,
    ) -> None:
        """Note a binding; subscribe to the topic if the queue is not durable."""
        name = exchange or "amq.direct"
        self.state.exchanges.setdefault(name, {"type": "direct", "durable": True, "auto_delete": False, "arguments": {}, "table": []})  # fmt: skip
        if queue not in self._transport.durable:
            self._subscribe(queue, name)
        super().queue_bind(queue, name, routing_key or "", arguments, **kwargs)

    def _queue_bind(self, *_: Any) -> None:
        """Do nothing: the table of kombu has the binding."""

    def _places(self, exchange: str, routing_key: str) -> list[Place]:
        if not exchange:
            return [Place(routing_key, is_queue=True)]
        durable = self._transport.durable
        if any(queue in durable for _, _, queue in self._table(exchange)):
            matched = self._matched(exchange, routing_key)
            return [Place(queue, is_queue=True) for queue in sorted(matched & durable)]
        if not self._transport.has_topics:
            self._note_dropped(exchange)
            return []
        self._check_topic(exchange)
        return [Place(exchange, topic=True)]

    def _note_dropped(self, exchange: str) -> None:
        """Log once what is dropped."""
        if exchange not in self._transport.topics:
            self._transport.topics.add(exchange)
            _log.warning(
                "messages for exchange %r are dropped: this peer is used without topics, and no durable queue is bound here",
                exchange,
            )

    def _table(self, exchange: str) -> list[Any]:
        table: list[Any] = self.state.exchanges.get(exchange, {}).get("table", [])
        return table

    def _matched(self, exchange: str, routing_key: str) -> set[str]:
        """Return the queues of this process that have a message of this key."""
        found: set[str] = self.typeof(exchange).lookup(self._table(exchange), exchange, routing_key, None)
        return found

    # -- subscriptions ----------------------------------------------------------------------------

    def _subscribe(self, queue: str, exchange: str) -> None:
        if not self._transport.has_topics:
            raise NotFound(
                f"queue {queue!r} cannot be bound to exchange {exchange!r}: this peer is used without topics, so there "
                "are no remote control, events and broadcasts. Declare the queue durable if it is for tasks"
            )
        inflows = self._subscriptions.setdefault(queue, {})
        if exchange in inflows:
            return
        with kombu_errors():
            link = _tried(self._wire, exchange, partial(_subscription, self._wire, exchange))
            inflows[exchange] = self._inflow(
                link, queue, no_ack=True, stays=True, wants=partial(self._wants, queue, exchange)
            )

    def _wants(self, queue: str, exchange: str, _exchange: str, routing_key: str) -> bool:
        return queue in self._matched(exchange, routing_key)

    def _open_inflows(self, queue: str, *, no_ack: bool) -> list[Inflow]:
        subscribed = self._subscriptions.get(queue)
        if subscribed:
            return list(subscribed.values())
        return super()._open_inflows(queue, no_ack=no_ack)

    def _check_topic(self, exchange: str) -> None:
        if exchange not in self._transport.topics:
            _tried(self._wire, exchange, partial(_sending, self._wire, exchange))
            self._transport.topics.add(exchange)

    # -- the rest ---------------------------------------------------------------------------------

    def queue_delete(self, queue: str, **_: Any) -> None:
        """Forget a queue and its bindings. The node of a durable queue stays."""
        for exchange, routing_key, arguments in tuple(self.state.queue_bindings(queue)):
            self.queue_unbind(queue, exchange, routing_key, arguments)
        for inflow in self._subscriptions.pop(queue, {}).values():
            self._inflows.pop(inflow.link.source, None)
            self._transport.sources.pop(inflow.link.source, None)
            with kombu_errors():
                inflow.link.close()

    def queue_purge(self, queue: str, **_: Any) -> int:
        """Take all messages that no consumer has; return their number."""
        count = 0
        while self.basic_get(queue, no_ack=True) is not None:
            count += 1
        return count


def _subscription(wire: Wire, address: str) -> tuple[Link, bool]:
    link = wire.receiver(address, settled=True, topic=True)
    if not link.offers_topic:
        link.close()
    return link, link.offers_topic


def _sending(wire: Wire, address: str) -> tuple[None, bool]:
    offered = wire.sender(address, topic=True).offers_topic
    if not offered:
        wire.forget(address, topic=True)
    return None, offered


def _tried(wire: Wire, address: str, attach: Callable[[], tuple[Any, bool]]) -> Any:
    """Return a link to a topic, which is made if the peer permits it.

    Raises:
        NotFound: there is no such topic, and none can be made.
    """
    refusal: Exception | None = None
    for _ in range(_TRIES):
        try:
            link, is_topic = attach()
        except LinkRefusedError as refused:
            refusal = refused
        else:
            if is_topic:
                return link
        if not _create(wire, address):
            break
    reason = "" if refusal is None else f" ({refusal})"
    raise NotFound(
        f"the peer has no topic {address!r}, and none can be made{reason}: remote control, events and "
        "broadcasts need topics. Add it, or let clients add topics (amqp10 serve --management), or do "
        'without: broker_transport_options={"topics": False}'
    ) from refusal


def _create(wire: Wire, address: str) -> bool:
    """Ask the peer's ``$management`` for a topic.

    Return whether another attempt to attach makes sense.
    """
    request = Message({}, application_properties={"operation": "CREATE", "type": "topic", "name": address})
    try:
        status = wire.ask(lambda conn: _status(conn, request))
    except AmqpError:
        return False
    return status in (201, 409)


async def _status(connection: Connection, request: Message) -> int:
    async with connection.open_requester(_MANAGEMENT) as requester:
        reply = await requester.request(request)
    return int(reply.application_properties.get("statusCode", 0))
