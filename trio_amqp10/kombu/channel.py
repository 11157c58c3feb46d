"""A channel of kombu: it sends, receives and settles messages.

Its two kinds know where exchanges and queues are.

Unlike other virtual channels it neither polls nor keeps copies: the peer holds a message until it is settled, and delivers it again if
this process dies.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from amqp.exceptions import MessageNacked, NotFound, RecoverableConnectionError
from kombu.log import get_logger
from kombu.transport import virtual
from kombu.transport.base import to_rabbitmq_queue_arguments

from trio_amqp10.amqp10.peer.errors import DeliveryError, DeliveryReleasedError, LinkRefusedError
from trio_amqp10.core.errors import Condition

from .errors import kombu_errors
from .messages import KombuMessage, from_kombu, is_persistent, to_kombu
from .window import Window, attempt, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp10.peer.delivery import Delivery

    from .transport import Transport
    from .window import Source
    from .wire import Link, Wire

_log = get_logger(__name__)


class Place(NamedTuple):
    """An address to send to.

    Attributes:
        address: the address.
        topic: whether it is a topic.
        is_queue: whether it is a queue that the program has named, so that a message must not get lost there.
    """

    address: str
    topic: bool = False
    is_queue: bool = False


class Inflow:
    """A link of a channel, and the consumer of its messages.

    Args:
        link: the link.
        queue: the queue that the messages are from.
        no_ack: whether the messages are settled when they come.
        stays: whether it stays open without a consumer, as a subscription does.
        wants: whether a message with this exchange and this key is one of the queue's; None for all.
    """

    def __init__(
        self,
        link: Link,
        queue: str,
        *,
        no_ack: bool,
        stays: bool = False,
        wants: Callable[[str, str], bool] | None = None,
    ) -> None:
        self.link = link
        self.queue = queue
        self.no_ack = no_ack
        self.stays = stays
        self.wants = wants
        self.consumer_tag: str | None = None
        self.callback: Callable[[KombuMessage], object] | None = None
        self.held: list[Delivery] = []


class Channel(virtual.Channel):
    """Sends, receives and settles messages."""

    Message = KombuMessage
    body_encoding = None
    supports_fanout = True
    do_restore = False
    from_transport_options: tuple[str, ...] = ()

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self.no_ack_consumers: set[str] = set()
        self._window = Window()
        self._unsettled: dict[int, Delivery] = {}
        self._inflows: dict[Source, Inflow] = {}
        self._by_consumer: dict[str, list[Inflow]] = {}
        self._idle: dict[tuple[str, bool], list[Inflow]] = {}
        """Links for the next consumer, by queue and ``no_ack``."""
        self._getters: dict[str, Link] = {}
        self._last_tag = 0
        self._tags = threading.Lock()

    @property
    def _transport(self) -> Transport:
        """The transport, as long as this channel is open.

        Raises:
            RecoverableConnectionError: this channel was closed, perhaps with its connection, or by another thread.
        """
        transport: Transport | None = self.connection
        if transport is None:
            raise RecoverableConnectionError("this channel is closed")
        return transport

    @property
    def _wire(self) -> Wire:
        """The connection; raises as ``_transport``."""
        return self._transport.wire

    @property
    def is_consuming(self) -> bool:
        """Whether it has consumers."""
        return bool(self._by_consumer)

    @property
    def state(self) -> Any:
        """The exchanges and bindings that are known; raises as ``_transport``."""
        return self._transport.state

    def prepare_queue_arguments(self, arguments: Mapping[str, Any] | None, **kwargs: Any) -> Any:
        """Return the arguments of a queue as RabbitMQ names them."""
        return to_rabbitmq_queue_arguments(arguments or {}, **kwargs)

    def after_reply_message_received(self, queue: str) -> None:
        """Keep the queue: the next request of the same client declares no other."""

    # -- out ------------------------------------------------------------------------------------

    def _places(self, exchange: str, routing_key: str) -> list[Place]:
        """Return where a message goes."""
        raise NotImplementedError

    def basic_publish(
        self, message: dict[str, Any], exchange: str, routing_key: str, mandatory: bool = False, **_: Any
    ) -> None:
        """Send a message, and wait until the peer has accepted it.

        Raises:
            amqp.exceptions.NotFound: no queue takes it. Without ``mandatory``, this is an error only for
                a persistent message to the default exchange.
            amqp.exceptions.MessageNacked: the peer did not accept it.
            TimeoutError: it gave no answer in time.
        """
        exchange, routing_key = exchange or "", routing_key or ""
        with kombu_errors():
            self._wire.check()
            places = self._places(exchange, routing_key)
            made = from_kombu(message, exchange, routing_key)
            if mandatory and not places:
                raise NotFound(f"no queue is bound to exchange {exchange!r} with key {routing_key!r}")
            for place in places:
                needed = mandatory or (place.is_queue and is_persistent(message))
                self._send(place, made, needed=needed)

    def _send(self, place: Place, made: Any, *, needed: bool) -> None:
        try:
            self._wire.send(place.address, made, topic=place.topic)
        except DeliveryReleasedError as released:
            if needed:
                raise NotFound(f"no queue takes messages for {place.address!r}") from released
        except DeliveryError as refused:
            raise MessageNacked(f"{place.address!r} did not accept a message: {refused}") from refused
        except LinkRefusedError as refused:
            if needed or not place.is_queue or refused.condition != Condition.NOT_FOUND:
                raise
            _log.debug("no queue takes a message for %r: dropped", place.address)

    # -- in -------------------------------------------------------------------------------------

    def _open_inflows(self, queue: str, *, no_ack: bool) -> list[Inflow]:
        """Return the links that bring the messages of a queue."""
        idle = self._idle.get((queue, no_ack), [])
        while idle:
            found = idle.pop()
            if found.link.source.failure is None:
                return [found]
        return [self._inflow(self._wire.receiver(self._address(queue), settled=no_ack), queue, no_ack=no_ack)]

    def _inflow(self, link: Link, queue: str, *, no_ack: bool, **options: Any) -> Inflow:
        made = Inflow(link, queue, no_ack=no_ack, **options)
        link.start(None if no_ack else self._window, self._wire)
        self._inflows[link.source] = made
        self._transport.sources[link.source] = self
        return made

    def _address(self, queue: str) -> str:
        return queue

    def basic_consume(
        self,
        queue: str,
        no_ack: bool,
        callback: Callable[[KombuMessage], object],
        consumer_tag: str,
        **_: Any,
    ) -> None:
        """Call ``callback`` in ``drain_events`` with each message of a queue."""
        with kombu_errors():
            inflows = self._open_inflows(queue, no_ack=no_ack)
        self._consumers.add(consumer_tag)
        self._tag_to_queue[consumer_tag] = queue
        self._by_consumer[consumer_tag] = inflows
        if no_ack:
            self.no_ack_consumers.add(consumer_tag)
        for inflow in inflows:
            inflow.consumer_tag, inflow.callback = consumer_tag, callback
            held, inflow.held = inflow.held, []
            for delivery in held:
                self._wire.put_back(inflow.link.source, delivery)
            inflow.link.open(True)

    def basic_cancel(self, consumer_tag: str) -> None:
        """End a consumer; its messages without an outcome can still be settled."""
        self._consumers.discard(consumer_tag)
        self._tag_to_queue.pop(consumer_tag, None)
        self.no_ack_consumers.discard(consumer_tag)
        with kombu_errors():
            for inflow in self._by_consumer.pop(consumer_tag, ()):
                inflow.consumer_tag = inflow.callback = None
                inflow.link.open(False)
                if not inflow.stays:
                    self._idle.setdefault((inflow.queue, inflow.no_ack), []).append(inflow)

    def take(self, source: Source, delivery: Delivery) -> bool:
        """Give a message to its consumer; return False if there is none."""
        inflow = self._inflows[source]
        inflow.link.take()
        if inflow.wants is not None and not inflow.wants(*_route_in(delivery)):
            return False
        if inflow.callback is None:
            if inflow.stays:
                inflow.held.append(delivery)
            elif not delivery.settled:
                self._wire.post(partial(settle, self._window, delivery.release))
            return False
        inflow.callback(self._message(delivery, inflow.consumer_tag, inflow.queue))
        return True

    def _message(self, delivery: Delivery, consumer_tag: str | None, queue: str) -> KombuMessage:
        with self._tags:
            self._last_tag = tag = self._last_tag + 1
        if not delivery.settled:
            self._unsettled[tag] = delivery
        return to_kombu(delivery.message, self, tag, consumer_tag, queue, marks_first=self._wire.marks_first)

    def basic_get(self, queue: str, no_ack: bool = False, **_: Any) -> KombuMessage | None:
        """Return the next message of a queue, or None."""
        with kombu_errors():
            self._wire.check()
            link = self._getters.get(queue)
            if link is None:
                link = self._getters[queue] = self._wire.receiver(self._address(queue))
            delivery = link.pull(self._wire.seconds)
            if delivery is None:
                return None
            if no_ack:
                self._wire.post(partial(attempt, delivery.accept))
            else:
                self._wire.post(self._window.count)
            message = self._message(delivery, None, queue)
            if no_ack:
                self._unsettled.pop(message.delivery_tag, None)
            return message

    def message_to_python(self, raw_message: KombuMessage) -> KombuMessage:
        """Return the message: it is one of kombu's already."""
        return raw_message

    # -- outcomes -------------------------------------------------------------------------------

    def basic_qos(self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False) -> None:
        """Bound the unsettled messages of all consumers of this channel; 0 for no bound."""
        with kombu_errors():
            self._wire.post(partial(self._window.resize, prefetch_count))

    def basic_ack(self, delivery_tag: int, multiple: bool = False) -> None:
        """Accept a message, or all up to it."""
        for delivery in self._with_tag(delivery_tag, multiple):
            self._settle(delivery.accept)

    def basic_reject(self, delivery_tag: int, requeue: bool = False) -> None:
        """Reject a message, or with ``requeue`` give it back.

        A rejected message may be dead-lettered; one that is given back counts as failed once more.
        """
        for delivery in self._with_tag(delivery_tag, False):
            if requeue:
                self._settle(delivery.modify, delivery_failed=True)
            else:
                self._settle(delivery.reject)

    def basic_recover(self, requeue: bool = False) -> None:
        """Give all messages without an outcome back."""
        for tag in tuple(self._unsettled):
            self.basic_reject(tag, requeue=True)

    def _with_tag(self, tag: int, multiple: bool) -> list[Delivery]:
        with kombu_errors():
            self._wire.check_outcome()
        tags = [one for one in tuple(self._unsettled) if one <= tag] if multiple else [tag]
        found = [self._unsettled.pop(one, None) for one in tags]
        return [one for one in found if one is not None]

    def _settle(self, outcome: Callable[..., object], **arguments: Any) -> None:
        with kombu_errors():
            self._wire.post(partial(settle, self._window, outcome, **arguments))

    # -- its end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the links; the peer gives messages without an outcome to others."""
        if self.closed:
            return
        self.closed = True
        try:
            with kombu_errors():
                self.give_back()
                self._close_links()
        finally:
            for source in self._inflows:
                self.connection.sources.pop(source, None)
            self._inflows.clear()
            self.connection.close_channel(self)

    def give_back(self) -> None:
        """End the consumers, and give all messages without an outcome back.

        Do nothing if the connection is lost.
        """
        if not self._wire.is_usable:
            return
        for tag in tuple(self._by_consumer):
            self.basic_cancel(tag)
        self.connection.return_waiting(self)
        for delivery in self._unsettled.values():
            self._wire.post(partial(attempt, partial(delivery.modify, delivery_failed=True)))
        self._unsettled.clear()

    def _close_links(self) -> None:
        if not self._wire.is_usable:
            return
        for inflow in self._inflows.values():
            inflow.link.close()
        for link in self._getters.values():
            link.close()


def _route_in(delivery: Delivery) -> tuple[str, str]:
    annotations = delivery.message.annotations
    return str(annotations.get("x-exchange", "")), str(annotations.get("x-routing-key", ""))
