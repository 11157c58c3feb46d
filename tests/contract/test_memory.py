"""What a peer makes us hold stays within its bounds, whatever it sends and however little it reads.

A scripted peer in each protocol reads the handshake, and nothing after it. It sends one method over and over, or a message
that never becomes whole, until nothing more of it is read. The stream between passes on what is read, and holds nothing.
"""

from __future__ import annotations

import tracemalloc
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice, repeat
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair

from tests.container.served import accepted
from trio_amqp10 import Message
from trio_amqp10.container import Container
from trio_amqp10.core.partial_pool import Pool
from trio_amqp10.sasl import Server

from .memory_scripts import PART, QUEUE
from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from trio_amqp10.net.dialect import Dialect

    from .memory_scripts import MemoryScript

pytestmark = pytest.mark.whole

MIB = 1024 * 1024
FLOOD = 32 * 1024
"""Octets of small methods that each peer sends, if they are read; of those that carry a body many times more."""

BLOCK = 1024
"""Octets of small methods in one write."""

OF_A_PEER = 2 * MIB
"""Octets of memory that a peer may cost that reads nothing: its connection, what it reads at once, and what waits to be written."""

POOL = 2 * MIB

WRITES = 1024
"""Writes of all peers together that never make a message whole: some large frames each, or fifty small ones, which take as long to read."""


@pytest.fixture
def mock_clock() -> MockClock:
    return MockClock(autojump_threshold=0)


class Memory:
    """Octets of memory that were taken since the measurement began.

    Attributes:
        most: at the moment when they were most.
    """

    def __init__(self) -> None:
        self._before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()

    @property
    def most(self) -> int:
        return tracemalloc.get_traced_memory()[1] - self._before


@asynccontextmanager
async def measured() -> AsyncGenerator[Memory]:
    tracemalloc.start()
    try:
        yield Memory()
    finally:
        tracemalloc.stop()


async def _send(stream: trio.abc.Stream, octets: Iterable[bytes], most: int) -> None:
    """Send as much as is read; not for longer than the other end bears a peer that reads nothing."""
    sent = 0
    try:
        with trio.move_on_after(20):
            for each in octets:
                await stream.send_all(each)
                sent += len(each)
                if sent >= most:
                    return
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        """It was sent away."""


async def _flooded(
    script: MemoryScript, dialect: Dialect, floods: Iterable[tuple[Iterable[bytes], int]], pool: Pool | None
) -> None:
    """Have one peer for each of these send it, so many octets at most, all at the same time."""
    streams: list[trio.abc.Stream] = []
    async with trio.open_nursery() as nursery:

        async def flood(octets: Iterable[bytes], most: int) -> None:
            ours, theirs = lockstep_stream_pair()
            nursery.start_soon(dialect.serve, replace(accepted(ours, Server()), pool=pool))
            streams.append(theirs)
            await script.open(theirs)
            await _send(theirs, octets, most)

        async with trio.open_nursery() as peers:
            for octets, most in floods:
                peers.start_soon(flood, octets, most)
        for stream in streams:
            await trio.aclose_forcefully(stream)
        nursery.cancel_scope.cancel()


async def _serves(container: Container) -> None:
    """A peer beside them is served: it sends a message and gets it back."""
    with trio.fail_after(5):
        async with (
            container.connect() as connection,
            connection.open_sender("good") as sender,
            connection.open_receiver("good") as receiver,
        ):
            await sender.send("hello")
            assert (await receiver.receive()).message.body == "hello"


def _container() -> Container:
    container = Container("c")
    for name in (QUEUE, "empty", "good"):
        container.add_queue(name)
    return container


async def _fill(container: Container) -> None:
    async with container.connect() as connection, connection.open_sender(QUEUE) as sender:
        await sender.send(Message(16 * PART))


METHODS = [
    (name, method) for name, protocol in PROTOCOLS.items() for method in sorted(protocol.memory.repeated)
]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_method_of_the_protocol_has_an_entry(name: str) -> None:
    script = PROTOCOLS[name].memory
    assert script.repeated.keys() == script.names
    assert all(script.repeated.values())


def _flood(octets: bytes, share: int = 1) -> tuple[Iterable[bytes], int]:
    """One method over and over, several in a write, and so many octets of it; ``share`` peers send them together."""
    most = FLOOD if len(octets) < len(PART) else 256 * FLOOD
    return repeat(octets * max(1, BLOCK // len(octets))), most // share


@pytest.mark.parametrize(("name", "method"), METHODS)
async def test_method_makes_us_write_no_more_than_its_bound(
    name: str, method: str, mock_clock: MockClock
) -> None:
    _ = mock_clock
    script, container = PROTOCOLS[name].memory, _container()
    await _fill(container)
    dialect = script.dialect(container)
    async with measured() as memory, trio.open_nursery() as nursery:
        nursery.start_soon(_serves, container)
        await _flooded(script, dialect, [_flood(script.repeated[method])], None)
        most = memory.most
    assert most < 2 * OF_A_PEER, f"{most / MIB:.1f} MiB"


@pytest.mark.parametrize("name", PROTOCOLS)
async def test_all_methods_at_the_same_time_make_us_write_no_more_than_their_bounds(
    name: str, mock_clock: MockClock
) -> None:
    _ = mock_clock
    script, container = PROTOCOLS[name].memory, _container()
    await _fill(container)
    dialect = script.dialect(container)
    floods = [_flood(octets, share=8) for octets in script.repeated.values()]
    async with measured() as memory, trio.open_nursery() as nursery:
        nursery.start_soon(_serves, container)
        await _flooded(script, dialect, floods, None)
        most = memory.most
    assert most < len(floods) * OF_A_PEER, f"{most / MIB:.1f} MiB"


KINDS = [(name, kind) for name, protocol in PROTOCOLS.items() for kind in protocol.memory.partial]


@pytest.mark.parametrize("peers", [1, 20])
@pytest.mark.parametrize(("name", "kind"), KINDS)
async def test_messages_that_never_become_whole_share_one_pool(
    name: str, kind: str, peers: int, mock_clock: MockClock
) -> None:
    _ = mock_clock
    script, container = PROTOCOLS[name].memory, _container()
    pool = Pool(POOL)
    dialect = script.dialect(container)
    floods = [(islice(script.partial[kind](), WRITES // peers), 16 * MIB // peers) for _ in range(peers)]
    async with measured() as memory, trio.open_nursery() as nursery:
        nursery.start_soon(_serves, container)
        await _flooded(script, dialect, floods, pool)
        most = memory.most
    assert most < 2 * POOL + (2 + peers // 4) * OF_A_PEER // 2, f"{most / MIB:.1f} MiB"
