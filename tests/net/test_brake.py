"""An engine that wants no data: the pump reads nothing, and all else continues."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.net.pump import Pump

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

PATIENCE = 10.0


class Words:
    """A dialect of words without credit; it keeps at most two unread words.

    It answers a word of the peer that begins with ``?``. After ten seconds without a word it sends ``hello?``, but not while it
    wants no data; and at ``beat_at`` in any case.
    """

    def __init__(self) -> None:
        self._in = b""
        self._out = b""
        self._over = False
        self._deadline: float | None = None
        self.words: list[bytes] = []
        self.beat_at: float | None = None
        self.broken = False
        self.brake_by_output = False

    def wants_data(self) -> bool:
        if self.broken:
            raise ZeroDivisionError("wants_data")
        if self.brake_by_output:
            return not self._out
        wants = len(self.words) < 2
        if not wants:
            self._deadline = None
        return wants

    def receive_slice(self, data: bytes, now: float) -> None:
        self._in += data
        self._deadline = now + PATIENCE
        while b" " in self._in and len(self.words) < 2:
            word, _, self._in = self._in.partition(b" ")
            if word == b"boo":
                self._out += b"fie "
                self._over = True
                raise RemoteProtocolError("boo is no word")
            if word.startswith(b"?"):
                self._out += b"yes "
            self.words.append(word)

    def has_input(self) -> bool:
        return b" " in self._in and len(self.words) < 2 and not self._over

    def say(self, octets: bytes) -> None:
        self._out += octets

    def end(self) -> None:
        self.say(b"enough ")
        raise RemoteProtocolError("the peer talks too much")

    def receive_eof(self, now: float) -> None:
        self._over = True

    def transport_lost(self) -> None:
        self._out, self._over = b"", True

    def next_event(self) -> None:
        return None

    def has_output(self) -> bool:
        return bool(self._out) or self._over

    def data_to_send(self) -> bytes | None:
        out, self._out = self._out, b""
        return None if self._over and not out else out

    def next_deadline(self) -> float | None:
        return self.beat_at if self._deadline is None else self._deadline

    def handle_timer(self, now: float) -> None:
        self._deadline = self.beat_at = None
        self.say(b"hello? ")

    def take_touched(self) -> list[trio.Event]:
        return []


class Counted(trio.abc.Stream):
    """A stream that counts the reads."""

    def __init__(self, inner: trio.abc.Stream) -> None:
        self._inner = inner
        self.reads = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        self.reads += 1
        return await self._inner.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._inner.aclose()


class Owner:
    """A pump on one end of a pair of streams; ``theirs`` is the other end."""

    def __init__(self, *, lockstep: bool = False, write_stall: float | None = 30.0) -> None:
        ours, self.theirs = lockstep_stream_pair() if lockstep else memory_stream_pair()
        self.stream = Counted(ours)
        self.engine = Words()
        self.pump = Pump(self.engine, self.stream, lambda _: None, lambda: None, write_stall)

    @asynccontextmanager
    async def held_back(self) -> AsyncGenerator[None]:
        """Run the pump; it has read ``a`` and ``b``, and ``c d`` are in the stream."""
        async with trio.open_nursery() as nursery:
            self.pump.start(nursery)
            try:
                await self.theirs.send_all(b"a b ")
                await wait_all_tasks_blocked()
                assert self.engine.words == [b"a", b"b"]
                assert self.stream.reads == 1
                await self.theirs.send_all(b"c d ")
                yield
            finally:
                self.pump.cancel()

    @asynccontextmanager
    async def held_back_in_a_write(self) -> AsyncGenerator[None]:
        """Run the pump; it has read ``a`` and ``b``, and is blocked writing ``word``."""
        async with trio.open_nursery() as nursery:
            self.pump.start(nursery)
            try:
                await self.theirs.send_all(b"a b ")
                self.engine.say(b"word")
                self.pump.wake_writer()
                await wait_all_tasks_blocked()
                yield
            finally:
                self.pump.cancel()

    def take(self) -> list[bytes]:
        words, self.engine.words = self.engine.words, []
        self.pump.wake_writer()
        return words


async def test_pump_reads_nothing_while_the_engine_wants_no_data(autojump_clock: MockClock) -> None:
    owner = Owner()
    async with owner.held_back():
        await trio.sleep(100)
        assert owner.stream.reads == 1
        assert owner.engine.words == [b"a", b"b"]


async def test_pump_reads_on_when_the_bell_rings_and_the_engine_wants_data(autojump_clock: MockClock) -> None:
    owner = Owner()
    async with owner.held_back():
        owner.pump.wake_writer()
        await trio.sleep(5)
        assert owner.stream.reads == 1
        assert owner.take() == [b"a", b"b"]
        await wait_all_tasks_blocked()
        assert owner.take() == [b"c", b"d"]
        await wait_all_tasks_blocked()
        assert owner.stream.reads == 3


async def test_pump_has_the_engine_read_first_what_it_left_unread(autojump_clock: MockClock) -> None:
    owner = Owner()
    async with owner.held_back():
        owner.take()
        await wait_all_tasks_blocked()
        await owner.theirs.send_all(b"e f g h ")
        owner.take()
        await wait_all_tasks_blocked()
        reads = owner.stream.reads
        assert owner.take() == [b"e", b"f"]
        await wait_all_tasks_blocked()
        assert owner.take() == [b"g", b"h"]
        assert owner.stream.reads == reads


async def test_pump_writes_while_it_is_held_back(autojump_clock: MockClock) -> None:
    owner = Owner()
    async with owner.held_back():
        await trio.sleep(5)  # the writer rests by now
        for word in (b"one ", b"two "):
            owner.engine.say(word)
            owner.pump.wake_writer()
            assert await owner.theirs.receive_some(100) == word
        assert owner.stream.reads == 1


async def test_pump_reads_on_when_its_writes_make_room(autojump_clock: MockClock) -> None:
    owner = Owner(lockstep=True)
    owner.engine.brake_by_output = True
    async with trio.open_nursery() as nursery:
        owner.pump.start(nursery)
        owner.engine.say(b"x")
        owner.pump.wake_writer()
        await wait_all_tasks_blocked()
        owner.engine.say(b"y")  # while x is written
        owner.pump.wake_writer()
        await owner.theirs.send_all(b"a ")  # the reader waited for this before
        nursery.start_soon(owner.theirs.send_all, b"b ")
        await wait_all_tasks_blocked()
        assert owner.engine.words == [b"a"]
        assert await owner.theirs.receive_some(1) == b"x"
        await wait_all_tasks_blocked()  # y is being written, and nothing waits behind it
        assert owner.engine.words == [b"a", b"b"]
        owner.pump.cancel()


async def test_pump_reads_on_while_a_write_is_under_way(autojump_clock: MockClock) -> None:
    owner = Owner(lockstep=True)
    async with owner.held_back_in_a_write():
        assert owner.take() == [b"a", b"b"]
        await owner.theirs.send_all(b"c ")
        await wait_all_tasks_blocked()
        assert owner.engine.words == [b"c"]


async def test_engine_that_wants_no_data_does_not_judge_the_peer_silent(autojump_clock: MockClock) -> None:
    owner = Owner()
    async with owner.held_back():
        with trio.move_on_after(3 * PATIENCE):
            raise AssertionError(await owner.theirs.receive_some(100))
        owner.take()
        await wait_all_tasks_blocked()
        owner.take()
        await owner.theirs.send_all(b"e ")
        began = trio.current_time()
        assert await owner.theirs.receive_some(100) == b"hello? "
        assert trio.current_time() - began == pytest.approx(PATIENCE)


async def test_pump_handles_the_timer_while_it_is_held_back(autojump_clock: MockClock) -> None:
    owner = Owner()
    async with owner.held_back():
        owner.engine.beat_at = due = trio.current_time() + 7
        owner.pump.wake_writer()
        assert await owner.theirs.receive_some(100) == b"hello? "
        assert trio.current_time() == pytest.approx(due)
        assert owner.stream.reads == 1


async def test_pump_gives_up_a_peer_that_does_not_read_while_held_back(autojump_clock: MockClock) -> None:
    owner = Owner(lockstep=True, write_stall=3.0)
    async with owner.held_back_in_a_write():
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, TimeoutError)


async def test_pump_that_is_held_back_ends_when_it_is_cancelled(autojump_clock: MockClock) -> None:
    owner = Owner()
    async with owner.held_back():
        began = trio.current_time()
        owner.pump.cancel()
        await owner.pump.finished.wait()
        assert trio.current_time() == began
    assert owner.stream.reads == 1
    assert await owner.theirs.receive_some(100) == b""


async def test_pump_that_is_held_back_ends_when_the_engine_has_said_all(autojump_clock: MockClock) -> None:
    owner = Owner()
    async with owner.held_back():
        owner.engine.say(b"bye ")
        owner.engine.receive_eof(0)
        owner.pump.wake_writer()
        await owner.pump.finished.wait()
    assert await owner.theirs.receive_some(100) == b"bye "
    assert owner.pump.failure is None


async def test_pump_that_is_held_back_reads_all_after_a_failure(autojump_clock: MockClock) -> None:
    owner = Owner()
    async with owner.held_back():
        owner.pump.feed(owner.engine.end)
        owner.engine.receive_eof(0)
        await wait_all_tasks_blocked()
        assert owner.stream.reads >= 3
        owner.pump.wake_writer()
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, RemoteProtocolError)


@pytest.mark.logs_errors
async def test_pump_ends_when_the_engine_fails_at_what_it_wants(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    owner = Owner()
    async with owner.held_back():
        owner.engine.broken = True
        owner.pump.wake_writer()
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, ZeroDivisionError)
    assert any(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)
