"""A tapped stream reports all octets that pass, and changes none."""

from __future__ import annotations

import pytest
import trio

from trio_amqp10.amqp10.peer.tapped_stream import TappedStream, tapped
from trio_amqp10.net.memory_streams import memory_stream_pair


async def test_octets_are_reported_before_they_are_written_and_after_they_were_read() -> None:
    here, there = memory_stream_pair()
    written: list[bytes] = []
    read: list[bytes] = []
    stream = tapped(here, written.append, read.append)
    await stream.wait_send_all_might_not_block()
    await stream.send_all(bytearray(b"out"))
    assert await there.receive_some() == b"out"
    await there.send_all(b"inward")
    assert await stream.receive_some(2) == b"in"
    await there.send_eof()
    assert await stream.receive_some() == b"ward"
    assert await stream.receive_some() == b""
    assert written == [b"out"]
    assert read == [b"in", b"ward", b""]


async def test_octets_that_could_not_be_written_were_reported_too() -> None:
    here, there = memory_stream_pair()
    there.close()
    written: list[bytes] = []
    with pytest.raises(trio.BrokenResourceError):
        await tapped(here, written.append, written.append).send_all(b"lost")
    assert written == [b"lost"]


async def test_half_closeable_stream_stays_one_and_others_do_not_become_one() -> None:
    here, there = memory_stream_pair()
    stream = tapped(here, print, print)
    assert isinstance(stream, trio.abc.HalfCloseableStream)
    await stream.send_eof()
    assert await there.receive_some() == b""

    plain = tapped(TappedStream(here, print, print), print, print)
    assert type(plain) is TappedStream
    assert not isinstance(plain, trio.abc.HalfCloseableStream)


async def test_stream_below_is_closed() -> None:
    here, there = memory_stream_pair()
    await tapped(here, print, print).aclose()
    assert await there.receive_some() == b""
    with pytest.raises(trio.ClosedResourceError):
        await here.receive_some()
