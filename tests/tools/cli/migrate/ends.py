"""Both kinds of ends, in this process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, rabbitmq
from trio_amqp10.tools.cli.migrate.container_end import ContainerEnd
from trio_amqp10.tools.cli.migrate.rabbitmq_end import RabbitMQEnd

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ


def managed(*queues: str, store: amqp.SqliteStore | None = None, **rules: Any) -> amqp.Container:
    """A container with these queues, and ``$management``."""
    container = amqp.Container(store=store)
    container.add_management()
    for queue in queues:
        container.add_queue(queue, **rules)
    return container


@asynccontextmanager
async def end_of(container: amqp.Container, name: str = "here") -> AsyncGenerator[ContainerEnd]:
    async with container.connect() as conn, conn.open_management() as management:
        yield ContainerEnd(conn, management, name)


@asynccontextmanager
async def emulated(emulator: RabbitMQ) -> AsyncGenerator[RabbitMQEnd]:
    async with emulator.container.connect() as conn, rabbitmq.open_management(conn) as broker:
        yield RabbitMQEnd(conn, broker, "there", partial(_dialled_091, emulator))


@asynccontextmanager
async def _dialled_091(emulator: RabbitMQ) -> AsyncGenerator[amqp091.Connection]:
    serve = partial(emulator.container.serve, "amqp://127.0.0.1:0", **emulator.serve_options)
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(serve)
        async with amqp091.open_connection(
            f"amqp://{emulator.login}@{listener.url.partition('//')[2]}"
        ) as conn:
            yield conn
        nursery.cancel_scope.cancel()


async def send(container: amqp.Container, address: str, bodies: Iterable[Any]) -> None:
    async with container.connect() as conn, conn.open_sender(address) as sender:
        for body in bodies:
            await sender.send(body if isinstance(body, amqp.Message) else amqp.Message(body))


async def bodies(container: amqp.Container, address: str) -> list[Any]:
    """All that is ready, taken."""
    async with container.connect() as conn, conn.open_receiver(address, credit=0) as receiver:
        receiver.grant(10_000)
        found = await receiver.drain()
        for each in found:
            each.accept()
        return [each.message.body for each in found]
