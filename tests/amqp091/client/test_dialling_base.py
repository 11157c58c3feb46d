"""Dialling: places in turn, peers that are none, and what is refused before anything is dialled."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from trio_amqp10 import amqp091, amqp_10_3
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .conftest import URL


async def test_connection_reports_a_virtual_host_that_is_not_there(brokered: Any) -> None:
    async with brokered():
        with pytest.raises(amqp091.ConnectionClosedError, match="530 NOT_ALLOWED - vhost nope") as caught:
            await amqp091.open_connection(f"{URL}/nope").__aenter__()
        assert caught.value.code == 530
        assert caught.value.method == "connection.open"
        assert caught.value.condition == "amqp:not-allowed"
        assert not caught.value.may_retry


async def test_connection_reports_a_peer_of_another_protocol() -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(RemoteProtocolError):
        await amqp091.open_connection(ours, login=("a", "b")).__aenter__()


async def test_connection_reports_a_server_of_another_version() -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(b"AMQP\x00\x01\x00\x00")
    with pytest.raises(RemoteProtocolError, match="protocol header"):
        await amqp091.open_connection(ours, login=("a", "b")).__aenter__()


async def test_connection_gives_up_a_server_that_says_nothing(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    began = trio.current_time()
    with pytest.raises(amqp091.ConnectionClosedError, match="too long"):
        await amqp091.open_connection(ours, limits=Limits(handshake_timeout=7)).__aenter__()
    assert 7 <= trio.current_time() - began < 10
    await theirs.aclose()


async def test_connection_is_closed_when_entering_is_cancelled(
    brokered: Any, autojump_clock: MockClock
) -> None:
    async with brokered() as broker:
        broker.password = ""
        with trio.move_on_after(0) as scope:
            async with amqp091.open_connection(URL):
                raise AssertionError
        assert scope.cancelled_caught
        await trio.sleep(10)
        assert not broker.peers


async def test_connection_tries_its_places_in_turn(brokered: Any) -> None:
    async with brokered() as broker:
        answers = iter([False, True])

        async def dial(url: Any) -> trio.abc.Stream:
            broker.accepts = next(answers)
            stream: trio.abc.Stream = await broker.dial(url)
            return stream

        from trio_amqp10.net import dialling_base as module

        module.connect = dial  # type: ignore[assignment]  # the fixture puts it back
        async with amqp091.open_connection([URL, URL]):
            assert broker.dials == 2


async def test_connection_reports_that_nobody_answers(brokered: Any) -> None:
    async with brokered() as broker:
        broker.accepts = False
        with pytest.raises(OSError, match="down"):
            await amqp091.open_connection(URL).__aenter__()


@pytest.mark.parametrize("vhost", ["a\0b", "x" * 256, "a\ud800"])
@pytest.mark.parametrize(
    ("client", "scheme"), [(amqp091, "amqp091"), (amqp_10_3, "amqp103")], ids=["0-9-1", "10.3"]
)
def test_virtual_host_that_cannot_be_written_is_refused_before_anything_is_dialled(
    client: Any, scheme: str, vhost: str
) -> None:
    with pytest.raises(LocalProtocolError, match="virtual host"):
        client.open_connection(f"{scheme}://server", vhost=vhost, reconnect=True)
    quoted = quote(vhost, errors="surrogatepass", safe="")
    if "\ud800" not in vhost:
        with pytest.raises(LocalProtocolError, match="virtual host"):
            client.open_connection(f"{scheme}://server/{quoted}", reconnect=True)
