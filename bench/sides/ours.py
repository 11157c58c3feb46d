"""This library as one side: ``python -m bench.sides.ours JOB``. Only what is public is measured.

=========  ====================================================================================================
send       the span ends when every outcome is known, or when the peer has answered the end of a link that sends settled
receive    from the first message to the last
subscribe  the same on many links, each of which gets every message of a topic
ping       one message at a time: its way there and that of its outcome back
stream     each body in pieces of 64 KiB
drink      a receiver of such bodies, piece by piece
=========  ====================================================================================================
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.engine.limits import Limits

from .lines import Span, go, raise_file_limit, read_job, tell
from .messages import maker, reader

if TYPE_CHECKING:
    from types import SimpleNamespace

BLOCK = 64 * 1024
LIMITS = Limits(max_links=None, handle_max=65_535)


async def send(job: SimpleNamespace) -> dict[str, float]:
    """Dial, attach, send, and tell what came of it."""
    make = maker(job.message, job.size, durable=job.durable)
    async with AsyncExitStack() as stack:
        senders, connection = await _attach(job, stack)
        go()
        span = Span()
        if job.batch:
            await _transact(job, senders[0], connection, make)
        elif job.outcomes == "each":
            deliveries = [await senders[0].transmit(make(number)) for number in range(job.count)]
            for delivery in deliveries:
                assert isinstance(await delivery.outcome(), amqp.Accepted)
        elif job.busy == 1:
            sender = senders[0]
            for number in range(job.count):
                await sender.transmit(make(number))
        else:
            for number in range(job.count):
                await senders[number % job.busy].transmit(make(number))
        for sender in senders[: job.busy]:
            await sender.flush()
        if job.guarantee == "at-most-once":
            await senders[0].aclose()
        tell(
            result=span.end(job.count)
        )  # before a thousand connections are closed, which a server's time would count
    return {}


async def _attach(job: SimpleNamespace, stack: AsyncExitStack) -> tuple[list[amqp.Sender], amqp.Connection]:
    """All connections, with their senders; those whose turn it is may send."""
    senders: list[amqp.Sender] = []
    for _ in range(job.connections):
        connection = await stack.enter_async_context(
            amqp.open_connection(job.url, cafile=job.cafile, limits=LIMITS)
        )
        for _ in range(job.links):
            opening = connection.open_sender(job.address, guarantee=job.guarantee)
            senders.append(await stack.enter_async_context(opening))
    for sender in senders:
        await sender.wait_sendable()
    return senders, connection


async def _transact(
    job: SimpleNamespace, sender: amqp.Sender, connection: amqp.Connection, make: Any
) -> None:
    for first in range(0, job.count, job.batch):
        async with connection.open_transaction() as transaction:
            for number in range(first, min(first + job.batch, job.count)):
                await sender.transmit(make(number), transaction=transaction)


async def receive(job: SimpleNamespace) -> dict[str, float]:
    """Listen, or dial, and receive."""
    read = reader(job.message)
    if job.url is None:
        return await _listen(job, partial(_receive_all, job, read))
    async with amqp.open_connection(job.url, cafile=job.cafile) as connection:
        if job.hold:
            go()
        async with connection.open_receiver(
            job.address, credit=job.credit, guarantee=job.guarantee
        ) as receiver:
            if not job.hold:
                tell(ready=True)
            if job.batch:
                return await _receive_transacted(job, read, receiver, connection)
            return await _receive(job, read, receiver)


async def _receive(job: SimpleNamespace, read: Any, receiver: amqp.Receiver) -> dict[str, float]:
    seen, span = 0, None
    async for delivery in receiver:
        span = span or Span()
        read(delivery.message)
        if not delivery.settled:
            delivery.accept()
        seen += 1
        if seen == job.count:
            return span.end(seen)
    raise AssertionError("the link ended")


async def _receive_transacted(
    job: SimpleNamespace, read: Any, receiver: amqp.Receiver, connection: amqp.Connection
) -> dict[str, float]:
    first = await receiver.receive()
    span, pending = Span(), [first]
    for begun in range(0, job.count, job.batch):
        async with connection.open_transaction() as transaction:
            for _ in range(min(job.batch, job.count - begun)):
                delivery = pending.pop() if pending else await receiver.receive()
                read(delivery.message)
                delivery.accept(transaction=transaction)
    return span.end(job.count)


class Together:
    """What several links of a connection receive, from the first message of all to the last."""

    def __init__(self, count: int, read: Any) -> None:
        self._count, self._read = count, read
        self._seen, self._span = 0, Span()
        self._done = trio.Event()

    async def receive(self, receiver: amqp.Receiver) -> None:
        """Receive on one link, until cancelled."""
        async for delivery in receiver:
            if not self._seen:
                self._span = Span()
            self._read(delivery.message)
            delivery.accept()
            self._seen += 1
            if self._seen == self._count:
                self._done.set()

    async def result(self) -> dict[str, float]:
        await self._done.wait()
        return self._span.end(self._count)


async def _receive_all(job: SimpleNamespace, read: Any, connection: amqp.Connection) -> dict[str, float]:
    """On one link as ``_receive``; on several by a task for each."""
    links = connection.incoming_links()
    if job.links == 1:
        link = await anext(links)
        assert isinstance(link, amqp.IncomingReceiver)
        async with link.accept(credit=job.credit) as receiver:
            result = await _receive(job, read, receiver)
            tell(result=result)
            await connection.wait_closed()
            return result
    together = Together(job.count, read)

    async def receive_one(link: amqp.IncomingReceiver, *, task_status: Any) -> None:
        async with link.accept(credit=job.credit) as receiver:
            task_status.started()
            await together.receive(receiver)

    async with trio.open_nursery() as nursery:
        for _ in range(job.links):
            link = await anext(links)
            assert isinstance(link, amqp.IncomingReceiver)
            await nursery.start(receive_one, link)
        result = await together.result()
        tell(result=result)
        await connection.wait_closed()
        nursery.cancel_scope.cancel()
    return result


async def subscribe(job: SimpleNamespace) -> dict[str, float]:
    """Dial, and receive on all links, ``count`` messages together."""
    together = Together(job.count, reader(job.message))
    async with amqp.open_connection(job.url) as connection, AsyncExitStack() as stack:
        opening = [connection.open_receiver(job.address, credit=job.credit) for _ in range(job.links)]
        receivers = [await stack.enter_async_context(each) for each in opening]
        async with trio.open_nursery() as nursery:
            for receiver in receivers:
                nursery.start_soon(together.receive, receiver)
            go()
            result = await together.result()
            tell(result=result)  # before all links are closed, which a server's time would count
            nursery.cancel_scope.cancel()
    return {}


async def _listen(job: SimpleNamespace, handle_one: Any) -> dict[str, float]:
    """Serve one connection, and tell what came of it."""

    async def handle(connection: amqp.Connection) -> None:
        await handle_one(connection)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        context = None if job.certfile is None else amqp.tls.server_context(job.certfile)
        url = "amqp://127.0.0.1:0" if context is None else "amqps://127.0.0.1:0"
        listen = partial(amqp.serve, handle, url, ssl_context=context, limits=LIMITS)
        listeners: list[amqp.Listener] = await nursery.start(listen)
        tell(url=listeners[0].url)
    return {}


async def ping(job: SimpleNamespace) -> dict[str, float]:
    """Send one at a time, and note how long each took, in microseconds."""
    make = maker(job.message, job.size, durable=job.durable)
    async with AsyncExitStack() as stack:
        (sender,), _ = await _attach(job, stack)
        go()
        for number in range(job.count // 10):
            await sender.send(make(number))
        times: list[float] = []
        for number in range(job.count // 10, job.count):
            began = time.perf_counter()
            await sender.send(make(number))
            times.append(time.perf_counter() - began)
    return quantiles(times)


def quantiles(times: list[float]) -> dict[str, float]:
    """The median and the 99th of 100, in microseconds."""
    times.sort()
    return {"p50 us": times[len(times) // 2] * 1e6, "p99 us": times[len(times) * 99 // 100] * 1e6}


async def stream(job: SimpleNamespace) -> dict[str, float]:
    """Send bodies in pieces; the first, small one, is not measured."""
    block = bytes(BLOCK)
    async with amqp.open_connection(job.url) as connection, connection.open_sender(job.address) as sender:
        await sender.send(block)
        go()
        before, span = _peak(), Span()
        for _ in range(job.count):
            async with sender.stream(job.size) as body:
                for left in range(job.size, 0, -BLOCK):
                    await body.send_all(block[:left])
        await sender.flush()
        return span.end(job.count) | {"grown": _peak() - before}


async def drink(job: SimpleNamespace) -> dict[str, float]:
    """Read such bodies."""

    async def handle(connection: amqp.Connection) -> None:
        link = await anext(connection.incoming_links())
        assert isinstance(link, amqp.IncomingReceiver)
        async with link.accept(streaming=True) as receiver:
            (await receiver.receive()).accept()
            before = _peak()
            span = None
            for _ in range(job.count):
                delivery = await receiver.receive()
                span = span or Span()
                size = 0
                async for chunk in delivery.chunks():
                    size += len(chunk)
                assert size == job.size
                delivery.accept()
            assert span is not None
            tell(result=span.end(job.count) | {"grown": _peak() - before})
            await connection.wait_closed()

    return await _listen(job, handle)


def _peak() -> int:
    """Octets: the most that was ever resident of this program, without what the process was before."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


ROLES = {each.__name__: each for each in (send, receive, subscribe, ping, stream, drink)}


def main() -> None:
    job = read_job()
    raise_file_limit()
    result = trio.run(ROLES[job.role], job)
    if result:  # and it is not told yet
        tell(result=result)


if __name__ == "__main__":
    main()
