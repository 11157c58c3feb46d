"""What a connection, a link and a stranger cost: ceilings well above what is measured, to catch what grows."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.performatives import frame, header

from .helpers import acceptor, idle, listening, never

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

KIB = 1024


@contextmanager
def measured() -> Generator[Callable[[], int]]:
    """Octets that Python holds more than at the beginning."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]

        def grown() -> int:
            gc.collect()
            return tracemalloc.get_traced_memory()[0] - before

        yield grown
    finally:
        tracemalloc.stop()


@pytest.mark.whole
async def test_idle_connection_of_a_socket_costs_less_than_18_kib_at_each_end() -> None:
    count = 20
    opened = 0

    async def count_one(connection: amqp.Connection) -> None:
        nonlocal opened
        opened += 1
        await idle(connection)

    async with listening(count_one) as [listener], trio.open_nursery() as nursery:

        async def dial() -> None:
            async with amqp.open_connection(listener.url):
                await trio.sleep_forever()

        async def pairs(wanted: int) -> None:
            before = opened
            for _ in range(wanted):
                nursery.start_soon(dial)
            while opened < before + wanted:
                await trio.lowlevel.checkpoint()
            await trio.sleep(1.5)  # After a second without a message the tasks of a connection end.

        await pairs(2)
        with measured() as grown:
            await pairs(count)
            each = grown() / count / 2
        nursery.cancel_scope.cancel()
    assert each < 18 * KIB


@pytest.mark.whole
async def test_idle_connection_with_tasks_costs_less_than_25_kib_at_each_end(
    autojump_clock: MockClock,
) -> None:
    """In memory, as over TLS and WebSockets: these have no poller."""
    count = 20
    async with trio.open_nursery() as nursery:
        connections: list[amqp.Connection] = []

        async def dial(stream: trio.abc.Stream) -> None:
            async with amqp.open_connection(stream) as connection:
                connections.append(connection)
                await trio.sleep_forever()

        async def pairs(wanted: int) -> None:
            for _ in range(wanted):
                ours, theirs = memory_stream_pair()
                nursery.start_soon(acceptor().run, ours, idle)
                nursery.start_soon(dial, theirs)
            await wait_all_tasks_blocked()

        await pairs(2)
        with measured() as grown:
            await pairs(count)
            each = grown() / count / 2
        assert len(connections) == count + 2
        nursery.cancel_scope.cancel()
    assert each < 25 * KIB


@pytest.mark.whole
async def test_link_costs_less_than_2_5_kib_at_each_end() -> None:
    count = 200
    ours, theirs = memory_stream_pair()
    kept: list[Any] = []

    async def keep(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            kept.append(await link.accept().__aenter__())  # noqa: PERF401 - one at a time, as they come

    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor().run, theirs, keep)
        async with amqp.open_connection(ours) as conn:

            async def links(wanted: int) -> None:
                for _ in range(wanted):
                    kept.append(await conn.open_sender("q").__aenter__())  # noqa: PERF401 - as above

            await links(10)
            with measured() as grown:
                await links(count)
                await wait_all_tasks_blocked()
                each = grown() / count / 2
    assert each < 2.5 * KIB


async def test_row_18_stranger_holds_no_more_than_64_kib(autojump_clock: MockClock) -> None:
    asked = 0

    async def verify(user: str, password: str) -> bool:
        nonlocal asked
        asked += 1
        await trio.sleep_forever()
        return True

    init = frame("sasl-init", mechanism="PLAIN", initial_response=b"\0a\0b")
    openings = [
        b"",
        header()[:7],
        header("sasl"),
        header("sasl") + (8000).to_bytes(4, "big") + b"\x02\x01\0\0" + bytes(7900),
        header("sasl") + init + bytes(15_000),
    ]
    for octets in openings:
        count = 10
        async with trio.open_nursery() as nursery:

            async def strangers(wanted: int, octets: bytes = octets, nursery: Any = nursery) -> None:
                for _ in range(wanted):
                    ours, theirs = lockstep_stream_pair()
                    service = acceptor(sasl=amqp.sasl.Server(verify=verify))
                    nursery.start_soon(service.run, ours, never)
                    nursery.start_soon(shout, theirs, octets)
                await wait_all_tasks_blocked()

            await strangers(1)
            with measured() as grown:
                await strangers(count)
                each = grown() / count
            nursery.cancel_scope.cancel()
        assert each < 64 * KIB, octets[:20]
    assert asked


async def shout(stream: trio.abc.Stream, octets: bytes) -> None:
    async with trio.open_nursery() as nursery:

        async def listen() -> None:
            while await stream.receive_some(100):
                pass

        nursery.start_soon(listen)
        with suppress(trio.BrokenResourceError):
            await stream.send_all(octets)


async def test_row_18_reads_are_small_until_the_peer_has_opened() -> None:
    sizes: list[int | None] = []
    ours, theirs = memory_stream_pair()
    receive_some = theirs.receive_stream.receive_some

    async def counting(max_bytes: int | None = None) -> bytearray:
        sizes.append(max_bytes)
        return await receive_some(max_bytes)

    theirs.receive_stream.receive_some = counting  # type: ignore[method-assign]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor().run, theirs, idle)
        async with amqp.open_connection(ours, sasl=amqp.sasl.Anonymous()) as conn:
            await conn.open_session().__aenter__()
    assert sizes[0] == 16 * KIB
    assert sizes[-1] == 256 * KIB
