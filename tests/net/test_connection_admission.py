"""How many connections are let in, of all and of each host, and how many wait."""

from __future__ import annotations

import os
import select
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import idle, listening
from tests.amqp10.peer.services import scripted
from trio_amqp10.net.transports import peer_place

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


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


@pytest.mark.parametrize("limit", ["max_connections", "max_handshakes"])
@pytest.mark.parametrize("value", [0, -1, "7"])
async def test_limit_lets_at_least_one_in(limit: str, value: Any) -> None:
    with pytest.raises(
        amqp.LocalProtocolError, match=f"^{limit}={value!r}: expected a whole number, at least 1"
    ):
        await amqp.Container().serve("amqp://127.0.0.1:0", **{limit: value})
