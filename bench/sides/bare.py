"""A trio stream with nothing on it, to hold the library against: ``python -m bench.sides.bare JOB``.

``ping`` sends the octets of a message and reads as many as an outcome has; ``pong`` answers. ``source`` sends octets, in pieces of
64 KiB, and ``sink`` reads them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import trio

from .lines import Span, go, read_job, tell
from .ours import BLOCK, quantiles

if TYPE_CHECKING:
    from types import SimpleNamespace

OUTCOME = 30
"""Octets of a disposition, about."""
READ = 256 * 1024
"""Octets that are read at once, as the library does."""


async def _dial(job: SimpleNamespace) -> trio.SocketStream:
    host, _, port = job.url.rpartition("//")[2].partition(":")
    return await trio.open_tcp_stream(host, int(port))


async def _accept() -> trio.SocketStream:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    tell(url=f"tcp://127.0.0.1:{listener.socket.getsockname()[1]}")
    async with listener:
        return await listener.accept()


async def ping(job: SimpleNamespace) -> dict[str, float]:
    octets = bytes(job.size)
    async with await _dial(job) as stream:
        go()
        times: list[float] = []
        for _ in range(job.count):
            began = time.perf_counter()
            await stream.send_all(octets)
            await _read(stream, OUTCOME)
            times.append(time.perf_counter() - began)
    return quantiles(times)


async def pong(job: SimpleNamespace) -> dict[str, float]:
    answer = bytes(OUTCOME)
    async with await _accept() as stream:
        while await _read(stream, job.size):
            await stream.send_all(answer)
    return {}


async def source(job: SimpleNamespace) -> dict[str, float]:
    block = bytes(BLOCK)
    async with await _dial(job) as stream:
        go()
        span = Span()
        for _ in range(job.count):
            for left in range(job.size, 0, -BLOCK):
                await stream.send_all(block[:left])
        await stream.send_eof()
        await stream.receive_some()
        return span.end(job.count)


async def sink(job: SimpleNamespace) -> dict[str, float]:
    async with await _accept() as stream:
        await _read(stream, 1)
        span, got = Span(), 1
        while got < job.count * job.size:
            got += len(await stream.receive_some(READ))
        return span.end(job.count)


async def _read(stream: trio.SocketStream, count: int) -> int:
    """Read so many octets, or none where they end."""
    got = 0
    while got < count:
        data = await stream.receive_some(count - got)
        if not data:
            return 0
        got += len(data)
    return got


ROLES = {each.__name__: each for each in (ping, pong, source, sink)}


def main() -> None:
    job = read_job()
    result = trio.run(ROLES[job.role], job)
    tell(result=result)


if __name__ == "__main__":
    main()
