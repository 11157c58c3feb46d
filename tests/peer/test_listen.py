"""``serve``: handlers, their failures, limits on who may come in, and how it ends."""

from __future__ import annotations

import errno
import logging
import os
import select
import signal
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame, header
from trio_amqp10.net.transports import peer_place

from .helpers import Node, acceptor, idle, listening, never, served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from trio_amqp10.peer.connection import Connection


async def scripted(url: str) -> ScriptedPeer:
    host, _, port = url.removeprefix("amqp://").rpartition(":")
    return ScriptedPeer(await trio.open_tcp_stream(host.strip("[]"), int(port)))


async def test_serve_needs_a_url() -> None:
    with pytest.raises(amqp.LocalProtocolError, match="at least one URL"):
        await amqp.serve(idle)
    with pytest.raises(amqp.LocalProtocolError, match="not a URL"):
        await amqp.serve(idle, "localhost")
    with pytest.raises(amqp.LocalProtocolError, match="shorten its properties"):
        await amqp.serve(idle, "amqp://127.0.0.1:0", properties={"x": "y" * 9000})
    with pytest.raises(amqp.LocalProtocolError, match="at least 512"):
        await amqp.serve(idle, "amqp://127.0.0.1:0", max_frame_size=100)


async def test_serve_raises_when_it_cannot_listen_and_leaves_nothing_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with listening() as [listener]:
        with pytest.raises(OSError, match="in use"):
            await amqp.serve(idle, "amqp://127.0.0.1:0", listener.url)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_tcp_keep_alive_is_on_at_both_ends(tmp_path: Path) -> None:
    ends: list[Any] = []

    async def handle(connection: amqp.Connection) -> None:
        ends.append(connection)
        await idle(connection)

    def keeps_alive(connection: Any) -> bool:
        stream: trio.SocketStream = connection.pump._stream
        return bool(stream.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))

    async with listening(handle, "amqp://127.0.0.1:0", f"amqp+unix://{tmp_path}/s") as [tcp, unix]:
        async with amqp.open_connection(tcp.url) as connection:
            ends.append(connection)
            await wait_all_tasks_blocked()
            assert [keeps_alive(each) for each in ends] == [True, True]
        async with amqp.open_connection(unix.url) as connection:
            assert not keeps_alive(connection)


async def test_serve_tells_where_it_listens(tmp_path: Path) -> None:
    unix = f"amqp+unix://{tmp_path}/s"
    async with listening(idle, "amqp://127.0.0.1:0/ignored", "amqp://[::1]:0", unix) as listeners:
        v4, v6, path = listeners
        assert v4.url == f"amqp://127.0.0.1:{v4.port}"
        assert v6.url == f"amqp://[::1]:{v6.port}"
        assert path == amqp.Listener(unix, 0)
        assert min(v4.port, v6.port) > 0


async def test_serve_says_who_we_are() -> None:
    options: dict[str, Any] = {
        "container_id": "the service",
        "max_frame_size": 2048,
        "channel_max": 5,
        "idle_timeout": 20,
        "properties": {"product": "p"},
        "offered_capabilities": "o",
        "desired_capabilities": ["d"],
    }
    async with listening(idle, **options) as [listener], amqp.open_connection(listener.url) as conn:
        assert conn.remote == amqp.Remote(
            "the service", None, 2048, 5, 10.0, {"product": "p"}, ("o",), ("d",)
        )


# -- handlers -------------------------------------------------------------------------------


async def test_handler_that_returns_closes_its_connection() -> None:
    async def handle(conn: Connection) -> None:
        await trio.lowlevel.checkpoint()

    async with listening(handle) as [listener], amqp.open_connection(listener.url) as conn:
        await conn.wait_closed()
        with pytest.raises(amqp.ConnectionClosedError, match="the peer closed the connection"):
            conn.check_alive()


@pytest.mark.logs_errors
async def test_handler_that_raises_closes_its_connection_with_an_internal_error_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handle(conn: Connection) -> None:
        if conn.remote.container_id == "bad":
            raise ZeroDivisionError("a secret of the service's")
        await idle(conn)

    async with listening(handle) as [listener], amqp.open_connection(listener.url) as other:
        with pytest.raises(amqp.ConnectionClosedError) as caught:
            async with amqp.open_connection(listener.url, container_id="bad") as conn:
                await conn.wait_closed()
        assert caught.value.condition == "amqp:internal-error"
        assert "secret" not in str(caught.value)
        assert not other.closed
        await other.open_session().__aenter__()
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.name == "trio_amqp10.listen"
    assert "a secret of the service's" in caplog.text


