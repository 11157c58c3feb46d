"""Run the RabbitMQ emulator in a thread, for programs that are not trio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ
from trio_amqp10.testing.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from contextlib import AbstractContextManager

    from trio_amqp10.peer.listen import Listener

__all__ = ["rabbitmq"]


def rabbitmq(queues: Iterable[str] = (), *, broker: RabbitMQ | None = None) -> AbstractContextManager[str]:
    """RabbitMQ in a test: ``with rabbitmq(queues=["orders"]) as url``.

    It listens at a port of this machine, without TLS, in a thread of its own, for clients of AMQP 1.0 and of 0-9-1. It has no
    more of RabbitMQ than queues, exchanges and bindings.

    Args:
        queues: the queues that it has before anybody declares one.
        broker: one of yours, with exchanges, say; a new one if None.

    Returns:
        The URL for a client, with user and password; a context manager gives it.
    """
    made = RabbitMQ() if broker is None else broker
    for queue in queues:
        made.declare_queue(queue)
    return in_thread(_served(made), "amqp10 rabbitmq")


@asynccontextmanager
async def _served(broker: RabbitMQ) -> AsyncGenerator[str]:
    async with trio.open_nursery() as nursery:
        serve = partial(broker.container.serve, "amqp://127.0.0.1:0", **broker.serve_options)
        listeners: list[Listener] = await nursery.start(serve)
        yield f"amqp://{broker.login}@127.0.0.1:{listeners[0].port}"
        nursery.cancel_scope.cancel()
