"""For tests of programs that speak AMQP: a real peer within the process, and streams without a network.

``open_container`` gives a container to connect to, in well under a millisecond. With pytest, the
fixture ``amqp_container`` is one too.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from trio_amqp10.container.memory import MemoryStream as MemoryStream
from trio_amqp10.container.memory import memory_stream_pair as memory_stream_pair
from trio_amqp10.container.service import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

__all__ = ["MemoryStream", "memory_stream_pair", "open_container"]


@asynccontextmanager
async def open_container(
    queues: Iterable[str] = (), *, name: str | None = None, strict: bool = False
) -> AsyncGenerator[Container]:
    """A container to test against: ``async with open_container(queues=["orders"]) as container``.

    Reach it with ``async with container.connect() as conn``: no socket, a stream in memory.

    Args:
        queues: the queues that it has from the start.
        name: its container id.
        strict: refuse all other addresses; otherwise they are queues, made when first used.

    Cancelled: nothing stays behind.
    """
    container = Container(name, strict=strict)
    for queue in queues:
        container.add_queue(queue)
    await trio.lowlevel.checkpoint()
    yield container