async def test_lost_connection_is_logged_for_debugging_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    begun, done = trio.Event(), trio.Event()

    async def handle(conn: Connection) -> None:
        begun.set()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(conn.wait_closed)
                async for _ in conn.incoming_links():
                    pass
        finally:
            done.set()

    async with listening(handle) as [listener]:
        for end in (b"", b"\0\0\0\1"):
            begun, done = trio.Event(), trio.Event()
            peer = await scripted(listener.url)
            await peer.dial_open()
            await begun.wait()
            await peer.send(end) if end else None
            await peer.aclose()
            await done.wait()
            await wait_all_tasks_blocked(0.01)
    assert {record.levelno for record in caplog.records if record.name == "trio_amqp10.listen"} == {
        logging.DEBUG
    }


@pytest.mark.logs_errors
async def test_lost_link_that_leaves_a_handler_is_the_handlers_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handle(conn: Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept() as receiver:
                await receiver.receive()

    async with listening(handle) as [listener], amqp.open_connection(listener.url) as conn:
        async with conn.open_sender("q"):
            pass
        with pytest.raises(amqp.ConnectionClosedError) as caught:
            await conn.wait_closed()
        assert caught.value.condition == "amqp:internal-error"
    assert "the handler" in caplog.text


async def test_handler_is_not_called_before_the_peer_has_opened(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor().run, ours, never)
        await theirs.send_all(header())
        peer = ScriptedPeer(theirs, timeout=100)
        await peer.expect_header()
        await peer.expect_eof()


async def test_peer_that_goes_no_further_than_the_handshake_is_a_line_in_the_log(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor().run, ours, never)
        await theirs.send_all(b"GET / HTTP/1.1\r\n\x1b[31m\r\n")
    [record] = caplog.records
    assert record.levelno == logging.INFO
    assert record.exc_info is None
    assert "\x1b" not in record.getMessage()


async def test_handler_may_close_the_connection_itself() -> None:
    async def handle(conn: Connection) -> None:
        await conn.aclose(amqp.ErrorInfo(condition="x:y", description="enough"))

    with pytest.raises(ExceptionGroup) as caught:
        async with served(handle) as conn:
            await conn.wait_closed()
    assert caught.group_contains(amqp.ConnectionClosedError, match="x:y: enough")


@pytest.mark.logs_errors
async def test_bug_on_one_connection_does_not_end_the_service(caplog: pytest.LogCaptureFixture) -> None:
    async def handle(conn: Connection) -> None:
        if conn.remote.container_id == "bad":
            conn._nursery.start_soon(broken)
        await idle(conn)

    async def broken() -> None:
        raise ZeroDivisionError("not of the handler's")

    async with listening(handle) as [listener], amqp.open_connection(listener.url) as other:
        with pytest.raises(amqp.ConnectionClosedError):
            async with amqp.open_connection(listener.url, container_id="bad") as conn:
                await conn.wait_closed()
        assert not other.closed
    assert "in a way that it should not" in caplog.text


# -- the end --------------------------------------------------------------------------------


async def test_cancelled_service_closes_every_connection_with_forced() -> None:
    node = Node()
    async with trio.open_nursery() as nursery:
        service = trio.CancelScope()

        async def serve(task_status: trio.TaskStatus[Any]) -> None:
            with service:
                await amqp.serve(node.handle, "amqp://127.0.0.1:0", task_status=task_status)

        [listener] = await nursery.start(serve)
        async with (
            amqp.open_connection(listener.url) as one,
            amqp.open_connection(listener.url) as two,
            two.open_sender("q") as sender,
        ):
            await sender.send("x")
            service.cancel()
            for conn in (one, two):
                with pytest.raises(amqp.ConnectionClosedError) as caught:
                    await conn.wait_closed()
                assert caught.value.condition == "amqp:connection:forced"
        with pytest.raises(OSError, match="connect"):
            await amqp.open_connection(listener.url).__aenter__()


# -- who may come in ------------------------------------------------------------------------


async def test_connections_above_the_limit_wait_outside() -> None:
    async with (
        listening(max_connections=2) as [listener],
        amqp.open_connection(listener.url) as first,
        amqp.open_connection(listener.url),
    ):
        with trio.move_on_after(0.1) as scope:
            await amqp.open_connection(listener.url).__aenter__()
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:

            async def third() -> None:
                async with amqp.open_connection(listener.url):
                    pass

            nursery.start_soon(third)
            await wait_all_tasks_blocked(0.01)
            await first.aclose()


async def test_limit_is_shared_by_listeners_and_none_of_them_hoards_it() -> None:
    async with listening(idle, "amqp://127.0.0.1:0", "amqp://[::1]:0", max_connections=1) as listeners:
        for listener in (*listeners, *listeners):
            with trio.fail_after(60):
                async with amqp.open_connection(listener.url):
                    pass


async def test_no_limit_is_no_limit() -> None:
    async with (
        listening(max_connections=None, max_handshakes=None) as [listener],
        amqp.open_connection(listener.url),
        amqp.open_connection(listener.url),
    ):
        pass


async def test_row_17_strangers_above_the_limit_wait_and_those_inside_are_not_disturbed() -> None:
    limits = amqp.Limits(header_timeout=2.0, handshake_timeout=2.0)
    async with (
        listening(max_handshakes=3, limits=limits) as [listener],
        amqp.open_connection(listener.url) as conn,
    ):
        strangers = [await scripted(listener.url) for _ in range(3)]
        await wait_all_tasks_blocked(0.01)
        with trio.move_on_after(0.05) as scope:
            await amqp.open_connection(listener.url).__aenter__()  # of the same host: it waits for its turn
        assert scope.cancelled_caught
        await conn.open_session().__aenter__()
        # They are closed when their time is over, and make room.
        async with amqp.open_connection(listener.url):
            pass
        for stranger in strangers:
            await stranger.expect_eof()
            await stranger.aclose()


async def dial_from(host: str, listener: amqp.Listener) -> trio.SocketStream:
    """A socket of another host of this machine, of which nothing is sent yet."""
    stream = await trio.open_tcp_stream("127.0.0.1", listener.port, local_address=host)
    assert isinstance(stream, trio.SocketStream)
    return stream


@asynccontextmanager
async def strangers_from(
    host: str, count: int, listener: amqp.Listener
) -> AsyncGenerator[list[trio.SocketStream]]:
    """So many half-open sockets."""
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await dial_from(host, listener)) for _ in range(count)]
        await wait_all_tasks_blocked(0.01)
        yield streams


