"""Helpers for the tests of containers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

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


@asynccontextmanager
async def served_no_more(container: Container) -> AsyncGenerator[None]:
    """What the only connection reads in the body is read after its end: its tasks are over, so that no more can begin."""
    peer: Any
    [peer] = container.connected
    async with trio.open_nursery() as ended:
        pass
    nursery, peer.nursery, peer.open = peer.nursery, ended, False
    yield
    peer.nursery, peer.open = nursery, True


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
