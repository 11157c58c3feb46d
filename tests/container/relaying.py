"""A container that permits some addresses, and senders on its anonymous terminus."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from trio_amqp10.container import Container

from .helpers import bodies, queue_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import trio_amqp10 as amqp
    from trio_amqp10.broker.rights.access import Access


def guarded(seconds: float | None = None, **options: Any) -> Container:
    """Nobody may send to ``secret``; it takes so long to find out."""

    def authorise(access: Access) -> bool:
        return access.address != "secret"

    async def authorise_later(access: Access) -> bool:
        assert seconds is not None
        if access.action == "send":
            await trio.sleep(seconds if access.address == "slow" else 0)
        return authorise(access)

    container = Container(authorise=authorise if seconds is None else authorise_later, **options)
    for name in ("q", "slow", "secret"):
        container.add_queue(name)
    return container


@asynccontextmanager
async def relaying(
    container: Container, **options: Any
) -> AsyncGenerator[tuple[amqp.Connection, amqp.Sender]]:
    """A connection, and a sender on it to the anonymous terminus."""
    async with container.connect() as conn, conn.open_sender(None, **options) as sender:
        yield conn, sender


async def contents(container: Container, address: str) -> list[Any]:
    """What is on a queue, looked at by somebody who may."""
    count = len(queue_of(container, address))
    async with container.connect() as conn, conn.open_receiver(address) as receiver:
        return await bodies(receiver, count, accept=False)


SECONDS = pytest.mark.parametrize("seconds", [None, 5.0], ids=["at once", "later"])
