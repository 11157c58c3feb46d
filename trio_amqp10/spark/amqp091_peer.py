"""AMQP 0-9-1 for the pipeline, behind the interface of an AMQP 1.0 connection.

Only the part of the interface that the pipeline uses is there, over the client of ``amqp091``.

====================  ==========================================================================================
AMQP 1.0              AMQP 0-9-1
====================  ==========================================================================================
an address            a queue by its name, or in the form of RabbitMQ 4: ``/queues/NAME``, ``/exchanges/NAME[/KEY]``
credit                the prefetch of a consumer, which is replaced when the prefetch must change
accepted, rejected    ``basic.ack``; ``basic.reject`` without requeue
drain                 as many messages as the queue had when the receiver was opened
the bare message      by ``amqp091.translate``, either way, so that the columns are those of AMQP 1.0
an outcome            a publisher confirm; a nack or a return (mandatory) is ``rejected``
====================  ==========================================================================================

Selectors, transactions, kept links and copies do not exist here; the options refuse them.

Sections: 0-9-1, classes basic and queue; RabbitMQ's confirms. Knows connections, not Spark.
"""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.amqp091.conversion.translate import to_publication
from trio_amqp10.core.errors import Condition, LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from trio_amqp10.net.pump import Pump

    from .options import PeerOptions

_MOST_PREFETCH: Final = 65_535
_WINDOW: Final = 10_000
"""Publishes that may wait for their confirm; ``maxInFlight`` is usually lower."""
_QUEUES, _EXCHANGES = "/queues/", "/exchanges/"


def is_091_loss(failure: BaseException | None, came_through: bool) -> bool | None:
    """Whether another attempt may succeed; None for a failure that is not of 0-9-1."""
    if isinstance(failure, amqp091.PublishInDoubtError):
        return is_091_loss(failure.__cause__, came_through) is not False
    if isinstance(failure, amqp091.ConsumerCancelledError):
        return True
    if isinstance(failure, amqp091.NotFoundError):
        return came_through  # at first the name is wrong; later the broker may still be starting
    if isinstance(failure, (amqp091.ConnectionClosedError, amqp091.ChannelClosedError)):
        return failure.may_retry
    return None


def place_of(address: str) -> tuple[str, str]:
    """Return the exchange and the routing key of an address.

    A queue is a routing key of the exchange without a name.
    """
    if address.startswith(_QUEUES):
        return "", unquote(address.removeprefix(_QUEUES))
    if address.startswith(_EXCHANGES):
        exchange, _, key = address.removeprefix(_EXCHANGES).partition("/")
        return unquote(exchange), unquote(key)
    return "", address


@asynccontextmanager
async def open_091(options: PeerOptions, sasl: Any) -> AsyncGenerator[amqp.Connection]:
    """Open a connection for ``connections.dial``.

    Args:
        options: the peer and the limits of the connection.
        sasl: the SASL mechanism; None for the default ones.

    Raises: as ``amqp091.open_connection``.

    Cancelled: the connection is closed.
    """
    async with amqp091.open_connection(
        options.dial_url(),
        sasl=sasl,
        allow_plaintext_password=options.allow_plaintext_password,
        cafile=options.tls_ca,
        certfile=options.tls_cert,
        keyfile=options.tls_key,
        heartbeat=max(1, round(options.idle_timeout)),
        frame_max=options.max_frame_size,
        connection_name=options.container_id,
    ) as connection:
        yield cast("amqp.Connection", _Connection(connection))


class _Remote:
    def __init__(self, connection: amqp091.Connection) -> None:
        properties = connection.server_properties
        self.container_id = str(properties.get("cluster_name") or properties.get("product") or "")


