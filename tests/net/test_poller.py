"""Two tasks read and write the plain sockets of all connections."""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_fast
from trio_amqp10.net import poller as poller_module
from trio_amqp10.net.poller import PolledSocket, polled_socket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="only Linux has epoll")

NAME: ContextVar[str] = ContextVar("NAME", default="nobody")


def nothing() -> None:
    """Do nothing."""


class End:
    """A socket that notes what is read from it, and writes what is in ``out``."""

    def __init__(self, raw: socket.socket) -> None:
        self.stream = trio.SocketStream(trio.socket.from_stdlib_socket(raw))
        self.got: list[bytes | None] = []
        self.names: list[str] = []
        self.out = b""
        self.size = 1000
        polled = polled_socket(self.stream, self.read, self.write)
        assert polled is not None
        self.polled: PolledSocket = polled

    def read(self) -> None:
        self.names.append(NAME.get())
        self.got.append(self.polled.receive(self.size))

    def write(self) -> None:
        self.names.append(NAME.get())
        self.out = self.out[self.polled.send(self.out) :]


@contextmanager
def ends(count: int = 1) -> Generator[list[tuple[End, socket.socket]]]:
    """Open pairs of sockets: an ``End``, and the peer's side."""
    pairs = [socket.socketpair() for _ in range(count)]
    opened = [(End(ours), theirs) for ours, theirs in pairs]
    try:
        yield opened
    finally:
        for end, theirs in opened:
            end.polled.unwatch()
            end.stream.socket.close()
            theirs.close()


async def test_only_a_plain_socket_is_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert polled_socket(memory_stream_pair()[0], nothing, nothing) is None
    with ends() as [(end, _)]:
        monkeypatch.delattr(select, "epoll")
        assert polled_socket(end.stream, nothing, nothing) is None


async def test_socket_is_read_while_it_is_watched_and_has_octets() -> None:
    with ends() as [(end, theirs)]:
        theirs.send(b"one")
        await wait_all_tasks_blocked()
        assert end.got == []
        assert end.polled.watch()
        end.size = 2
        await wait_all_tasks_blocked()
        assert end.got == [b"on", b"e"]
        end.polled.unwatch()
        theirs.send(b"two")
        await wait_all_tasks_blocked()
        assert len(end.got) == 2
        end.polled.watch()
        await wait_all_tasks_blocked()
        assert end.got[2:] == [b"tw", b"o"]
        assert end.polled.receive(10) is None


async def test_end_of_a_stream_and_its_failure_are_seen() -> None:
    with ends() as [(end, theirs)]:
        theirs.close()
        assert end.polled.receive(10) == b""
        assert end.polled.send(b"x") == 0
        end.stream.socket.close()
        with pytest.raises(trio.BrokenResourceError, match="Bad file descriptor"):
            end.polled.receive(10)
        assert end.polled.send(b"x") == 0
        assert not end.polled.watch()


async def test_socket_is_not_watched_when_the_process_has_no_descriptor_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def epoll() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with ends() as [(end, theirs)]:
        with monkeypatch.context() as patch:
            patch.setattr(select, "epoll", epoll)
            assert not end.polled.watch()
        theirs.send(b"x")
        await wait_all_tasks_blocked()
        assert end.got == []
        assert end.polled.watch()
        await wait_all_tasks_blocked()
        assert end.got == [b"x"]


async def test_octets_of_one_pass_are_written_in_the_next() -> None:
    with ends() as [(end, theirs)]:
        theirs.setblocking(False)
        end.out = b"one"
        end.polled.write_soon()
        with pytest.raises(BlockingIOError):
            theirs.recv(10)
        end.out += b"two"
        await wait_all_tasks_blocked()
        assert theirs.recv(10) == b"onetwo"


async def test_call_while_sockets_are_written_is_not_lost() -> None:
    with ends() as [(end, theirs)]:
        theirs.setblocking(False)
        left = [b"three", b"two", b"one"]

        def write_one() -> None:
            end.polled.send(left.pop())
            if left:
                end.polled.write_soon()

        end.polled.on_writing = write_one
        end.polled.write_soon()
        await wait_all_tasks_blocked()
        assert theirs.recv(100) == b"onetwothree"


