"""A receiver of each protocol that refuses the one message of a queue for itself, and ends.

``attempt`` opens a receiver under a name (a link, a consumer tag on a channel of its own, a handle), gives its message back so
that this receiver does not get it again as far as the protocol has that, and ends the receiver.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager


class Refusing(Protocol):
    """Connections of one protocol, for receivers that refuse."""

    def __call__(
        self, port: int, client: str
    ) -> AbstractAsyncContextManager[Callable[[str], Awaitable[bytes]]]:
        """A connection of the client of this name, with ``attempt``, which returns the body that it refused."""
        ...


def _amqp10(dialect: str) -> Refusing:
    @asynccontextmanager
    async def connected(port: int, client: str) -> AsyncGenerator[Callable[[str], Awaitable[bytes]]]:
        url = f"amqp://127.0.0.1:{port}"
        async with amqp.open_connection(
            url, dialect=dialect, container_id=client, sasl=amqp.sasl.Anonymous()
        ) as connection:

            async def attempt(name: str) -> bytes:
                async with connection.open_receiver("q", name=name, credit=1) as receiver:
                    delivery = await receiver.receive()
                    delivery.modify(undeliverable_here=True)
                    return bytes(delivery.message.body)

            yield attempt

    return connected


@asynccontextmanager
async def _amqp091(port: int, client: str) -> AsyncGenerator[Callable[[str], Awaitable[bytes]]]:
    _ = client
    async with amqp091.open_connection(f"amqp091://127.0.0.1:{port}") as connection:

        async def attempt(name: str) -> bytes:
            async with (
                connection.open_channel() as channel,
                channel.queue("q").consume(prefetch=1, tag=name) as consumer,
            ):
                delivery = await consumer.receive()
                delivery.nack(requeue=True)
                return delivery.body

        yield attempt


@asynccontextmanager
async def _amqp103(port: int, client: str) -> AsyncGenerator[Callable[[str], Awaitable[bytes]]]:
    _ = client
    async with amqp_10_3.open_connection(f"amqp103://127.0.0.1:{port}") as connection:

        async def attempt(name: str) -> bytes:
            async with (
                connection.open_channel() as channel,
                channel.queue("q").consume(prefetch=1, tag=name) as consumer,
            ):
                delivery = await consumer.receive()
                delivery.reject(requeue=True)
                return delivery.body

        yield attempt


@asynccontextmanager
async def _amqp_fast(port: int, client: str) -> AsyncGenerator[Callable[[str], Awaitable[bytes]]]:
    async with amqp_fast.open_connection(f"amqp-fast://127.0.0.1:{port}", client_name=client) as connection:

        async def attempt(name: str) -> bytes:
            _ = name  # a handle has a number
            async with connection.open_channel() as channel, channel.open_handle("q") as handle:
                await handle.consume(prefetch=1)
                delivery = await handle.receive()
                delivery.unget()
                return delivery.body

        yield attempt


REFUSING: Final[dict[str, Refusing]] = {
    "1.0": _amqp10("1.0"),
    "0-9-1": _amqp091,
    "10.3": _amqp103,
    "amqp-fast": _amqp_fast,
    "1.0-draft-2010": _amqp10("1.0-draft-2010"),
}
"""By the names of ``PROTOCOLS``."""
