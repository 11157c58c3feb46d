"""The memory stream pair: trio's own conformance checks, and what is particular to it."""

from __future__ import annotations

import pytest
import trio
from trio.testing import check_half_closeable_stream, wait_all_tasks_blocked

from trio_amqp10.testing import MemoryStream, memory_stream_pair


async def test_memory_stream_pair_keeps_the_rules_of_a_half_closeable_stream() -> None:
    async def make() -> tuple[MemoryStream, MemoryStream]:
        return memory_stream_pair()

    async def make_clogged() -> tuple[MemoryStream, MemoryStream]:
        left, right = memory_stream_pair()
        await left.send_all(bytes(256 * 1024))
        await right.send_all(bytes(256 * 1024))
        return left, right

    await check_half_closeable_stream(make, make_clogged)


async def test_memory_stream_hands_over_the_very_octets_of_a_write() -> None:
    left, right = memory_stream_pair()
    data = bytes(1000)
    await left.send_all(data)
    assert await right.receive_some() is data


async def test_memory_stream_splits_a_write_where_the_reader_has_less_room() -> None:
    left, right = memory_stream_pair()
    await left.send_all(b"abcdef")
    assert await right.receive_some(4) == b"abcd"
    assert await right.receive_some(4) == b"ef"


async def test_memory_stream_makes_a_writer_wait_while_too_much_is_unread() -> None:
    left, right = memory_stream_pair()
    written = 0

    async def write() -> None:
        nonlocal written
        for _ in range(100):
            await left.send_all(bytes(64 * 1024))
            written += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await wait_all_tasks_blocked()
        assert written == 4
        await right.receive_some()
        await wait_all_tasks_blocked()
        assert written == 5
        nursery.cancel_scope.cancel()


async def test_memory_stream_loses_nothing_when_a_read_is_cancelled() -> None:
    left, right = memory_stream_pair()
    with trio.CancelScope() as scope:
        scope.cancel()
        await left.send_all(b"never")
    await left.send_all(b"once")
    with trio.CancelScope() as scope:
        scope.cancel()
        await right.receive_some()
    assert await right.receive_some() == b"once"
    with pytest.raises(ValueError, match="at least 1"):
        await right.receive_some(0)
