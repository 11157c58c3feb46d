"""The pump, driven by an engine of a toy dialect."""

from __future__ import annotations

import logging
import select
import socket
import struct
from collections import deque
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.net.poller import _current_poller
from trio_amqp10.net.pump import READ_SIZE, Pump
from trio_amqp10.net.scheduled_call import ScheduledCall
from trio_amqp10.net.waiters import Waiter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

PATIENCE = 10.0
KINDS = ["memory", "socket", "polled socket"]

Pair = tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]


def socket_pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    one, two = (trio.SocketStream(trio.socket.from_stdlib_socket(raw)) for raw in socket.socketpair())
    return one, two


@pytest.fixture(params=KINDS)
async def pair(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Pair]:
    """Two streams that are connected; the pump reads a polled socket without a task."""
    if request.param == "memory":
        yield memory_stream_pair()
        return
    if request.param == "socket":
        monkeypatch.delattr(select, "epoll", raising=False)
    elif not hasattr(select, "epoll"):
        pytest.skip("only Linux has epoll")
    pair = socket_pair()
    yield pair
    for stream in pair:
        await trio.aclose_forcefully(stream)


class Lines:
    """A dialect of lines, echoed in capitals; ``bye`` ends it, ``boo`` is a fault.

    A peer that is silent for PATIENCE seconds gets an error. A line ``!NAME`` makes the engine fail in its method NAME.
    """

    def __init__(self) -> None:
        self._in = b""
        self._out = b""
        self._over = False
        self._broken = ""
        self._deadline: float | None = None
        self._events: deque[str] = deque()
        self.touched: list[Any] = []
        self.calls: list[str] = []

    def has_input(self) -> bool:
        return False

    def receive_slice(self, data: bytes, now: float) -> None:
        self._deadline = now + PATIENCE
        *lines, self._in = (self._in + data).split(b"\n")
        for line in lines:
            if line == b"boo":
                self.say(b"FIE\n")
                self._over = True
                raise RemoteProtocolError("boo is no word")
            if line.startswith(b"!"):
                self._broken = line[1:].decode()
                self.maybe_break("receive_slice")
            self._events.append(line.decode())
            self.say(line.upper() + b"\n")
            self._over = self._over or line == b"bye"

    def say(self, octets: bytes) -> None:
        self._out += octets

    def maybe_break(self, call: str) -> None:
        if self._broken == call:
            raise ZeroDivisionError(call)

    def receive_eof(self, now: float) -> None:
        self.calls.append("receive_eof")
        self.maybe_break("receive_eof")
        self._over = True

    def transport_lost(self) -> None:
        self.calls.append("transport_lost")
        self._out, self._over = b"", True
        self.maybe_break("transport_lost")

    def next_event(self) -> str | None:
        self.maybe_break("next_event")
        return self._events.popleft() if self._events else None

    def has_output(self) -> bool:
        return bool(self._out) or self._over

    def data_to_send(self) -> bytes | None:
        self.maybe_break("data_to_send")
        out, self._out = self._out, b""
        return None if self._over and not out else out

    def next_deadline(self) -> float | None:
        self.maybe_break("next_deadline")
        return None if self._over else self._deadline

    def handle_timer(self, now: float) -> None:
        self.maybe_break("handle_timer")
        self._deadline = None
        self.say(b"HELLO?\n")

    def take_touched(self) -> list[Any]:
        self.maybe_break("take_touched")
        touched, self.touched = self.touched, []
        return touched


class Owner:
    """The owner of a pump, which stores events and counts calls of ``on_over``."""

    def __init__(self, stream: trio.abc.Stream, *, write_stall: float | None = 30.0) -> None:
        self.engine = Lines()
        self.events: list[str] = []
        self.overs = 0
        self.pump = Pump(self.engine, stream, self.events.append, self.on_over, write_stall)
        if isinstance(stream, trio.SocketStream):
            self.pump.read_size = READ_SIZE

    def on_over(self) -> None:
        self.overs += 1

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[trio.Nursery]:
        """Run the pump until the block or the pump ends."""
        async with trio.open_nursery() as nursery:
            self.pump.start(nursery)
            try:
                yield nursery
            finally:
                self.pump.cancel()