class _Connection:
    """The part of ``amqp.Connection`` that the pipeline uses."""

    def __init__(self, connection: amqp091.Connection) -> None:
        self._connection = connection
        self.remote: Final = _Remote(connection)

    @property
    def pump(self) -> Pump:
        return self._connection.pump

    @property
    def closed(self) -> bool:
        return not self._connection.is_up

    async def wait_closed(self) -> None:
        await self._connection.wait_closed()

    @asynccontextmanager
    async def open_receiver(self, address: str, **_wishes: object) -> AsyncGenerator[_Receiver]:
        exchange, name = place_of(address)
        if exchange:
            raise LocalProtocolError(
                f"{address!r} is an exchange: messages are received from a queue that is bound to it"
            )
        async with self._connection.open_channel(prefetch=None) as channel:
            queue = await channel.declare_queue(name, passive=True)
            receiver = _Receiver(self._connection, channel.queue(name), queue.message_count)
            try:
                yield receiver
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + 1.0):
                    await receiver.aclose()

    @asynccontextmanager
    async def open_sender(self, address: str) -> AsyncGenerator[_Sender]:
        async with self._connection.open_publisher(window=_WINDOW, republish=False) as publisher:
            yield _Sender(publisher, *place_of(address))


# Receiving ----------------------------------------------------------------------------------------


class _Receiver:
    """The part of ``amqp.Receiver`` that the pipeline uses, over a consumer.

    It never hands out more messages than were granted.

    Attributes:
        credit: messages that were granted and not handed out yet.
        available: messages that the queue had when the receiver was opened, without the drained ones.
        closed: whether ``aclose`` was called.
    """

    def __init__(self, connection: amqp091.Connection, queue: amqp091.Queue, ready: int) -> None:
        self.credit = 0
        self.available = ready
        self.closed = False
        self.unsettled = 0
        self._connection = connection
        self._queue = queue
        self._prefetch = 0
        self._consuming: AbstractAsyncContextManager[amqp091.Consumer] | None = None
        self._consumer: amqp091.Consumer | None = None
        self._here: deque[amqp091.Delivery] = deque()

    @property
    def buffered(self) -> int:
        """The number of messages that a cancelled drain has received."""
        return len(self._here)

    @property
    def remote(self) -> Any:
        """Raise ``LocalProtocolError``: there is no source to check."""
        raise LocalProtocolError("AMQP 0-9-1 has no sources")

    def check_alive(self) -> None:
        if not self._connection.is_up:
            raise ConnectionResetError("the connection is gone")

    def grant(self, more: int) -> None:
        self.credit += more

    async def receive_many(self, maximum: int) -> list[_Delivery]:
        consumer = await self._consuming_as_granted()
        return self._taken(await consumer.receive_many(max(1, min(maximum, self.credit))))

    async def drain(self) -> list[_Delivery]:
        """Receive messages that the queue had at the opening, at most as many as granted.

        Cancelled: the messages that came are ``buffered``.
        """
        wanted = min(self.credit, self.available)
        if wanted:
            consumer = await self._consuming_as_granted()
            while len(self._here) < wanted:
                self._here.extend(await consumer.receive_many(wanted - len(self._here)))
        found = self._taken([self._here.popleft() for _ in range(wanted)])
        self.available -= wanted
        self.credit = 0
        return found

    def receive_nowait(self) -> _Delivery:
        return self._taken([self._here.popleft()])[0]

    def _taken(self, deliveries: list[amqp091.Delivery]) -> list[_Delivery]:
        self.credit -= len(deliveries)
        self.unsettled += len(deliveries)
        return [_Delivery(each, self) for each in deliveries]

    async def _consuming_as_granted(self) -> amqp091.Consumer:
        """Return a consumer whose prefetch is about the credit plus unsettled messages.

        The server has one limit for messages on their way and unsettled ones (``basic.qos``).
        """
        limit = max(1, min(_MOST_PREFETCH, self.credit + self.unsettled))
        if self._consumer is None or not self._prefetch <= 4 * limit <= 8 * self._prefetch:
            await self._stop_consuming()
            self._prefetch = limit
            self._consuming = self._queue.consume(prefetch=limit)
            self._consumer = await self._consuming.__aenter__()
        return self._consumer

    async def _stop_consuming(self) -> None:
        """Cancel the consumer; the server requeues the messages that were not received."""
        consuming, self._consuming, self._consumer = self._consuming, None, None
        if consuming is not None:
            await consuming.__aexit__(None, None, None)

    async def aclose(self) -> None:
        """Stop consuming; received messages can be settled as long as the channel is open."""
        self.closed = True
        try:
            await self._stop_consuming()
        except (amqp091.ConnectionClosedError, amqp091.ChannelClosedError):
            return


