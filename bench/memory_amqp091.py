"""Octets that a container has for each connection, channel and consumer of AMQP 0-9-1.

``python -m bench.memory_amqp091`` prints what 1,000 more of each cost, counted by ``tracemalloc``: the Python objects of the server,
without the buffers of the kernel. The clients are plain sockets that say octets made before, and do not count. Goals: 15 KiB for a connection with one
channel, 1.5 KiB for a channel, 1 KiB for a consumer.
"""

from __future__ import annotations

import gc
import socket
import sys
import tracemalloc
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
import trio.lowlevel

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.frames import METHOD, PROTOCOL_HEADER, frame
from trio_amqp10.container import Container
from trio_amqp10.net.dialect import AcceptedConnection
from trio_amqp10.net.login_failures import HostLoginFailures, LoginFailures
from trio_amqp10.net.transport_layers import Transport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.amqp091.wire.methods import Method

GOALS = {"connection": 15 * 1024, "channel": 1536, "consumer": 1024}
"""Octets that each may cost."""

MORE = 1_000
WARM = 100


def said(method: Method, channel: int = 0) -> bytes:
    """A method as a frame."""
    return frame(METHOD, channel, method.plan.write(method, USUAL))


class Client:
    """The other end: it says what it is told, and counts octets until the server is quiet."""

    def __init__(self, dialect: Amqp091, nursery: trio.Nursery, sockets: list[socket.socket]) -> None:
        ours, theirs = socket.socketpair()
        sockets.append(theirs)
        theirs.setblocking(False)
        self._socket = theirs
        nursery.start_soon(dialect.serve, _accepted(trio.SocketStream(trio.socket.from_stdlib_socket(ours))))

    async def say(self, octets: bytes, last: bytes) -> None:
        """Say this, and read until the answer that ends so."""
        sent = 0
        read = b""
        while sent < len(octets) or not read.endswith(last):
            try:
                sent += self._socket.send(octets[sent : sent + 65536]) if sent < len(octets) else 0
                read = (read + self._socket.recv(65536))[-256:]
            except BlockingIOError:
                await trio.lowlevel.checkpoint()

    async def open(self) -> None:
        """The handshake, and channel 1."""
        await self.say(PROTOCOL_HEADER, b"\xce")
        await self.say(said(spec.ConnectionStartOk(response=b"\0guest\0guest")), said(TUNE))
        tune = spec.ConnectionTuneOk(channel_max=65535, frame_max=131_072, heartbeat=60)
        await self.say(said(tune) + said(spec.ConnectionOpen()), said(spec.ConnectionOpenOk()))
        await self.say(said(spec.ChannelOpen(), 1), said(spec.ChannelOpenOk(), 1))


TUNE = spec.ConnectionTune(channel_max=65535, frame_max=131_072, heartbeat=60)


def _accepted(stream: trio.abc.Stream) -> AcceptedConnection:
    return AcceptedConnection(
        stream=stream,
        transport=Transport(stream=stream),
        name="bench",
        host=None,
        private=True,
        began=trio.current_time(),
        opened=lambda: None,
        failures=HostLoginFailures(LoginFailures(None, trio.current_time), None),
    )


async def _connections(
    dialect: Amqp091, nursery: trio.Nursery, sockets: list[socket.socket]
) -> Callable[[int], Awaitable[Any]]:
    await trio.lowlevel.checkpoint()

    async def more(count: int) -> None:
        for _ in range(count):
            await Client(dialect, nursery, sockets).open()

    return more


async def _channels(
    dialect: Amqp091, nursery: trio.Nursery, sockets: list[socket.socket]
) -> Callable[[int], Awaitable[Any]]:
    client = Client(dialect, nursery, sockets)
    await client.open()
    last = 1

    async def more(count: int) -> None:
        nonlocal last
        octets = b"".join(said(spec.ChannelOpen(), last + n) for n in range(1, count + 1))
        last += count
        await client.say(octets, said(spec.ChannelOpenOk(), last))

    return more


async def _consumers(
    dialect: Amqp091, nursery: trio.Nursery, sockets: list[socket.socket]
) -> Callable[[int], Awaitable[Any]]:
    client = Client(dialect, nursery, sockets)
    await client.open()
    await client.say(said(spec.QueueDeclare(queue="q"), 1), b"\xce")
    last = 0

    async def more(count: int) -> None:
        nonlocal last
        methods = [spec.BasicConsume(queue="q", consumer_tag=f"c{last + n}") for n in range(1, count + 1)]
        last += count
        answer = said(spec.BasicConsumeOk(consumer_tag=f"c{last}"), 1)
        await client.say(b"".join(said(method, 1) for method in methods), answer)

    return more


KINDS = {"connection": _connections, "channel": _channels, "consumer": _consumers}


async def _measure(kind: str, lines: int, count: int) -> tuple[float, list[str]]:
    dialect = Amqp091(Container(), limits=Limits(channel_max=65535))
    sockets: list[socket.socket] = []
    async with trio.open_nursery() as nursery:
        more = await KINDS[kind](dialect, nursery, sockets)
        await more(WARM)
        gc.collect()
        tracemalloc.start()
        await more(count)
        gc.collect()
        taken = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, __file__)])
        tracemalloc.stop()
        for each in sockets:
            each.close()  # then the servers end
    places = taken.statistics("lineno")
    octets = sum(place.size for place in places) / count
    return octets, [f"{place.size // count:7} {place.traceback}" for place in places[:lines]]


def measure(kind: str, lines: int = 0, more: int = MORE) -> tuple[float, list[str]]:
    """Octets of one more, and where the most of them were allocated."""
    return trio.run(partial(_measure, kind, lines, more))


def main() -> None:
    """Print what each costs, and what it may."""
    lines = 25 if "--list" in sys.argv else 0
    for kind, goal in GOALS.items():
        each, places = measure(kind, lines)
        sys.stdout.write(f"{kind:12}{each:8.0f} octets, goal {goal}\n")
        sys.stdout.writelines(f"    {place}\n" for place in places)


if __name__ == "__main__":
    main()