class Eager:
    """An object that says more when it is woken."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def wake(self) -> None:
        self._owner.engine.say(b"more")
        self._owner.pump.wake_writer()


async def read(stream: trio.abc.Stream) -> bytes:
    return bytes(await stream.receive_some(1000))


async def test_pump_moves_octets_and_tells_events(pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running():
        await theirs.send_all(b"one\ntwo\nthr")
        assert await read(theirs) == b"ONE\nTWO\n"
        await theirs.send_all(b"ee\nbye\n")
        assert await read(theirs) == b"THREE\nBYE\n"
        assert await read(theirs) == b""
        await owner.pump.finished.wait()
    assert owner.events == ["one", "two", "three", "bye"]
    assert owner.pump.finished.is_set()
    assert owner.pump.failure is None
    assert owner.overs == 1


async def test_pump_writes_once_what_was_said_in_one_pass(pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running():
        await wait_all_tasks_blocked()
        for _ in range(100):
            owner.engine.say(b"x")
            owner.pump.wake_writer()
        assert await read(theirs) == b"x" * 100


async def test_pump_wakes_what_was_touched(pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    waiter = Waiter()
    woken: list[None] = []

    async def wait() -> None:
        await waiter.wait()
        woken.append(None)

    async with owner.running() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert not woken
        owner.engine.touched.append(waiter)
        await theirs.send_all(b"x")
        await wait_all_tasks_blocked()
        assert woken


async def test_pump_handles_the_timer_at_the_deadline(pair: Pair, autojump_clock: MockClock) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running():
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        began = trio.current_time()
        assert await read(theirs) == b"HELLO?\n"
        assert trio.current_time() - began == pytest.approx(PATIENCE)


async def test_pump_is_one_task_when_nothing_was_said_for_a_second(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    owner = Owner(ours)
    async with owner.running() as nursery:
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 2
        for _ in range(3):
            await trio.sleep(0.9)
            owner.pump.wake_writer()
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 2
        await trio.sleep(1.1)
        assert len(nursery.child_tasks) == 1
        await owner.pump.flushed()
        owner.engine.say(b"word")
        owner.pump.wake_writer()
        assert await read(theirs) == b"word"
        await trio.sleep(1.1)
        assert len(nursery.child_tasks) == 1
        await theirs.send_all(b"y\n")
        assert await read(theirs) == b"Y\n"


async def test_pump_that_rests_ends_when_it_is_cancelled(pair: Pair, autojump_clock: MockClock) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running() as nursery:
        await trio.sleep(2)
        assert len(nursery.child_tasks) <= 1
        owner.pump.cancel()
        await owner.pump.finished.wait()
    assert await read(theirs) == b""
    assert owner.overs == 1


@pytest.mark.parametrize("end", ["eof", "lost"])
async def test_pump_that_rests_ends_with_its_stream(end: str, autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    owner = Owner(ours)
    async with owner.running():
        await trio.sleep(2)
        if end == "eof":
            await theirs.send_eof()
        else:
            await ours.aclose()
        await owner.pump.finished.wait()
    assert owner.engine.calls[0] == {"eof": "receive_eof", "lost": "transport_lost"}[end]


async def test_pump_that_rests_handles_the_timer_and_rests_again(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    owner = Owner(ours)
    async with owner.running() as nursery:
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        await trio.sleep(PATIENCE - 0.1)
        assert len(nursery.child_tasks) == 1
        await trio.sleep(0.1)
        assert await read(theirs) == b"HELLO?\n"
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1


async def test_pump_that_rests_is_woken_by_a_read_only_if_there_is_something_to_do(
    autojump_clock: MockClock,
) -> None:
    ours, theirs = memory_stream_pair()
    owner = Owner(ours)
    async with owner.running() as nursery:
        await trio.sleep(2)
        began = trio.current_time()
        await theirs.send_all(b"nothing that is answered yet, but")  # now there is a deadline
        await trio.sleep(PATIENCE - 1)
        await theirs.send_all(b" it moves on")
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        assert await read(theirs) == b"HELLO?\n"
        assert trio.current_time() - began == pytest.approx(2 * PATIENCE - 1)


async def test_pump_flushes_what_is_to_be_said() -> None:
    ours, theirs = lockstep_stream_pair()
    owner = Owner(ours)
    async with owner.running() as nursery:
        await wait_all_tasks_blocked()
        await owner.pump.flushed()
        owner.engine.say(b"word")
        owner.pump.wake_writer()
        flushed = trio.Event()

        async def flush() -> None:
            await owner.pump.flushed()
            flushed.set()

        nursery.start_soon(flush)
        await wait_all_tasks_blocked()
        assert not flushed.is_set()
        assert await read(theirs) == b"word"
        await flushed.wait()
        owner.pump.cancel()
        await owner.pump.finished.wait()
        await owner.pump.flushed()


async def test_pump_has_the_peer_read_the_last_words_after_a_fault(
    pair: Pair, autojump_clock: MockClock
) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running():
        await theirs.send_all(b"boo\nand more\n")
        await wait_all_tasks_blocked()
        assert isinstance(owner.pump.failure, RemoteProtocolError)
        assert not owner.pump.finished.is_set()
        await theirs.send_all(b"much more\n")
        assert await read(theirs) == b"FIE\n"
        assert await read(theirs) == b""
        await theirs.send_all(b"more still\n")  # it shut its own direction only
        began = trio.current_time()
        await owner.pump.finished.wait()
        assert trio.current_time() - began <= 1.0


async def test_pump_says_eof_to_the_engine(pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running():
        await theirs.send_all(b"x\n")
        await theirs.send_eof()
        assert await read(theirs) == b"X\n"
        assert await read(theirs) == b""
        await owner.pump.finished.wait()
    assert owner.engine.calls[0] == "receive_eof"
    assert owner.pump.failure is None


async def test_pump_gives_up_a_peer_that_does_not_read(autojump_clock: MockClock) -> None:
    ours, _theirs = lockstep_stream_pair()
    owner = Owner(ours, write_stall=30.0)
    began = trio.current_time()
    async with owner.running():
        owner.engine.say(b"word")
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, TimeoutError)
    assert "read nothing for 30 s" in str(owner.pump.failure)
    assert 30 <= trio.current_time() - began <= 31.1


async def test_pump_gives_each_write_all_of_its_time(autojump_clock: MockClock) -> None:
    """The call is scheduled earlier, for the writer's sleep or for the write before."""
    ours, theirs = lockstep_stream_pair()
    owner = Owner(ours, write_stall=30.0)
    async with owner.running():
        await trio.sleep(0.5)
        for _ in range(3):
            owner.engine.say(b"word")
            owner.pump.wake_writer()
            await trio.sleep(20)
            assert await read(theirs) == b"word"
        owner.engine.say(b"word")
        owner.pump.wake_writer()
        began = trio.current_time()
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, TimeoutError)
    assert 30 <= trio.current_time() - began <= 31.1


