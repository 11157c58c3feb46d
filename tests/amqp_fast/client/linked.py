"""A container, and a client of AMQP/Fast that is connected to it, for the tests of this folder."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.container.served import accepted
from trio_amqp10 import amqp_fast, sasl
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from trio_amqp10.amqp_fast.engine.limits import Limits


def with_nodes() -> Container:
    container = Container(strict=True)
    container.add_queue("q")
    container.add_topic("t")

    @container.function("upper")
    async def upper(message: amqp.Message) -> Any:
        return bytes(message.body).upper()

    return container


@asynccontextmanager
async def connected(
    container: Container | None = None,
    users: sasl.Server | None = None,
    limits: Limits | None = None,
    wrap: Callable[[trio.abc.Stream], trio.abc.Stream] = lambda stream: stream,
    **options: Any,
) -> AsyncGenerator[amqp_fast.Connection]:
    made = AmqpFast(container or with_nodes(), limits=limits)
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.serve, accepted(ours, users))
        try:
            async with amqp_fast.open_connection(wrap(theirs), virtual_path="/", **options) as connection:
                yield connection
        finally:
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def channelled(container: Container | None = None, **options: Any) -> AsyncGenerator[amqp_fast.Channel]:
    async with connected(container, **options) as connection, connection.open_channel() as channel:
        yield channel
