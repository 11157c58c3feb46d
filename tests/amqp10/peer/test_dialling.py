"""A connection that is being dialled: whom it names, what it refuses, what it waits for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame, header

from .authority import authority
from .dialled import USERS, dial, somebody_listens
from .helpers import listening, served

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.connection import Connection


async def test_dialling_names_the_host_of_the_url() -> None:
    seen: list[str | None] = []

    async def handle(conn: Connection) -> None:
        seen.append(conn.remote.hostname)

    async with listening(handle) as [listener]:
        await dial(listener.url)
        await dial(listener.url, hostname="vhost:other")
    assert seen == ["127.0.0.1", "vhost:other"]


@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
async def test_dialling_names_one_host_in_tls_sasl_and_open(scheme: str) -> None:
    seen: list[tuple[str | None, str | None, str | None]] = []

    async def handle(conn: Connection) -> None:
        seen.append((conn.server_name, conn.sasl_hostname, conn.remote.hostname))

    context = amqp.tls.server_context(authority().issue("localhost").file) if scheme == "amqps" else None
    cafile = None if context is None else str(authority().cafile)
    async with listening(handle, f"{scheme}://127.0.0.1:0", sasl=USERS, ssl_context=context) as [listener]:
        await dial(f"{scheme}://ann:s3cret@localhost:{listener.port}", cafile=cafile)
    assert seen == [("localhost" if scheme == "amqps" else None, "localhost", "localhost")]


async def test_dialling_names_no_host_when_it_knows_none() -> None:
    seen: list[str | None] = []

    async def handle(conn: Connection) -> None:
        seen.append(conn.remote.hostname)

    async with served(handle):
        pass
    assert seen == [None]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"where": "amqps:/x"}, "not a URL of AMQP"),
        ({"max_frame_size": 511}, "at least 512 octets"),
    ],
)
async def test_dialling_refuses_what_cannot_be(options: dict[str, Any], said: str) -> None:
    ours, theirs = memory_stream_pair()
    with pytest.raises(amqp.LocalProtocolError, match=said):
        await dial(options.pop("where", ours), **options)
    await theirs.aclose()


async def test_dialling_refuses_an_open_that_is_too_long_before_anything_is_done() -> None:
    ours, theirs = memory_stream_pair()
    with pytest.raises(amqp.LocalProtocolError, match="shorten properties, container_id or hostname"):
        amqp.open_connection(ours, properties={"x": "y" * 10_000})
    await ours.send_all(b"x")
    assert await theirs.receive_some(2) == b"x"


async def test_dialling_closes_the_stream_when_a_password_may_not_be_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trio_amqp10.net.dialling_base.is_private", somebody_listens)
    ours, theirs = memory_stream_pair()
    with pytest.raises(amqp.SecurityError):
        await dial(ours, sasl=amqp.sasl.Plain("ann", "s3cret"))
    assert await theirs.receive_some(1) == b""


async def test_dialling_may_wait_for_each_answer(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:

        async def answer() -> None:
            await peer.expect_header()
            await peer.expect_nothing(1)
            await peer.send(header())
            await peer.expect("open")
            await peer.expect_nothing(1)
            await peer.send(frame("open", container_id="them"))
            await peer.accept_begin()
            await peer.accept_close()

        nursery.start_soon(answer)
        await dial(ours, pipelined=False)


async def test_dialling_leaves_nothing_open_when_it_is_cancelled() -> None:
    before = len(os.listdir("/proc/self/fd"))
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    with trio.move_on_after(0) as scope:
        await dial(f"amqp://127.0.0.1:{port}")
    assert scope.cancelled_caught
    await listeners[0].aclose()
    assert len(os.listdir("/proc/self/fd")) == before