class _Delivery:
    """The part of ``amqp.Delivery`` that the pipeline uses, with two outcomes."""

    __slots__ = ("_delivery", "_receiver", "payload", "tag")

    message_format: Final = 0

    def __init__(self, delivery: amqp091.Delivery, receiver: _Receiver) -> None:
        self._delivery = delivery
        self._receiver = receiver
        self.payload = delivery.to_message().to_payload()
        self.tag = delivery.tag.to_bytes(8, "big")

    @property
    def settled(self) -> bool:
        return self._delivery.settled

    def accept(self) -> None:
        self._settle(reject=False)

    def reject(self, condition: object, description: str) -> None:  # noqa: ARG002 - 0-9-1 has no place for it
        self._settle(reject=True)

    def _settle(self, *, reject: bool) -> None:
        """Settle the delivery; raise ``LocalProtocolError`` if the channel is closed."""
        try:
            if reject:
                self._delivery.reject(requeue=False)
            else:
                self._delivery.ack()
        except (
            amqp091.ConnectionClosedError,
            amqp091.ChannelClosedError,
            trio.ClosedResourceError,
        ) as gone:
            raise LocalProtocolError(f"the delivery cannot be settled: {gone}") from gone
        self._receiver.unsettled -= 1


# Sending ------------------------------------------------------------------------------------------


class _Sender:
    """The part of ``amqp.Sender`` that the pipeline uses, with confirms.

    A message that no queue takes is rejected (mandatory).
    """

    def __init__(self, publisher: amqp091.Publisher, exchange: str, routing_key: str) -> None:
        self._publisher = publisher
        self._exchange = exchange
        self._routing_key = routing_key

    def send_nowait(self, message: amqp.Message, transaction: object = None) -> _Outgoing:  # noqa: ARG002
        """Raise ``trio.WouldBlock``: the server may have blocked publishers."""
        raise trio.WouldBlock

    async def transmit(self, message: amqp.Message, transaction: object = None) -> _Outgoing:  # noqa: ARG002
        made = to_publication(message, plain_text=True)
        ticket = await self._publisher.transmit(
            self._exchange, self._routing_key, made.body, mandatory=True, properties=made.properties
        )
        return _Outgoing(ticket)

    async def flush(self) -> None:
        await self._publisher.wait_confirmed()

    async def aclose(self) -> None:
        await self._publisher.aclose()


class _Outgoing:
    """The part of ``amqp.OutgoingDelivery`` that the pipeline uses."""

    __slots__ = ("_ticket",)

    def __init__(self, ticket: amqp091.Ticket) -> None:
        self._ticket = ticket

    @property
    def state(self) -> amqp.Accepted | None:
        return amqp.Accepted() if self._ticket.state == "confirmed" else None

    async def outcome(self) -> amqp.Accepted | amqp.Rejected:
        try:
            await self._ticket.outcome()
        except amqp091.ReturnedError as returned:
            return amqp.Rejected(
                error=amqp.ErrorInfo(condition=Condition.NOT_FOUND, description=str(returned))
            )
        except amqp091.NackedError as refused:
            return amqp.Rejected(
                error=amqp.ErrorInfo(condition=Condition.RESOURCE_LIMIT_EXCEEDED, description=str(refused))
            )
        return amqp.Accepted()
