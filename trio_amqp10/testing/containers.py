"""Containers for tests, in the test's event loop or in a thread."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_amqp10.container.container import Container
from trio_amqp10.sasl import Server

from .name_arguments import names_in
from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from trio_amqp10.amqp10.peer.listen import Listener


@asynccontextmanager
async def open_container(
    queues: Iterable[str] = (),
    *,
    name: str | None = None,
    strict: bool = False,
    wall_clock: Callable[[], float] = time.time,
) -> AsyncGenerator[Container]:
    """Open a container: ``async with open_container(queues=["orders"]) as container``.

    Connect with ``async with container.connect() as conn``, through a stream in memory instead of a socket.

    Args:
        queues: the queues to create.
        name: the container id.
        strict: whether to refuse all other addresses; otherwise a queue is created at each address on first use.
        wall_clock: returns seconds since 1970, as for ``Container``.

    Cancelled: no resources remain.
    """
    container = Container(name, strict=strict, wall_clock=wall_clock)
    for queue in names_in(queues, "queues"):
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
    """Run a container in a thread: ``with running_container(["orders"]) as url``.

    For code that does not use trio: blocking code, asyncio, or another process. The container listens at a port of this machine, and
    serves AMQP 1.0, 0-9-1, 10.3 and AMQP/Fast. Its handlers run in the thread.

    Args:
        queues: the queues to create.
        container: your own container, with its functions and consumers; a new one if None.
        users: passwords by user name; if there are none, everyone may connect.
        strict: for a new container, whether to refuse all other addresses.

    Returns:
        A context manager, whose value is the URL to dial.
    """
    made = Container(strict=strict) if container is None else container
    for queue in names_in(queues, "queues"):
        made.add_queue(queue)
    return in_thread(_served(made, Server(users=users) if users else None), "amqp10 container")


@asynccontextmanager
async def _served(container: Container, sasl: Server | None) -> AsyncGenerator[str]:
    serve = partial(container.serve, "amqp://127.0.0.1:0", sasl=sasl, dialects="all")
    async with trio.open_nursery() as nursery:
        listeners: list[Listener] = await nursery.start(serve)
        yield listeners[0].url
        nursery.cancel_scope.cancel()