async def test_octets_that_the_reading_causes_are_written_after_it() -> None:
    with ends(2) as [(one, to_one), (two, to_two)]:
        log: list[str] = []

        def read(end: End, name: str) -> None:
            end.read()
            log.append(f"{name} reads")
            one.polled.write_soon()  # each of them has something to say to the first

        one.polled.on_readable = lambda: read(one, "one")
        two.polled.on_readable = lambda: read(two, "two")
        one.polled.on_writing = lambda: log.append(trio.lowlevel.current_task().name)
        for end, theirs in (one, to_one), (two, to_two):
            end.polled.watch()
            theirs.send(b"x")
        await wait_all_tasks_blocked()
        assert sorted(log[:2]) == ["one reads", "two reads"]
        assert log[2:] == ["trio_amqp10 reader of sockets"]
        one.polled.write_soon()
        await wait_all_tasks_blocked()
        assert log[3:] == ["trio_amqp10 writer of sockets"]


async def test_reader_leaves_to_the_writer_what_was_due_before() -> None:
    with ends(2) as [(one, _), (two, to_two)]:
        log: list[str] = []

        def write() -> None:
            log.append(trio.lowlevel.current_task().name)
            if len(log) < 10:
                one.polled.write_soon()

        def read() -> None:
            two.read()
            log.append("read")
            one.polled.write_soon()

        one.polled.on_writing, two.polled.on_readable = write, read
        two.polled.watch()
        await wait_all_tasks_blocked()
        to_two.send(b"x")
        one.polled.write_soon()
        await wait_all_tasks_blocked()
        assert log.index("read") < 9
        assert {*log} == {"read", "trio_amqp10 writer of sockets"}


async def test_octets_are_written_in_another_pass_after_long_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller_module, "_SECONDS", -1.0)
    with ends() as [(end, theirs)]:
        writers: list[str] = []

        def read() -> None:
            end.read()
            end.polled.write_soon()

        end.polled.on_readable = read
        end.polled.on_writing = lambda: writers.append(trio.lowlevel.current_task().name)
        end.polled.watch()
        theirs.send(b"x")
        await wait_all_tasks_blocked()
        assert writers == ["trio_amqp10 writer of sockets"]


async def test_calls_are_made_in_the_context_of_the_connection() -> None:
    NAME.set("dialler")
    with ends() as [(end, theirs)]:
        NAME.set("another")
        end.polled.watch()
        theirs.send(b"x")
        end.polled.write_soon()
        await wait_all_tasks_blocked()
    assert end.names == ["dialler", "dialler"]


@pytest.mark.logs_errors
async def test_bug_of_one_connection_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    with ends(2) as [(bad, to_bad), (good, to_good)]:

        def fail() -> None:
            raise ZeroDivisionError

        bad.polled.on_readable = bad.polled.on_writing = fail
        for end in (bad, good):
            end.polled.watch()
            end.polled.write_soon()
        to_bad.send(b"x")
        to_good.send(b"x")
        await wait_all_tasks_blocked()
        assert good.got == [b"x"]
        assert len(good.names) == 2
    assert caplog.text.count("could not be read or written") in (
        1,
        2,
    )  # it is not read after it could not be written


async def test_descriptor_that_is_used_again_is_not_taken_from_its_new_owner() -> None:
    with ends() as [(old, _)]:
        old.polled.watch()
        number = old.stream.socket.fileno()
        old.stream.socket.close()
        with ends() as [(new, theirs)]:
            assert new.stream.socket.fileno() == number
            new.polled.watch()
            old.polled.unwatch()
            theirs.send(b"x")
            await wait_all_tasks_blocked()
            assert new.got == [b"x"]
    assert old.got == []


async def test_other_tasks_run_between_sockets_that_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller_module, "_SECONDS", -1.0)  # each of them takes too long
    with ends(5) as opened:
        for end, theirs in opened:
            end.polled.watch()
            theirs.send(b"x")
        read: list[int] = []
        for _ in range(20):
            await trio.lowlevel.checkpoint()
            read.append(sum(len(end.got) for end, _ in opened))
        assert read[-1] == 5
        assert all(count <= passes for passes, count in enumerate(read, 1))


async def test_clock_jumps_only_after_octets_have_arrived(autojump_clock: MockClock) -> None:
    with ends(2) as [(one, to_one), (two, _)]:
        arrived: list[float] = []

        def answer() -> None:
            one.read()
            two.polled.write_soon()

        def note() -> None:
            arrived.append(trio.current_time())

        one.polled.on_readable, two.polled.on_writing = answer, note
        one.polled.watch()
        began = trio.current_time()
        to_one.send(b"x")
        await trio.sleep(1000)
        assert arrived == [began]


