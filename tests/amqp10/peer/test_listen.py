"""``serve``: handlers, their failures, limits on who may come in, and how it ends."""

from __future__ import annotations

import logging
import os
import signal
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame, header

from .helpers import Node, acceptor, idle, listening, never, served
from .services import scripted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from trio_amqp10.amqp10.peer.connection import Connection


async def test_serve_needs_a_url() -> None:
    with pytest.raises(amqp.LocalProtocolError, match="at least one URL"):
        await amqp.serve(idle)
    with pytest.raises(amqp.LocalProtocolError, match="not a URL"):
        await amqp.serve(idle, "localhost")
    with pytest.raises(amqp.LocalProtocolError, match="shorten properties, container_id or hostname"):
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