def are_gone(streams: list[trio.SocketStream]) -> list[bool]:
    """Which of them the listener has closed by now; it says nothing to the others."""
    gone: list[bool] = []
    for stream in streams:
        poll = select.poll()
        poll.register(stream.socket.fileno(), select.POLLIN)
        gone.append(bool(poll.poll(0)))
    return gone


@pytest.mark.parametrize("limit", [{"max_handshakes": 40}, {"max_connections": 40}])
async def test_row_17_half_open_sockets_of_one_host_keep_no_other_host_out(limit: dict[str, Any]) -> None:
    forever = amqp.Limits(header_timeout=None, handshake_timeout=None)  # they do not go by themselves
    async with (
        listening(**limit, limits=forever) as [listener],
        strangers_from("127.0.0.3", 2, listener) as few,
        strangers_from("127.0.0.1", 200, listener) as many,
    ):
        with trio.fail_after(20):
            stream = await dial_from("127.0.0.2", listener)
            async with amqp.open_connection(stream) as conn:
                await conn.open_session().__aenter__()
        assert are_gone(few) == [False, False]
        gone = are_gone(many[:3] + many[-3:])
        # As many as there may be are there: above that the oldest of the greediest host goes first.
        assert gone == [True, *[limit == {"max_connections": 40}] * 2, *[False] * 3]


async def test_row_17_users_of_this_machine_have_shares_of_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with listening(idle, f"amqp+unix://{path}"):
        ours = await trio.open_unix_socket(path)
        assert peer_place(ours) == f"this machine, user {os.getuid()}"
        await ours.aclose()
        assert peer_place(ours) == "this machine"


