"""Busy connections take turns: their slices in each pass of the scheduler.

A clock that only work moves counts them.
"""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from trio_amqp10.net import read_turns as turns_module
from trio_amqp10.net.pump import READ_SIZE, Pump
from trio_amqp10.net.read_turns import ReadTurns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

SLICE = 0.0005


class Work:
    """A clock that work moves, and the number of slices of each connection."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.done: Counter[str] = Counter()

    def clock(self) -> float:
        return self.seconds

    def do(self, name: str, seconds: float) -> None:
        self.seconds += seconds
        self.done[name] += 1


class Slices:
    """An engine that needs a slice of work for each octet, and echoes it."""

    def __init__(self, work: Work, name: str, seconds: float) -> None:
        self.work, self.name, self.seconds = work, name, seconds
        self.left = b""
        self.out = b""
        self.over = False
        self.on_slice: Callable[[], object] = lambda: None

    def receive_slice(self, data: bytes, now: float) -> None:
        self.left += data
        self.out += self.left[:1]
        self.left = self.left[1:]
        self.work.do(self.name, self.seconds)
        self.on_slice()

    def has_input(self) -> bool:
        return bool(self.left)

    def receive_eof(self, now: float) -> None:
        self.over = True

    def transport_lost(self) -> None:
        self.over, self.out = True, b""

    def next_event(self) -> None:
        return None

    def has_output(self) -> bool:
        return bool(self.out) or self.over

    def data_to_send(self) -> bytes | None:
        out, self.out = self.out, b""
        return None if self.over and not out else out

    def next_deadline(self) -> float | None:
        return None

    def handle_timer(self, now: float) -> None:
        raise AssertionError("it has no deadline")

    def take_touched(self) -> list[Any]:
        return []


class Room:
    """Pumps with such engines, which share one ``ReadTurns``."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.work = Work()
        self.turns = ReadTurns(self.work.clock)
        turns_module._OF_THIS_RUN.set(self.turns)  # pyright: ignore[reportPrivateUsage]
        self.pumps: list[Pump] = []

    def connect(
        self, name: str, seconds: float = SLICE, *, opened: bool = True
    ) -> tuple[trio.abc.Stream, Slices]:
        ours, theirs = memory_stream_pair()
        engine = Slices(self.work, name, seconds)
        pump = Pump(engine, theirs, lambda _: None, lambda: None)
        if opened:
            pump.read_size = READ_SIZE
        self.pumps.append(pump)
        pump.start(self.nursery)
        return ours, engine

    async def passes(self, until: Callable[[], bool]) -> list[Counter[str]]:
        """Return the slices of each connection in each pass."""
        steps: list[Counter[str]] = []
        before = Counter(self.work.done)
        while not until():
            await trio.lowlevel.checkpoint()
            steps.append(self.work.done - before)
            before = Counter(self.work.done)
            assert len(steps) < 100_000
        return steps


@asynccontextmanager
async def opened_room() -> AsyncGenerator[Room, None]:
    async with trio.open_nursery() as nursery:
        room = Room(nursery)
        try:
            yield room
        finally:
            for pump in room.pumps:
                pump.cancel()
            nursery.cancel_scope.cancel()


async def test_busy_connections_have_one_slice_in_a_pass_whatever_their_number() -> None:
    async with opened_room() as room:
        streams = [room.connect(str(number))[0] for number in range(20)]
        await wait_all_tasks_blocked()
        for stream in streams:
            await stream.send_all(b"x" * 50)
        await room.passes(lambda: len(room.work.done) == 20)  # the first slice of each does not wait
        steps = await room.passes(lambda: room.work.done.total() == 20 * 50)
    assert len(steps) > 100
    assert (
        max(step.total() for step in steps) <= 2
    )  # two passes of the pumps may lie between two of the task that counts


async def test_busy_connections_have_as_much_of_the_work_whatever_a_slice_takes() -> None:
    async with opened_room() as room:
        long, _ = room.connect("long", 2 * SLICE)
        short, _ = room.connect("short", SLICE / 2)
        await wait_all_tasks_blocked()
        await long.send_all(b"x" * 1_000)
        await short.send_all(b"x" * 1_000)
        await room.passes(lambda: room.work.done["short"] >= 400)
        done = Counter(room.work.done)
    assert done["short"] / done["long"] == pytest.approx(4, rel=0.05)


async def test_connection_with_little_to_read_is_answered_at_once_beside_busy_ones() -> None:
    async with opened_room() as room:
        streams = [room.connect(str(number))[0] for number in range(50)]
        good, _ = room.connect("good", SLICE / 20)
        await wait_all_tasks_blocked()
        for stream in streams:
            await stream.send_all(b"x" * 200)
        between: list[int] = []
        for _each in range(20):
            before = room.work.done.total()
            await good.send_all(b"!")
            assert await good.receive_some() == b"!"
            between.append(room.work.done.total() - before)
            await room.passes(lambda: room.work.done.total() % 50 == 0)
    assert max(between[1:]) <= 10  # slices of 50 busy connections; each of them had one in each pass


async def test_handshakes_have_one_read_in_a_pass_whatever_their_number() -> None:
    async with opened_room() as room:
        streams = [room.connect(str(number), SLICE / 50, opened=False)[0] for number in range(100)]
        await wait_all_tasks_blocked()
        for stream in streams:
            room.nursery.start_soon(stream.send_all, b"x")  # all of them in the same pass
        steps = await room.passes(lambda: room.work.done.total() == 100)
    assert max(step.total() for step in steps) <= 2
    assert len(steps) <= 105


async def test_connection_that_is_open_is_answered_at_once_beside_handshakes() -> None:
    async with opened_room() as room:
        streams = [room.connect(str(number), opened=False)[0] for number in range(100)]
        good, _ = room.connect("good", SLICE / 20)
        await wait_all_tasks_blocked()
        for stream in streams:
            room.nursery.start_soon(stream.send_all, b"x")
        await good.send_all(b"!")
        assert await good.receive_some() == b"!"
        assert room.work.done.total() <= 10


async def test_handshakes_do_not_wait_for_busy_connections_that_had_more() -> None:
    async with opened_room() as room:
        streams = [room.connect(str(number))[0] for number in range(50)]
        stranger, _ = room.connect("stranger", SLICE / 20, opened=False)
        await wait_all_tasks_blocked()
        for stream in streams:
            await stream.send_all(b"x" * 200)
        await room.passes(lambda: room.work.done.total() >= 150)
        before = room.work.done.total()
        await stranger.send_all(b"!")
        assert await stranger.receive_some() == b"!"
        assert room.work.done.total() - before <= 10


async def test_connection_that_is_alone_has_a_slice_in_every_pass() -> None:
    async with opened_room() as room:
        alone, _ = room.connect("alone")
        await wait_all_tasks_blocked()
        await alone.send_all(b"x" * 100)
        steps = await room.passes(lambda: room.work.done.total() == 100)
    assert len(steps) <= 105


async def test_answers_are_written_within_20_ms_while_others_have_turns(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with opened_room() as room:
        ours, engine = room.connect("busy")
        engine.on_slice = lambda: autojump_clock.jump(0.009)
        await wait_all_tasks_blocked()
        await ours.send_all(b"x" * 12)
        assert len(await ours.receive_some()) <= 6
