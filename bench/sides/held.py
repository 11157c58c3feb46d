"""What links, connections and deliveries hold: ``python -m bench.sides.held JOB``. The process has both ends of each.

The count is of Python's blocks (``tracemalloc``), or with ``size`` 0 of the resident set, as an operator sees it: they need
runs of their own, since keeping the first costs memory too.
"""

from __future__ import annotations

import gc
import os
import resource
import tracemalloc
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.message import encode_message

from .lines import raise_file_limit, read_job, tell

if TYPE_CHECKING:
    from types import SimpleNamespace

LIMITS = Limits(max_links=None, handle_max=65_535)
IDLE = 1.5
"""Seconds after which a connection has nothing left of what it was busy with."""
BODY = 100


def _held(job: SimpleNamespace) -> int:
    gc.collect()
    if job.size:
        if not tracemalloc.is_tracing():
            tracemalloc.start()
        return tracemalloc.get_traced_memory()[0]
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


async def _serve_no_links(task_status: Any) -> None:
    """A listener whose program waits for links and takes none, and so keeps nothing of its own."""

    async def refuse_all(connection: amqp.Connection) -> None:
        async for link in connection.incoming_links():
            link.refuse()

    await amqp.serve(refuse_all, "amqp://127.0.0.1:0", task_status=task_status)


async def _serve(task_status: Any) -> None:
    """A listener that accepts every link and keeps it, without a task for each."""

    async def accept_all(connection: amqp.Connection) -> None:
        async with AsyncExitStack() as stack:
            async for link in connection.incoming_links():
                await stack.enter_async_context(link.accept())

    await amqp.serve(accept_all, "amqp://127.0.0.1:0", limits=LIMITS, task_status=task_status)


async def links(job: SimpleNamespace) -> dict[str, float]:
    """Octets of a link at one end, of so many on one connection."""
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(_serve)
        async with (
            amqp.open_connection(listeners[0].url, limits=LIMITS) as connection,
            connection.open_sender("warm-up"),
        ):
            before = _held(job)
            opened = []
            for number in range(job.count):
                opening = connection.open_sender(f"node-{number}", name=f"link-{number}")
                opened.append(await opening.__aenter__())
            _end((_held(job) - before) / job.count / 2)
    raise AssertionError


async def connections(job: SimpleNamespace) -> dict[str, float]:
    """Octets of an idle connection at one end."""
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(_serve_no_links)
        async with amqp.open_connection(listeners[0].url), AsyncExitStack() as stack:
            before = _held(job)
            for _ in range(job.count):
                await stack.enter_async_context(amqp.open_connection(listeners[0].url, close_timeout=0.1))
            await trio.sleep(IDLE)
            _end((_held(job) - before) / job.count / 2)
    raise AssertionError


async def unsettled(job: SimpleNamespace) -> dict[str, float]:
    """Octets of an unsettled delivery beyond its payload, at one end; programs at both ends keep theirs."""
    taken: list[amqp.Delivery] = []
    done = trio.Event()

    async def take_all(connection: amqp.Connection) -> None:
        link = await anext(connection.incoming_links())
        assert isinstance(link, amqp.IncomingReceiver)
        async with link.accept(credit=1000) as receiver:
            async for delivery in receiver:
                taken.append(delivery)
                if len(taken) in (1, job.count + 1):
                    done.set()

    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(amqp.serve, take_all, "amqp://127.0.0.1:0")
        async with (
            amqp.open_connection(listeners[0].url) as connection,
            connection.open_sender("q") as sender,
        ):
            sent = [await sender.transmit(bytes(BODY))]
            await done.wait()
            done = trio.Event()
            before = _held(job)
            sent += [await sender.transmit(bytes(BODY)) for _ in range(job.count)]
            await done.wait()
            payload = len(encode_message(bytes(BODY)))
            _end((_held(job) - before) / job.count / 2 - payload)
    raise AssertionError


async def queued(job: SimpleNamespace) -> dict[str, float]:
    """Octets of a message in a queue in memory, beyond its payload."""
    container = amqp.Container("held", memory_limit=None)
    container.add_queue("q")
    async with container.connect() as connection, connection.open_sender("q") as sender:
        await sender.send(bytes(BODY))
        before = _held(job)
        for _ in range(job.count):
            await sender.transmit(bytes(BODY))
        await sender.flush()
        _end((_held(job) - before) / job.count - len(encode_message(bytes(BODY))))
    raise AssertionError


def _end(octets: float) -> None:
    tell(result={"octets": octets})
    os._exit(0)  # taking ten thousand links down again is not what is measured


ROLES = {each.__name__: each for each in (links, connections, unsettled, queued)}


def main() -> None:
    job = read_job()
    raise_file_limit()
    trio.run(ROLES[job.role], job)


if __name__ == "__main__":
    main()
