"""A service accepts connections until its listener is broken."""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import idle, listening

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.connection import Connection


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
    assert "unexpected error while serving a connection" in caplog.text


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
    from trio_amqp10.net import accept_loop, transports

    async def bind(url: Any) -> Any:
        return [Tired(one, [OSError(number, "no more")] * 2) for one in await transports.bind(url)]

    monkeypatch.setattr(accept_loop, "bind", bind)
    async with listening(max_connections=1, max_handshakes=1) as [listener]:
        began = trio.current_time()
        async with amqp.open_connection(listener.url):
            assert trio.current_time() - began >= 0.2
    assert caplog.text.count("cannot accept for now") == 2


async def test_service_ends_when_its_listener_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    from trio_amqp10.net import accept_loop, transports

    async def bind(url: Any) -> Any:
        return [Tired(one, [OSError(errno.EINVAL, "broken")]) for one in await transports.bind(url)]

    monkeypatch.setattr(accept_loop, "bind", bind)
    with pytest.raises(ExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            [listener] = await nursery.start(partial(amqp.serve, idle, "amqp://127.0.0.1:0"))
            async with await trio.open_tcp_stream("127.0.0.1", listener.port):
                await trio.sleep_forever()
    assert caught.group_contains(OSError, match="broken")
