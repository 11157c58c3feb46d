"""A node that keeps what streams bring."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp

from .helpers import served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable


class Sink:
    """A service that reads streams with ``read``, and remembers what became of it."""

    def __init__(
        self, read: Callable[[amqp.Delivery], Awaitable[object]] | None = None, **options: Any
    ) -> None:
        self.read = read or self.join
        self.options = {"streaming": True, **options}
        self.got: list[Any] = []
        self.changed = trio.Event()

    async def join(self, delivery: amqp.Delivery) -> bytes:
        got = bytearray()
        async for chunk in delivery.chunks():
            assert chunk
            got += chunk
        delivery.accept()
        return bytes(got)

    async def handle(self, connection: amqp.Connection) -> None:
        async with trio.open_nursery() as nursery:
            async for link in connection.incoming_links():
                assert isinstance(link, amqp.IncomingReceiver)
                nursery.start_soon(self.receive, link)

    async def receive(self, link: amqp.IncomingReceiver) -> None:
        async with link.accept(**self.options) as receiver:
            try:
                async for delivery in receiver:
                    try:
                        self.got.append(await self.read(delivery))
                    except amqp.AmqpError as failure:
                        self.got.append(failure)
                    self.changed.set()
            except trio.BrokenResourceError:
                pass


@asynccontextmanager
async def sink(
    read: Callable[[amqp.Delivery], Awaitable[object]] | None = None, **options: Any
) -> AsyncGenerator[tuple[amqp.Sender, Sink]]:
    service = Sink(read, **options)
    async with served(service.handle) as conn, conn.open_sender("q") as sender:
        yield sender, service
