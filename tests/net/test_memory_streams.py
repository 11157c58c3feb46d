"""Streams in memory: what is written, read and bounded, and how both ends close."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import check_half_closeable_stream, wait_all_tasks_blocked

from trio_amqp10.net import memory_streams
from trio_amqp10.net.memory_streams import MemoryStream, memory_stream_pair


async def test_pair_is_streams_as_trio_has_them() -> None:
    async def pair() -> tuple[MemoryStream, MemoryStream]:
        return memory_stream_pair()

    async def clogged() -> tuple[MemoryStream, MemoryStream]:
        one, two = memory_stream_pair()
        for end in (one, two):
            await end.send_all(bytes(memory_streams._LIMIT))
        return one, two

    await check_half_closeable_stream(pair, clogged)


async def test_read_returns_the_octets_of_one_write_without_a_copy() -> None:
    one, two = memory_stream_pair()
    written = b"first"
    await one.send_all(written)
    await one.send_all(b"second")
    assert await two.receive_some() is written
    assert await two.receive_some(3) == b"sec"
    assert await two.receive_some(100) == b"ond"


async def test_writer_waits_while_too_much_is_unread() -> None:
    one, two = memory_stream_pair()
    await one.send_all(bytes(memory_streams._LIMIT))
    written: list[bytes] = []

    async def write() -> None:
        await one.send_all(b"more")
        written.append(b"more")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await wait_all_tasks_blocked()
        assert written == []
        await two.receive_some(1)
    assert written == [b"more"]


async def test_write_that_is_cancelled_has_written_nothing() -> None:
    one, two = memory_stream_pair()
    await one.send_all(bytes(memory_streams._LIMIT))
    with trio.move_on_after(0) as scope:
        await one.send_all(b"lost")
    assert scope.cancelled_caught
    await one.send_eof()
    assert len(await two.receive_some()) == memory_streams._LIMIT
    assert await two.receive_some() == b""


@pytest.mark.parametrize(("most", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
async def test_number_of_octets_that_is_none_is_refused(most: Any, error: type[Exception]) -> None:
    one, _ = memory_stream_pair()
    with pytest.raises(error):
        await one.receive_some(most)


async def test_close_drops_what_was_not_read() -> None:
    one, two = memory_stream_pair()
    await one.send_all(b"unread")
    two.close()
    with pytest.raises(trio.BrokenResourceError):
        await one.send_all(b"more")
    with pytest.raises(trio.ClosedResourceError):
        await two.receive_some()