async def test_connection_that_is_open_gives_way_to_nobody() -> None:
    async with (
        listening(max_connections=2) as [listener],
        amqp.open_connection(listener.url) as conn,
        strangers_from("127.0.0.1", 3, listener) as streams,
    ):
        with trio.fail_after(20):
            while are_gone(streams) != [True, True, False]:  # noqa: ASYNC110 - nothing is heard of it
                await trio.sleep(0.01)
        assert not conn.closed


class Tired:
    """A listener that has run out of descriptors a few times."""

    def __init__(self, inner: trio.SocketListener, failures: list[OSError]) -> None:
        self._inner = inner
        self._failures = failures
        self.socket = inner.socket

    async def accept(self) -> trio.SocketStream:
        if self._failures:
            raise self._failures.pop()
        return await self._inner.accept()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS])
async def test_service_waits_a_moment_when_it_runs_out_of_descriptors(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from trio_amqp10.net import transports
    from trio_amqp10.peer import listen

    async def bind(url: Any) -> Any:
        return [Tired(one, [OSError(number, "no more")] * 2) for one in await transports.bind(url)]

    monkeypatch.setattr(listen, "bind", bind)
    async with listening(max_connections=1, max_handshakes=1) as [listener]:
        began = trio.current_time()
        async with amqp.open_connection(listener.url):
            assert trio.current_time() - began >= 0.2
    assert caplog.text.count("cannot accept for now") == 2


async def test_service_ends_when_its_listener_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    from trio_amqp10.net import transports
    from trio_amqp10.peer import listen

    async def bind(url: Any) -> Any:
        return [Tired(one, [OSError(errno.EINVAL, "broken")]) for one in await transports.bind(url)]

    monkeypatch.setattr(listen, "bind", bind)
    with pytest.raises(ExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            [listener] = await nursery.start(partial(amqp.serve, idle, "amqp://127.0.0.1:0"))
            async with await trio.open_tcp_stream("127.0.0.1", listener.port):
                await trio.sleep_forever()
    assert caught.group_contains(OSError, match="broken")


async def test_unix_socket_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    url = f"amqp+unix://{tmp_path}/s"
    for _ in range(2):
        async with listening(idle, url) as [listener], amqp.open_connection(listener.url) as conn:
            assert conn.identity is None


async def test_silence_before_and_after_the_open_is_told_apart(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(idle_timeout=20).run, ours, idle)
        peer = ScriptedPeer(theirs, timeout=100)
        await peer.dial_open()
        await peer.expect("close", error=("error", {"condition": "amqp:resource-limit-exceeded"}))
        assert trio.current_time() - began == pytest.approx(20)
        await peer.send(frame("close"))
        await peer.expect_eof()


async def test_vet_closes_a_connection_whose_peer_lacks_a_capability_that_is_needed() -> None:
    def vet(connection: Connection) -> amqp.ErrorInfo | None:
        if "needed" in connection.remote.offered_capabilities:
            return None
        return amqp.ErrorInfo(condition="amqp:precondition-failed", description="'needed' is not offered")

    async with listening(idle, vet=vet) as [listener]:
        async with amqp.open_connection(listener.url, offered_capabilities=["other", "needed"]) as conn:
            assert not conn.closed
        with pytest.raises(amqp.ConnectionClosedError, match="'needed' is not offered") as caught:
            async with amqp.open_connection(listener.url, offered_capabilities=["other"]) as conn:
                await conn.wait_closed()
        assert caught.value.condition == "amqp:precondition-failed"


async def test_serve_refuses_dialects_that_are_only_named() -> None:
    async def nothing(_connection: amqp.Connection) -> None: ...

    with pytest.raises(amqp.LocalProtocolError, match=r"only Container\.serve knows"):
        await amqp.serve(nothing, "amqp://127.0.0.1:0", dialects="0-9-1")


class _Interrupting:
    """Presses Ctrl-C as soon as the service listens."""

    def started(self, _listeners: list[amqp.Listener]) -> None:
        trio.lowlevel.current_trio_token().run_sync_soon(signal.raise_signal, signal.SIGINT)


@pytest.mark.parametrize(
    "serve", [partial(amqp.serve, idle), amqp.Container("shop").serve], ids=["serve", "container"]
)
def test_interrupt_leaves_a_service_as_itself(serve: Callable[..., Awaitable[None]]) -> None:
    with pytest.raises(KeyboardInterrupt):
        trio.run(partial(serve, "amqp://127.0.0.1:0", task_status=_Interrupting()))
