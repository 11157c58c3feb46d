"""Clients of every protocol with one interface: send to a queue, and receive."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import trio.lowlevel

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The parts of a message that every protocol has, or most.

    Attributes:
        lifetime: seconds until it expires; None for never.
        redelivered: whether it is marked as delivered before.
    """

    body: bytes
    durable: bool = False
    priority: int = 4
    lifetime: float | None = None
    message_id: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    redelivered: bool = False


class Client(Protocol):
    """A client of one wire."""

    @property
    def lacks(self) -> frozenset[str]:
        """The fields that the wire has no place for."""
        ...

    async def send(self, port: int, queue: str, message: Fields) -> None:
        """Send it, and wait until the queue has it."""
        ...

    def receive(self, port: int, queue: str) -> AbstractAsyncContextManager[Receiving]:
        """Receive from a queue, as long as the context is."""
        ...

    async def leave(self, port: int, queue: str) -> None:
        """Receive one message of two, and end the link or channel without an outcome."""
        ...


class Receiving(Protocol):
    """A receiver of one client."""

    async def next(self, *, keep: bool) -> Fields:
        """The next message, which is acknowledged, or else put back."""
        ...


class _Amqp10:
    """AMQP 1.0, or its draft of 2010, which has binary message ids."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    lacks: Final = frozenset[str]()

    def _dial(self, port: int) -> AbstractAsyncContextManager[amqp.Connection]:
        url = f"amqp://127.0.0.1:{port}"
        return amqp.open_connection(url, dialect=self._dialect, sasl=amqp.sasl.Anonymous())

    async def send(self, port: int, queue: str, message: Fields) -> None:
        made = amqp.Message(
            message.body,
            durable=message.durable,
            priority=message.priority,
            ttl=None if message.lifetime is None else int(message.lifetime * 1000),
            message_id=message.message_id,
            correlation_id=message.correlation_id,
            reply_to=message.reply_to,
            application_properties=message.headers,
        )
        async with (
            self._dial(port) as connection,
            connection.open_sender(queue) as sender,
        ):
            await sender.send(made)

    @asynccontextmanager
    async def receive(self, port: int, queue: str) -> AsyncGenerator[Receiving]:
        async with (
            self._dial(port) as connection,
            connection.open_receiver(queue, credit=1) as receiver,
        ):
            yield _Receiving10(receiver)

    async def leave(self, port: int, queue: str) -> None:
        async with (
            self._dial(port) as connection,
            connection.open_receiver(queue, credit=2) as receiver,
        ):
            await receiver.receive()
            await _until(lambda: receiver.buffered == 1)


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await trio.lowlevel.checkpoint()


class _Receiving10:
    def __init__(self, receiver: amqp.Receiver) -> None:
        self._receiver = receiver

    async def next(self, *, keep: bool) -> Fields:
        delivery = await self._receiver.receive()
        message = delivery.message
        if keep:
            delivery.accept()
        else:
            delivery.modify(delivery_failed=True)
        lifetime = None if message.ttl is None else message.ttl / 1000
        if message.absolute_expiry_time is not None:
            lifetime = int(message.absolute_expiry_time) / 1000 - time.time()
        return Fields(
            body=bytes(message.body),
            durable=bool(message.durable),
            priority=message.priority,
            lifetime=lifetime,
            message_id=_text(message.message_id),
            correlation_id=_text(message.correlation_id),
            reply_to=message.reply_to,
            headers={str(name): str(value) for name, value in message.application_properties.items()},
            redelivered=message.delivery_count > 0,
        )


def _text(identifier: object) -> str | None:
    if isinstance(identifier, bytes):  # all that the draft has
        return identifier.decode()
    assert identifier is None or isinstance(identifier, str)
    return identifier


class _Amqp091:
    lacks: Final = frozenset[str]()

    async def send(self, port: int, queue: str, message: Fields) -> None:
        async with (
            amqp091.open_connection(f"amqp091://127.0.0.1:{port}") as connection,
            connection.open_publisher() as publisher,
        ):
            await publisher.publish(
                "", queue, message.body, properties=_properties_of(message), mandatory=True
            )

    @asynccontextmanager
    async def receive(self, port: int, queue: str) -> AsyncGenerator[Receiving]:
        async with (
            amqp091.open_connection(f"amqp091://127.0.0.1:{port}") as connection,
            connection.open_channel() as channel,
            channel.queue(queue).consume(prefetch=1) as consumer,
        ):
            yield _Receiving091(consumer)

    async def leave(self, port: int, queue: str) -> None:
        async with (
            amqp091.open_connection(f"amqp091://127.0.0.1:{port}") as connection,
            connection.open_channel() as channel,
            channel.queue(queue).consume(prefetch=2) as consumer,
        ):
            await consumer.receive()
            await _until(lambda: consumer.buffered == 1)


class _Receiving091:
    def __init__(self, consumer: amqp091.Consumer) -> None:
        self._consumer = consumer

    async def next(self, *, keep: bool) -> Fields:
        delivery = await self._consumer.receive()
        if keep:
            delivery.ack()
        else:
            delivery.nack(requeue=True)
        return _fields_of(delivery, "x-message-id", "x-correlation-id")


def _properties_of(message: Fields) -> amqp091.BasicProperties:
    return amqp091.BasicProperties(
        delivery_mode=2 if message.durable else 1,
        priority=message.priority,
        expiration=None if message.lifetime is None else str(int(message.lifetime * 1000)),
        message_id=message.message_id,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        headers=dict(message.headers),
    )


def _fields_of(delivery: amqp091.Delivery | amqp_10_3.Delivery, message: str, correlation: str) -> Fields:
    """Return the fields of a delivery.

    Binary identifiers are in its headers, because properties hold text alone.
    """
    found = delivery.properties
    headers = dict(delivery.headers)
    message_id, correlation_id = (_text(headers.pop(name, None)) for name in (message, correlation))
    return Fields(
        body=delivery.body,
        durable=found.delivery_mode == 2,
        priority=4 if found.priority is None else found.priority,
        lifetime=None if found.expiration is None else int(found.expiration) / 1000,
        message_id=found.message_id or message_id,
        correlation_id=found.correlation_id or correlation_id,
        reply_to=found.reply_to,
        headers={name: str(value) for name, value in headers.items()},
        redelivered=delivery.redelivered,
    )


class _AmqpFast:
    lacks: Final = frozenset({"correlation_id"})

    async def send(self, port: int, queue: str, message: Fields) -> None:
        headers = dict(message.headers)
        if message.reply_to is not None:
            headers["REPLY_TO"] = message.reply_to
        async with self._channel(port) as channel, channel.open_handle(queue) as handle:
            await handle.send(
                message.body,
                persistent=message.durable,
                priority=message.priority,
                expiration=0 if message.lifetime is None else int(time.time() + message.lifetime),
                identifier=message.message_id or "",
                headers=headers,
            )

    @asynccontextmanager
    async def receive(self, port: int, queue: str) -> AsyncGenerator[Receiving]:
        async with self._channel(port) as channel, channel.open_handle(queue) as handle:
            await handle.consume(prefetch=1)
            yield _ReceivingFast(handle)

    @asynccontextmanager
    async def _channel(self, port: int) -> AsyncGenerator[amqp_fast.Channel]:
        async with (
            amqp_fast.open_connection(f"amqp-fast://127.0.0.1:{port}") as connection,
            connection.open_channel() as channel,
        ):
            yield channel

    async def leave(self, port: int, queue: str) -> None:
        async with self._channel(port) as channel, channel.open_handle(queue) as handle:
            await handle.consume(prefetch=2)
            await handle.receive()
            await _until(lambda: handle.buffered == 1)


class _ReceivingFast:
    def __init__(self, handle: amqp_fast.Handle) -> None:
        self._handle = handle

    async def next(self, *, keep: bool) -> Fields:
        delivery = await self._handle.receive()
        if keep:
            delivery.ack()
        else:
            delivery.unget()
        head = delivery.head
        headers = {name: str(value) for name, value in head.headers.items()}
        return Fields(
            body=delivery.body,
            durable=head.persistent,
            priority=head.priority,
            lifetime=head.expiration - time.time() if head.expiration else None,
            message_id=head.identifier or None,
            reply_to=headers.pop("REPLY_TO", None),
            headers=headers,
            redelivered=delivery.redelivered,
        )


class _Amqp103:
    lacks: Final = frozenset[str]()

    async def send(self, port: int, queue: str, message: Fields) -> None:
        async with (
            amqp_10_3.open_connection(f"amqp103://127.0.0.1:{port}") as connection,
            connection.open_transaction() as out,
        ):
            await out.publish("", queue, message.body, properties=_properties_of(message))

    @asynccontextmanager
    async def receive(self, port: int, queue: str) -> AsyncGenerator[Receiving]:
        async with amqp_10_3.open_connection(f"amqp103://127.0.0.1:{port}") as connection:
            yield _Receiving103(connection, queue)

    async def leave(self, port: int, queue: str) -> None:
        async with (
            amqp_10_3.open_connection(f"amqp103://127.0.0.1:{port}") as connection,
            connection.open_channel() as channel,
            channel.queue(queue).consume(prefetch=2) as consumer,
        ):
            await consumer.receive()
            await _until(lambda: consumer.buffered == 1)


class _Receiving103:
    def __init__(self, connection: amqp_10_3.Connection, queue: str) -> None:
        self._connection = connection
        self._queue = queue

    async def next(self, *, keep: bool) -> Fields:
        # What a channel rejected does not come to it again (C 1083-1096): so each message has a channel of its own.
        async with (
            self._connection.open_channel() as channel,
            channel.queue(self._queue).consume(prefetch=1) as consumer,
        ):
            delivery = await consumer.receive()
            if keep:
                delivery.ack()
            else:
                delivery.reject(requeue=True)
        return _fields_of(delivery, "x_message_id", "x_correlation_id")


CLIENTS: Final[dict[str, Client]] = {
    "1.0": _Amqp10("1.0"),
    "0-9-1": _Amqp091(),
    "amqp-fast": _AmqpFast(),
    "10.3": _Amqp103(),
    "1.0-draft-2010": _Amqp10("1.0-draft-2010"),
}
"""By the names of ``container.dialects``, and 1.0."""
