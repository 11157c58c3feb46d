"""Helpers for the tests of containers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from trio_amqp10.container import Queue

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import trio_amqp10 as amqp
    from trio_amqp10.container import Container


@asynccontextmanager
async def two(container: Container) -> AsyncGenerator[tuple[amqp.Connection, amqp.Connection], None]:
    """Two connections to one container."""
    async with container.connect() as one, container.connect() as other:
        yield one, other


async def fill(conn: amqp.Connection, address: str, *messages: Any) -> None:
    """Send each and wait until all are accepted."""
    async with conn.open_sender(address) as sender:
        for message in messages:
            await sender.send(message)


async def bodies(receiver: amqp.Receiver, count: int, *, accept: bool = True) -> list[Any]:
    """The bodies of the next ``count`` messages."""
    found: list[Any] = []
    for _ in range(count):
        delivery = await receiver.receive()
        found.append(delivery.message.body)
        if accept and not delivery.settled:
            delivery.accept()
    return found


def queue_of(container: Container, address: str = "q") -> Queue:
    queue = container.nodes[address]
    assert isinstance(queue, Queue)
    return queue