async def test_pump_schedules_no_call_for_each_write_and_leaves_none_behind(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[ScheduledCall] = []

    class Counted(ScheduledCall):
        def __init__(self, deadline: float, call: Callable[[], object]) -> None:
            super().__init__(deadline, call)
            calls.append(self)

    monkeypatch.setattr("trio_amqp10.net.pump.ScheduledCall", Counted)
    ours, theirs = memory_stream_pair()
    owner = Owner(ours)
    async with owner.running():
        for _ in range(100):
            await theirs.send_all(b"x\n")
            assert await read(theirs) == b"X\n"
    assert [each.call for each in calls] == [None]


async def test_pump_waits_for_any_time_when_it_is_told_to(autojump_clock: MockClock) -> None:
    ours, theirs = lockstep_stream_pair()
    owner = Owner(ours, write_stall=None)
    async with owner.running():
        owner.engine.say(b"word")
        await trio.sleep(50)
        assert await read(theirs) == b"word"


class Failing(trio.abc.HalfCloseableStream):
    """A stream that raises the given exceptions in the given methods."""

    def __init__(self, **raising: BaseException) -> None:
        self._inner, self.theirs = memory_stream_pair()
        self._raising = raising

    def _maybe(self, call: str) -> None:
        if call in self._raising:
            raise self._raising[call]

    async def send_all(self, data: Any) -> None:
        self._maybe("send_all")
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        self._maybe("receive_some")
        return await self._inner.receive_some(max_bytes)

    async def send_eof(self) -> None:
        self._maybe("send_eof")
        await self._inner.send_eof()

    async def aclose(self) -> None:
        self._maybe("aclose")
        await self._inner.aclose()


FAILURES = [
    trio.BrokenResourceError("gone"),
    trio.ClosedResourceError("closed"),
    OSError(5, "Input/output error"),
    ValueError("a stream of somebody's own"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
@pytest.mark.parametrize("call", ["send_all", "receive_some"])
async def test_pump_ends_when_the_stream_fails(
    call: str, failure: Exception, autojump_clock: MockClock
) -> None:
    owner = Owner(Failing(**{call: failure}))
    async with owner.running():
        owner.engine.say(b"word")
        await owner.pump.finished.wait()
    assert owner.pump.failure is failure
    assert "transport_lost" in owner.engine.calls
    assert owner.overs == 2
    await owner.pump.flushed()


async def test_pump_ends_when_the_stream_fails_on_its_way_out(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    stream = Failing(send_eof=OSError(107, "not connected"), aclose=OSError(9, "bad descriptor"))
    owner = Owner(stream)
    async with owner.running():
        await stream.theirs.send_all(b"boo\n")
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, RemoteProtocolError)
    assert owner.pump.finished.is_set()
    assert "could not be closed" in caplog.text


@pytest.mark.parametrize(
    "call",
    [
        "receive_slice",
        "receive_eof",
        "next_event",
        "data_to_send",
        "next_deadline",
        "handle_timer",
        "take_touched",
        "transport_lost",
    ],
)
@pytest.mark.logs_errors
async def test_pump_ends_and_tells_the_log_when_the_engine_has_a_bug(
    pair: Pair, call: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running():
        await theirs.send_all(f"!{call}\n".encode())
        await trio.sleep(2 * PATIENCE)
        await theirs.send_eof()
        await owner.pump.finished.wait()
    if call != "transport_lost":
        assert isinstance(owner.pump.failure, ZeroDivisionError)
    assert any(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)
    with pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError)):
        await ours.send_all(b"x")


@pytest.mark.logs_errors
async def test_pump_takes_an_order_that_nobody_gave_for_a_bug(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    ours, _theirs = pair
    owner = Owner(ours)

    def ask_too_much() -> None:
        raise LocalProtocolError("this does not fit")

    async with owner.running():
        owner.pump.feed(ask_too_much)
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, LocalProtocolError)
    assert "this does not fit" in caplog.text


@pytest.mark.parametrize("event", ["told", "woken"])
@pytest.mark.logs_errors
async def test_pump_ends_when_its_owner_has_a_bug(
    pair: Pair, event: str, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = pair
    owner = Owner(ours)

    class Clumsy:
        def wake(self) -> None:
            raise KeyError("woken")

    async with owner.running():
        await wait_all_tasks_blocked()

        def raising(_: object) -> None:
            raise KeyError("told")

        if event == "told":
            owner.pump._on_event = raising
        else:
            owner.engine.touched.append(Clumsy())
        await theirs.send_all(b"x\n")
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, KeyError)


async def test_pump_is_not_cancelled_with_who_started_it(pair: Pair, autojump_clock: MockClock) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running() as nursery:
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await theirs.send_all(b"x\n")
            assert await read(theirs) == b"X\n"


async def test_pump_stops_a_write_in_the_middle_when_it_is_cancelled() -> None:
    ours, _theirs = lockstep_stream_pair()
    owner = Owner(ours)
    async with owner.running():
        owner.engine.say(b"word")
        await wait_all_tasks_blocked()
        owner.pump.cancel()
    assert owner.pump.finished.is_set()
    assert owner.pump.failure is None


async def test_pump_reads_little_until_the_peer_is_trusted_with_more() -> None:
    sizes: list[int | None] = []

    class Counting(Failing):
        async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
            sizes.append(max_bytes)
            return await super().receive_some(max_bytes)

    stream = Counting()
    owner = Owner(stream)
    async with owner.running():
        await stream.theirs.send_all(b"x\n")
        await wait_all_tasks_blocked()
        owner.pump.read_size = 256 * 1024
        await stream.theirs.send_all(b"x\n")
        await wait_all_tasks_blocked()
        await stream.theirs.send_all(b"bye\n")
    assert sizes[0] == 16 * 1024
    assert sizes[-1] == 256 * 1024


class Sluggish(Failing):
    """A stream whose reader takes two seconds to notice that it is cancelled."""

    closed = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        try:
            return await super().receive_some(max_bytes)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
            raise

    async def aclose(self) -> None:
        self.closed = True
        await super().aclose()


async def test_pump_closes_its_stream_when_its_reader_does_not_end_in_time(autojump_clock: MockClock) -> None:
    stream = Sluggish()
    owner = Owner(stream)
    async with owner.running():
        await wait_all_tasks_blocked()
        owner.engine.receive_eof(0)
        owner.pump.wake_writer()
        await owner.pump.finished.wait()
        assert stream.closed


@pytest.fixture
async def sockets() -> AsyncGenerator[Pair]:
    """Two sockets that are connected by TCP; the pump reads one without a task."""
    if not hasattr(select, "epoll"):
        pytest.skip("only Linux has epoll")
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        ours = await trio.open_tcp_stream(*listener.socket.getsockname())
        theirs = await listener.accept()
    async with ours, theirs:
        yield ours, theirs


async def test_pump_needs_no_task_for_an_idle_socket(sockets: Pair, autojump_clock: MockClock) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    async with owner.running() as nursery:
        for _ in range(3):
            await theirs.send_all(b"x\n")
            assert await read(theirs) == b"X\n"
            await wait_all_tasks_blocked()
            assert len(nursery.child_tasks) == 0
        owner.engine.say(b"word")
        owner.pump.wake_writer()
        assert not owner.pump.finished.is_set()
        await owner.pump.flushed()
        assert await read(theirs) == b"word"
        assert len(nursery.child_tasks) == 0
        assert await read(theirs) == b"HELLO?\n"
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 0


async def test_pump_reads_with_a_task_until_the_peer_is_trusted(sockets: Pair) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    owner.pump.read_size = 16 * 1024
    async with owner.running() as nursery:
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        owner.pump.read_size = READ_SIZE
        await theirs.send_all(b"y\n")
        assert await read(theirs) == b"Y\n"
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 0


async def test_pump_asks_once_for_octets_that_the_engine_reports_while_it_returns_them(pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    asked: list[bytes] = []

    def data_to_send() -> bytes | None:
        owner.pump.wake_writer()
        asked.append(b"word" if not asked else b"")
        return asked[-1]

    async with owner.running():
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        await wait_all_tasks_blocked()
        owner.engine.data_to_send = data_to_send  # type: ignore[method-assign]
        owner.pump.wake_writer()
        assert await read(theirs) == b"word"
        await wait_all_tasks_blocked()
        assert len(asked) == 1


async def test_pump_waits_for_an_engine_that_may_have_output_and_has_none(pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running():
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        owner.engine.has_output = lambda: True  # type: ignore[method-assign]
        owner.pump.wake_writer()
        with trio.fail_after(5):
            await wait_all_tasks_blocked()
        owner.engine.say(b"word")
        owner.pump.wake_writer()
        assert await read(theirs) == b"word"


async def test_pump_writes_what_the_objects_say_that_a_write_wakes(pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)

    async with owner.running():
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        for said in (b"word", b""):
            await wait_all_tasks_blocked()
            owner.engine.say(said)
            owner.engine.touched.append(Eager(owner))
            owner.pump.wake_writer()
            await wait_all_tasks_blocked()
            assert await read(theirs) == said + b"more"


async def test_pump_writes_what_the_objects_say_that_its_timer_wakes(
    pair: Pair, autojump_clock: MockClock
) -> None:
    ours, theirs = pair
    owner = Owner(ours)

    async with owner.running():
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        await trio.sleep(PATIENCE - 1)
        owner.engine.touched.append(Eager(owner))
        with trio.fail_after(2):
            assert (await read(theirs))[:4] == b"more"


async def test_pump_that_is_cancelled_by_an_event_reads_no_more(pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running():
        owner.pump._on_event = lambda _: owner.pump.cancel()
        await theirs.send_all(b"x\n")
        await owner.pump.finished.wait()
        assert not _current_poller()._watched
    assert owner.pump.failure is None


@pytest.mark.parametrize("size", [10, 64 * 1024, 1_000_000])
async def test_pump_moves_as_many_octets_as_there_are(size: int, pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    got = bytearray()
    async with owner.running() as nursery:
        await theirs.send_all(b"x\n")  # the pump rests after this
        assert await read(theirs) == b"X\n"
        await wait_all_tasks_blocked()
        nursery.start_soon(theirs.send_all, b"y" * size + b"\nbye\n")
        await wait_all_tasks_blocked()
        while data := await theirs.receive_some(100_000):
            got += data
    assert got == b"Y" * size + b"\nBYE\n"


async def test_pump_gives_up_a_socket_whose_peer_does_not_read(
    sockets: Pair, autojump_clock: MockClock
) -> None:
    ours, theirs = sockets
    owner = Owner(ours, write_stall=30.0)
    began = trio.current_time()
    async with owner.running() as nursery:
        await theirs.send_all(b"x\n")
        await wait_all_tasks_blocked()
        owner.engine.say(bytes(10_000_000))
        owner.pump.wake_writer()
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, TimeoutError)
    assert 30 <= trio.current_time() - began <= 31.1


async def test_pump_reports_that_its_socket_was_reset(sockets: Pair) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    async with owner.running():
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        await wait_all_tasks_blocked()
        assert isinstance(theirs, trio.SocketStream)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await theirs.aclose()
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, trio.BrokenResourceError)
    assert "reset by peer" in str(owner.pump.failure)
    assert "transport_lost" in owner.engine.calls


async def test_pump_notices_at_its_next_write_that_its_socket_was_closed(sockets: Pair) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    async with owner.running():
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        await wait_all_tasks_blocked()
        await ours.aclose()
        owner.engine.say(b"word")
        owner.pump.wake_writer()
        await owner.pump.finished.wait()
    assert isinstance(owner.pump.failure, trio.ClosedResourceError)


async def test_pump_that_pauses_reads_together_what_comes_one_by_one(
    pair: Pair, autojump_clock: MockClock
) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    owner.pump.read_pause = 1.0
    async with owner.running():
        for lines in (b"x\n", b"y\n" * 9):
            for line in lines.splitlines(keepends=True):
                await theirs.send_all(line)
                await trio.sleep(0.1)
            assert await read(theirs) == lines.upper()
        assert owner.pump._totals.reads == 2


async def test_pump_that_pauses_reads_large_data_at_once(pair: Pair, autojump_clock: MockClock) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    owner.pump.read_pause = 1.0
    began, got = trio.current_time(), bytearray()
    async with owner.running() as nursery:
        nursery.start_soon(theirs.send_all, b"y" * 1_000_000 + b"\nbye\n")
        while data := await theirs.receive_some(100_000):
            got += data
    assert got == b"Y" * 1_000_000 + b"\nBYE\n"
    assert trio.current_time() - began <= 2


async def test_pump_that_pauses_needs_no_poller(sockets: Pair, autojump_clock: MockClock) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    async with owner.running():
        await theirs.send_all(b"x\n")
        assert await read(theirs) == b"X\n"
        await wait_all_tasks_blocked()
        assert _current_poller()._watched
        owner.pump.read_pause = 1.0
        await theirs.send_all(b"y\n")
        assert await read(theirs) == b"Y\n"
        await wait_all_tasks_blocked()
        assert not _current_poller()._watched


@pytest.mark.parametrize("pause", [0.0, 1.0])
@pytest.mark.parametrize("end", ["cancel", "close", "eof", "bye", "boo"])
@pytest.mark.parametrize("passes", range(12))
async def test_pump_can_end_in_any_pass(
    end: str, passes: int, pause: float, pair: Pair, autojump_clock: MockClock
) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    owner.pump.read_pause = pause
    async with owner.running():
        await theirs.send_all(b"one\ntwo\n")
        for _ in range(passes):
            await trio.lowlevel.checkpoint()
            owner.engine.say(b"word\n")
            owner.pump.wake_writer()
        if end == "cancel":
            owner.pump.cancel()
        elif end == "close":
            owner.engine.receive_eof(0)
            owner.pump.wake_writer()
        elif end == "eof":
            await theirs.send_eof()
        else:
            await theirs.send_all(f"{end}\n".encode())
        await owner.pump.finished.wait()
    assert not _current_poller()._watched
    with pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError)):
        await ours.send_all(b"x")


@pytest.mark.parametrize("passes", range(8))
async def test_pump_that_ends_while_octets_come_reads_no_more(passes: int, sockets: Pair) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    async with owner.running():
        await wait_all_tasks_blocked()
        owner.engine.receive_eof(0)
        owner.pump.wake_writer()
        for _ in range(passes):
            await trio.lowlevel.checkpoint()
        with suppress(trio.BrokenResourceError):
            await theirs.send_all(b"x\n")
        await owner.pump.finished.wait()
        assert not _current_poller()._watched


def say(owner: Owner, octets: bytes) -> str:
    """Say something, as an engine that reports its output does."""
    owner.engine.say(octets)
    owner.pump.wake_writer()
    return "said"


async def test_octets_of_a_call_are_written_before_its_task_waits(sockets: Pair) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    async with owner.running():
        await wait_all_tasks_blocked()
        assert owner.pump.write_at_once(say, owner, b"one") == "said"
        assert owner.pump._totals.octets_out == 3
        await owner.pump.flushed()
        assert await read(theirs) == b"one"


async def test_call_is_written_as_usual_by_any_stream(pair: Pair) -> None:
    ours, theirs = pair
    owner = Owner(ours)
    async with owner.running():
        assert owner.pump.write_at_once(say, owner, b"first") == "said"  # the pump has not begun to write
        assert await read(theirs) == b"first"
        for word in (b"x\n", b"y\n"):
            await theirs.send_all(word)
            assert await read(theirs) == word.upper()
            assert owner.pump.write_at_once(say, owner, word) == "said"
            assert await read(theirs) == word
        assert owner.pump.write_at_once(owner.engine.has_output) is False
        await owner.pump.flushed()


async def test_hundred_calls_of_one_pass_are_two_writes(sockets: Pair) -> None:
    ours, theirs = sockets
    owner = Owner(ours)

    async def ask() -> None:
        owner.pump.write_at_once(say, owner, b"x")

    async with owner.running():
        await wait_all_tasks_blocked()
        for writes in (2, 3):  # after the first time all of them go together
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            assert owner.pump._totals.writes == writes
            assert await read(theirs) == b"x" * 100
            await theirs.send_all(b"no line")
            await wait_all_tasks_blocked()


async def test_single_calls_are_written_at_once_again_some_reads_after_many() -> None:
    ours, theirs = socket_pair()
    if not hasattr(select, "epoll"):
        pytest.skip("only Linux has epoll")
    owner = Owner(ours)
    async with ours, theirs, owner.running():
        await wait_all_tasks_blocked()
        at_once: list[bool] = []
        for number in range(20):
            before = owner.pump._totals.octets_out
            owner.pump.write_at_once(say, owner, b"x")
            at_once.append(owner.pump._totals.octets_out > before)
            if number == 0:
                owner.pump.write_at_once(say, owner, b"y")
            await wait_all_tasks_blocked()
            await theirs.send_all(b"no line")
            await wait_all_tasks_blocked()
    assert at_once == [True] + [False] * 16 + [True] * 3


async def test_call_goes_along_with_what_is_written_soon(sockets: Pair) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    async with owner.running():
        await wait_all_tasks_blocked()
        say(owner, b"one")
        owner.pump.write_at_once(say, owner, b"two")
        assert owner.pump._totals.writes == 0
        await wait_all_tasks_blocked()
        assert owner.pump._totals.writes == 1
        assert await read(theirs) == b"onetwo"


async def test_nothing_is_written_before_the_outermost_call_has_ended(sockets: Pair) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    written: list[int] = []

    def fail() -> None:
        owner.pump.write_at_once(say, owner, b"one")
        written.append(owner.pump._totals.writes)
        say(owner, b"two")
        written.append(owner.pump._totals.writes)
        raise KeyError

    async with owner.running():
        await wait_all_tasks_blocked()
        with pytest.raises(KeyError):
            owner.pump.write_at_once(fail)
        assert written == [0, 0]
        assert owner.pump._totals.writes == 1
        assert await read(theirs) == b"onetwo"


async def test_call_between_two_slices_of_a_read_is_written_after_the_last(
    sockets: Pair, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    slices = 0

    def receive_slice(data: bytes, now: float) -> None:
        nonlocal slices
        slices += 1

    monkeypatch.setattr(owner.engine, "receive_slice", receive_slice)
    monkeypatch.setattr(owner.engine, "has_input", lambda: 0 < slices < 12)
    async with owner.running():
        await wait_all_tasks_blocked()
        await theirs.send_all(b"x")
        while slices < 6:
            await trio.lowlevel.checkpoint()
        owner.pump.write_at_once(say, owner, b"one")
        assert owner.pump._totals.writes == 0
        assert slices < 12
        assert await read(theirs) == b"one"
        assert slices == 12


@pytest.mark.logs_errors
async def test_engine_that_fails_in_a_write_at_once_ends_its_connection(sockets: Pair) -> None:
    ours, _ = sockets
    owner = Owner(ours)
    async with owner.running():
        await wait_all_tasks_blocked()
        owner.engine._broken = "data_to_send"
        assert owner.pump.write_at_once(say, owner, b"x") == "said"
        assert isinstance(owner.pump.failure, ZeroDivisionError)
        await owner.pump.finished.wait()


async def test_write_at_once_on_a_broken_stream_ends_the_connection(sockets: Pair) -> None:
    ours, _ = sockets
    owner = Owner(ours)
    async with owner.running():
        await wait_all_tasks_blocked()
        with socket.fromfd(ours.socket.fileno(), socket.AF_INET, socket.SOCK_STREAM) as same:  # type: ignore[attr-defined]
            same.shutdown(socket.SHUT_WR)
        assert owner.pump.write_at_once(say, owner, b"x") == "said"
        await owner.pump.finished.wait()
        assert isinstance(owner.pump.failure, trio.BrokenResourceError)
        assert owner.pump.write_at_once(say, owner, b"y") == "said"  # and it is dropped


async def test_write_at_once_for_which_there_is_no_room_is_finished_later(sockets: Pair) -> None:
    ours, theirs = sockets
    owner = Owner(ours)
    async with owner.running():
        await wait_all_tasks_blocked()
        much = bytes(20_000_000)
        owner.pump.write_at_once(say, owner, much)
        got = 0
        while got < len(much):
            got += len(await theirs.receive_some(1_000_000))
        await owner.pump.flushed()
