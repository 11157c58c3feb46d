"""Layers between a stream and AMQP: which are told apart on one port, and which never are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, serving
from tests.amqp10.peer.helpers import Node, idle, listening, never
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame, header
from trio_amqp10.net.tls_stream import send_last_octets
from trio_amqp10.net.transport_layers import check_layers, no_less_secret

if TYPE_CHECKING:
    from pathlib import Path

CA = str(authority().cafile)
SCHEMES = ["amqp", "amqps", "amqp+tls", "amqpws", "amqpwss"]
SECRET = ["amqps", "amqp+tls", "amqpwss"]


async def dial(where: Any, **options: Any) -> None:
    async with amqp.open_connection(where, **options):
        pass


def with_scheme(url: str, scheme: str) -> str:
    return f"{scheme}://{url.partition('://')[2]}"


def options(scheme: str) -> dict[str, Any]:
    return {"cafile": CA} if scheme in SECRET else {}


@pytest.mark.parametrize("users", [False, True])
async def test_one_port_takes_them_all_when_it_is_to_detect(users: bool) -> None:
    node = Node()
    sasl = amqp.sasl.Server({"ann": "s3cret"}) if users else None
    async with listening(node.handle, ssl_context=serving(), detect=True, sasl=sasl) as [listener]:
        for scheme in SCHEMES:
            url = with_scheme(listener.url, scheme)
            if users:
                url = url.replace("://", "://ann:s3cret@")
            async with (
                amqp.open_connection(url, **options(scheme)) as conn,
                conn.open_sender("q") as sender,
            ):
                await sender.send(scheme)
    assert node.got == SCHEMES


@pytest.mark.parametrize("listening_at", SECRET)
async def test_one_port_takes_only_what_is_no_less_secret(listening_at: str) -> None:
    url = f"{listening_at}://127.0.0.1:0"
    async with listening(idle, url, ssl_context=serving(), detect=True) as [listener]:
        for scheme in SECRET:
            await dial(with_scheme(listener.url, scheme), cafile=CA)
        for scheme in ("amqp", "amqpws"):
            with pytest.raises(amqp.AmqpError):
                await dial(with_scheme(listener.url, scheme))


async def test_one_port_takes_what_needs_no_certificate_when_there_is_none() -> None:
    async with listening(idle, detect=True) as [listener]:
        for scheme in ("amqp", "amqpws"):
            await dial(with_scheme(listener.url, scheme))
        for scheme in SECRET:
            with pytest.raises(amqp.AmqpError):
                await dial(with_scheme(listener.url, scheme), cafile=CA)


@pytest.mark.parametrize("listening_at", SCHEMES)
@pytest.mark.parametrize("dialling", SCHEMES)
async def test_port_takes_what_its_scheme_says_and_nothing_else(listening_at: str, dialling: str) -> None:
    url = f"{listening_at}://127.0.0.1:0"
    soon = amqp.Limits(header_timeout=0.2, layer_timeout=0.2, handshake_timeout=0.2)
    limits = None if listening_at == dialling else soon
    async with listening(idle, url, ssl_context=serving(), limits=limits) as [listener]:
        where = with_scheme(listener.url, dialling)
        if listening_at == dialling:
            await dial(where, **options(dialling))
        else:
            with pytest.raises(amqp.AmqpError):
                await dial(where, limits=limits, **options(dialling))


async def test_row_02_port_that_detects_points_at_tls_when_it_takes_nobody_without() -> None:
    async with listening(never, "amqps://127.0.0.1:0", ssl_context=serving(), detect=True) as [listener]:
        for octets in (header(), header("sasl"), b"HEAD / HTTP/1.1\r\n"):
            async with await trio.open_tcp_stream("127.0.0.1", listener.port) as stream:
                peer = ScriptedPeer(stream)
                await peer.send(octets)
                await peer.expect_header("tls")
                await peer.expect_eof()


async def test_port_for_tls_or_websockets_in_it_refuses_other_octets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from tests.amqp10.peer.helpers import acceptor
    from trio_amqp10.net.transport_layers import AcceptedLayers

    caplog.set_level("INFO")
    ours, theirs = memory_stream_pair()
    stacks: Any = frozenset({("tls",), ("websocket",)})
    await theirs.send_all(header())
    await acceptor(entrance=AcceptedLayers(stacks=stacks, context=serving())).run(ours, never)
    assert "a first octet of 0x41, where TLS or a WebSocket is due" in caplog.text


@pytest.mark.parametrize("octets", [b"AMQP\0\0\x09\x01", b"X", b"AMQX"])
async def test_row_01_port_that_detects_shows_strangers_the_header_of_amqp(octets: bytes) -> None:
    async with (
        listening(never, ssl_context=serving(), detect=True) as [listener],
        await trio.open_tcp_stream("127.0.0.1", listener.port) as stream,
    ):
        peer = ScriptedPeer(stream)
        await peer.send(octets)
        await peer.expect_header()
        await peer.expect_eof()


@pytest.mark.parametrize("chunk", [1, 3, 1000])
async def test_port_that_detects_loses_no_octet(chunk: int) -> None:
    async with (
        listening(idle, ssl_context=serving(), detect=True) as [listener],
        await trio.open_tcp_stream("127.0.0.1", listener.port) as stream,
    ):
        octets = header() + frame("open", container_id="x")
        for start in range(0, len(octets), chunk):
            await stream.send_all(octets[start : start + chunk])
            await trio.testing.wait_all_tasks_blocked(0.001)
        peer = ScriptedPeer(stream)
        await peer.expect_header()
        await peer.expect("open")
        await peer.send(frame("close"))
        await peer.expect("close")
        await peer.expect_eof()


async def test_row_05_port_that_detects_gives_up_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    limits = amqp.Limits(header_timeout=0.1)
    async with (
        listening(never, ssl_context=serving(), detect=True, limits=limits) as [listener],
        await trio.open_tcp_stream("127.0.0.1", listener.port) as stream,
    ):
        await ScriptedPeer(stream).expect_eof()
    assert "the peer took too long, before its protocol header" in caplog.text
    async with (
        listening(never, ssl_context=serving(), detect=True) as [listener],
        await trio.open_tcp_stream("127.0.0.1", listener.port) as stream,
    ):
        await stream.send_eof()
        await ScriptedPeer(stream).expect_eof()
    assert "ended the transport before its first octet" in caplog.text


async def test_tls_and_websockets_go_over_unix_sockets(tmp_path: Path) -> None:
    async with listening(
        idle, f"amqp+unix://{tmp_path}/s", ssl_context=serving(), layers=["tls", "websocket"]
    ) as [listener]:
        await dial(listener.url, layers=["tls", "websocket"], cafile=CA, server_hostname="localhost")


def test_layers_are_checked() -> None:
    assert check_layers(["tls", "websocket", "in-band-tls"]) == ("tls", "websocket", "in-band-tls")
    assert check_layers([]) == ()
    assert no_less_secret((), tls=False) == {(), ("websocket",)}
    assert no_less_secret(("websocket", "in-band-tls"), tls=True) == {
        ("websocket", "in-band-tls"),
        ("tls",),
        ("in-band-tls",),
        ("tls", "websocket"),
    }


# -- who may come in ------------------------------------------------------------------------


async def test_admit_sends_away_before_anything_is_read() -> None:
    seen: list[str | None] = []
    answers = [True, False, True]

    def admit(host: str | None) -> bool:
        seen.append(host)
        return answers.pop(0)

    async with listening(idle, admit=admit, max_connections=1, max_handshakes=1) as [listener]:
        await dial(listener.url)
        with pytest.raises(amqp.ConnectionClosedError):
            await dial(listener.url)
        await dial(listener.url)
    assert seen == ["127.0.0.1"] * 3


@pytest.mark.logs_errors
async def test_admit_that_fails_lets_nobody_in_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def admit(host: str | None) -> bool:
        assert host is None
        raise ZeroDivisionError

    async with listening(never, f"amqp+unix://{tmp_path}/s", admit=admit) as [listener]:
        with pytest.raises(amqp.ConnectionClosedError):
            await dial(listener.url)
    assert "admit() failed, so the connection is refused" in caplog.text


async def test_last_words_never_take_long(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    began = trio.current_time()
    await send_last_octets(ours, b"go away")
    assert trio.current_time() - began == pytest.approx(1)
    assert await theirs.receive_some() == b"go away"
    await theirs.aclose()
    await send_last_octets(ours, b"once more")
