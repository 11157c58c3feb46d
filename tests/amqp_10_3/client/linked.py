"""A container, and a client of 10.3 that is connected to it, for the tests of this folder."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from tests.container.served import accepted
from trio_amqp10 import amqp_10_3, sasl
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from trio_amqp10.amqp_10_3 import Channel, Connection


SECONDS = 20


def with_queue() -> Container:
    container = Container()
    container.add_queue("q")
    return container


@asynccontextmanager
async def connected(
    container: Container | None = None,
    *,
    users: sasl.Server | None = None,
    dialect: dict[str, Any] | None = None,
    wrap: Callable[[trio.abc.Stream], trio.abc.Stream] = lambda stream: stream,
    **options: Any,
) -> AsyncGenerator[Connection]:
    served = Amqp103(container or with_queue(), **(dialect or {}))
    ours, theirs = memory_stream_pair()
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(served.serve, accepted(ours, users))
            options.setdefault("allow_plaintext_password", True)
            try:
                async with amqp_10_3.open_connection(wrap(theirs), **options) as connection:
                    yield connection
            finally:
                nursery.cancel_scope.cancel()


@asynccontextmanager
async def channelled(container: Container | None = None, **options: Any) -> AsyncGenerator[Channel]:
    async with connected(container, **options) as connection, connection.open_channel() as channel:
        yield channel


async def settle_down() -> None:
    await wait_all_tasks_blocked(0.01)
