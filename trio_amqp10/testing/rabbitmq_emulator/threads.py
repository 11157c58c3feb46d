"""Run the RabbitMQ emulator in a thread, for programs that do not use trio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

import trio

from trio_amqp10.testing.name_arguments import names_in
from trio_amqp10.testing.threads import in_thread

from . import RabbitMQ

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from contextlib import AbstractContextManager

    from trio_amqp10.amqp10.peer.listen import Listener


@overload
def rabbitmq(
    queues: Iterable[str] = (), *, broker: RabbitMQ | None = None, http: Literal[False] = False
) -> AbstractContextManager[str]: ...
@overload
def rabbitmq(
    queues: Iterable[str] = (), *, broker: RabbitMQ | None = None, http: Literal[True]
) -> AbstractContextManager[tuple[str, str]]: ...
def rabbitmq(
    queues: Iterable[str] = (), *, broker: RabbitMQ | None = None, http: bool = False
) -> AbstractContextManager[str] | AbstractContextManager[tuple[str, str]]:
    """Run a RabbitMQ emulator: ``with rabbitmq(queues=["orders"]) as url``.

    It listens at a port of this machine, without TLS, in its own thread, for clients of AMQP 1.0 and 0-9-1. Of RabbitMQ it has only
    queues, exchanges and bindings; and its management API by HTTP, if that is asked for.

    Args:
        queues: the queues to declare.
        broker: your own emulator, for example with exchanges; a new one if None.
        http: whether it serves the management API too, which needs the extra ``[http]``.

    Returns:
        A context manager, whose value is the URL for a client, with user and password; with ``http`` a tuple of this URL and the
        one of the API, ``http://USER:PASSWORD@127.0.0.1:PORT``.
    """
    made = RabbitMQ() if broker is None else broker
    for queue in names_in(queues, "queues"):
        made.declare_queue(queue)
    if http:
        return in_thread(_served_with_http(made), "amqp10 rabbitmq")
    return in_thread(_served(made), "amqp10 rabbitmq")


@asynccontextmanager
async def _served(broker: RabbitMQ) -> AsyncGenerator[str]:
    async with trio.open_nursery() as nursery:
        serve = partial(broker.container.serve, "amqp://127.0.0.1:0", **broker.serve_options)
        listeners: list[Listener] = await nursery.start(serve)
        yield f"amqp://{broker.login}@127.0.0.1:{listeners[0].port}"
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _served_with_http(broker: RabbitMQ) -> AsyncGenerator[tuple[str, str]]:
    async with _served(broker) as url, trio.open_nursery() as nursery:
        serve = partial(broker.container.serve_http, "http://127.0.0.1:0", sasl=broker.serve_options["sasl"])
        listeners: list[Listener] = await nursery.start(serve)
        yield url, f"http://{broker.login}@127.0.0.1:{listeners[0].port}"
        nursery.cancel_scope.cancel()
