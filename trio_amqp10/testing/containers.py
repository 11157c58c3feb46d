"""Containers for tests: in the test's event loop, or in a thread."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_amqp10.container.container import Container
from trio_amqp10.sasl import Server

from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from contextlib import AbstractContextManager

    from trio_amqp10.peer.listen import Listener

__all__ = ["open_container", "running_container"]


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


def running_container(
    queues: Iterable[str] = (),
    *,
    container: Container | None = None,
    users: Mapping[str, str] | None = None,
    strict: bool = False,
) -> AbstractContextManager[str]:
    """A container at a port of this machine, in a thread: ``with running_container(queues=["orders"]) as url``.

    For code that is not trio: blocking, asyncio, or another process. Handlers of the container run in
    that thread. It speaks AMQP 1.0 and 0-9-1.

    Args:
        queues: the queues that it has from the start.
        container: one of yours, with its functions and consumers; a new one if None.
        users: passwords by user; without any, everybody may connect.
        strict: of a new container: refuse all other addresses.

    Returns:
        The URL to dial, with the real port; a context manager gives it.
    """
    made = Container(strict=strict) if container is None else container
    for queue in queues:
        made.add_queue(queue)
    return in_thread(_served(made, Server(users=users) if users else None), "amqp10 container")


@asynccontextmanager
async def _served(container: Container, sasl: Server | None) -> AsyncGenerator[str]:
    serve = partial(container.serve, "amqp://127.0.0.1:0", sasl=sasl, dialects="all")
    async with trio.open_nursery() as nursery:
        listeners: list[Listener] = await nursery.start(serve)
        yield listeners[0].url
        nursery.cancel_scope.cancel()
