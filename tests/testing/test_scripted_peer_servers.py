"""Scripts in memory, at a port and in a thread; what happens when they are not followed."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.testing import Open, ScriptedPeer, open_peer, running_peer, scripted_stream

if TYPE_CHECKING:
    from trio.testing import MockClock


async def polite(peer: ScriptedPeer) -> None:
    await peer.accept_open()
    await peer.accept_begin()
    await peer.accept_close()


async def rude(peer: ScriptedPeer) -> None:
    await peer.expect(b"AMQP\0\0\x09\1")


async def test_open_peer_runs_one_script_for_each_connection() -> None:
    async with open_peer(polite, polite) as url:
        for _ in range(2):
            async with amqp.open_connection(url) as connection:
                assert connection.remote.container_id == "scripted peer"


async def test_leaving_raises_what_the_script_found_even_over_what_the_block_raises() -> None:
    with pytest.raises(AssertionError, match="expected 8 octets") as raised:
        async with open_peer(rude) as url, amqp.open_connection(url):
            pass
    assert isinstance(raised.value.__cause__, amqp.ConnectionClosedError)


async def test_leaving_raises_what_the_block_raises_as_itself() -> None:
    with pytest.raises(KeyError):
        async with scripted_stream(polite):
            raise KeyError


async def test_leaving_fails_when_the_script_has_not_come_to_its_end(autojump_clock: MockClock) -> None:
    async def endless(peer: ScriptedPeer) -> None:
        await peer.accept_open()
        await trio.sleep_forever()

    with pytest.raises(AssertionError, match=r"the script has not finished\n    <- header AMQP 0"):
        async with scripted_stream(endless) as stream:
            await stream.send_all(b"AMQP\0\1\0\0")
            await ScriptedPeer(stream).send(Open(container_id="x"))
            await wait_all_tasks_blocked()


async def test_leaving_fails_when_nobody_dialled() -> None:
    with pytest.raises(AssertionError, match="script 2 of 2 waits for a connection"):
        async with open_peer(polite, polite, timeout=0.05) as url, amqp.open_connection(url):
            pass


def test_running_peer_serves_a_blocking_client() -> None:
    async def script(peer: ScriptedPeer) -> None:
        await peer.expect(b"GET")
        await peer.send(b"AMQP\0\1\0\0")
        await peer.expect_eof()

    with running_peer(script) as url:
        host, _, port = url.removeprefix("amqp://").partition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"GET")
            assert client.recv(8) == b"AMQP\0\1\0\0"


def test_running_peer_serves_an_asyncio_client_and_tells_what_it_did_wrong() -> None:
    async def client(url: str) -> bytes:
        host, _, port = url.removeprefix("amqp://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"AMQP\0\1\0\0")
        octets = await reader.read()
        writer.close()
        await writer.wait_closed()
        return octets

    with pytest.raises(AssertionError, match="expected 8 octets"), running_peer(rude) as url:
        assert asyncio.run(client(url)) == b""