def test_socket_is_read_and_written_after_the_main_task_has_ended() -> None:
    got: list[list[bytes | None]] = []

    async def late(task_status: trio.TaskStatus[None]) -> None:
        with ends() as [(end, theirs)]:
            theirs.setblocking(False)
            end.polled.watch()
            try:
                task_status.started()
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    theirs.send(b"last words")
                    end.out = b"answer"
                    end.polled.write_soon()
                    await wait_all_tasks_blocked()
                    got.append([*end.got, theirs.recv(100)])

    async def begin() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(late)

    async def main() -> None:
        trio.lowlevel.spawn_system_task(begin)
        await wait_all_tasks_blocked()

    trio.run(main)
    assert got == [[b"last words", b"answer"]]


async def say_hello() -> bytes:
    """Send a message to a queue over TCP, and receive it."""
    container = amqp.Container("c")
    container.add_queue("q")
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        async with (
            amqp.open_connection(listener.url) as connection,
            connection.open_sender("q") as sender,
            connection.open_receiver("q", credit=1) as receiver,
        ):
            await sender.send(b"hello")
            delivery = await receiver.receive()
            delivery.accept()
        nursery.cancel_scope.cancel()
    return bytes(delivery.message.body)


@asynccontextmanager
async def calls_that_wait(url: str) -> AsyncGenerator[dict[str, Callable[[], Awaitable[object]]]]:
    """Calls that wait for the answer of the container at ``url``, on connections that are open."""
    async with (
        amqp.open_connection(url) as connection,
        connection.open_sender("q") as sender,
        connection.open_requester("upper") as requester,
        amqp091.open_connection(url) as rabbit,
        rabbit.open_publisher() as publisher,
        amqp_fast.open_connection(url.replace("amqp:", "amqp-fast:")) as fast,
        fast.open_channel() as channel,
        channel.open_handle("q") as handle,
    ):
        yield {
            "send": partial(sender.send, b"x"),
            "request": partial(requester.request, "x"),
            "publish": partial(publisher.publish, "", "q", b"x"),
            "declare": partial(publisher.declare_queue, "q2"),
            "fast send": partial(handle.send, b"x"),
        }


@asynccontextmanager
async def listening() -> AsyncGenerator[str]:
    """Run a container with a function over TCP."""
    container = amqp.Container("c")

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        return str(message.body).upper()

    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", dialects="all")
        [listener] = await nursery.start(serve)
        yield listener.url
        nursery.cancel_scope.cancel()


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tasks that write, one for each write of a polled socket."""
    names: list[str] = []
    send = PolledSocket.send

    def note_and_send(polled: PolledSocket, data: bytes) -> int:
        names.append(trio.lowlevel.current_task().name)
        return send(polled, data)

    monkeypatch.setattr(PolledSocket, "send", note_and_send)
    return names


@pytest.mark.parametrize("name", ["send", "request", "publish", "declare", "fast send"])
async def test_task_that_waits_for_an_answer_writes_by_itself(name: str, writers: list[str]) -> None:
    async with listening() as url, calls_that_wait(url) as calls, trio.open_nursery() as nursery:
        await wait_all_tasks_blocked(0.01)
        writers.clear()
        nursery.start_soon(calls[name], name="caller")
        await wait_all_tasks_blocked(0.01)
        assert writers[0] == "caller"
        assert writers.count("caller") == 1


async def test_hundred_tasks_that_send_together_make_two_writes() -> None:
    async with (
        listening() as url,
        amqp.open_connection(url) as connection,
        connection.open_sender("q") as sender,
    ):
        await wait_all_tasks_blocked(0.01)
        for writes in (2, 1):  # while tasks send together, none of them is written before the others
            before = connection.statistics()["writes"]
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(sender.send, b"x")
            assert connection.statistics()["writes"] == before + writes


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_each_run_has_a_poller_of_its_own_and_leaves_nothing_open() -> None:
    trio.run(say_hello)
    before = descriptors()
    for _ in range(20):
        assert trio.run(say_hello) == b"hello"
    assert descriptors() == before


def test_threads_have_pollers_of_their_own() -> None:
    heard: list[bytes] = []
    threads = [threading.Thread(target=lambda: heard.append(trio.run(say_hello))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == [b"hello"] * 4
