"""TLS by protocol header: which answers begin a handshake, and which end the dialling (5.2)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import believing, serving
from tests.amqp10.peer.certificates import CA, url
from tests.amqp10.peer.dialled import dial
from tests.amqp10.peer.helpers import acceptor, idle, listening, never
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame, header
from trio_amqp10.net.tls_stream import start_tls
from trio_amqp10.net.transport_layers import AcceptedLayers


@pytest.mark.parametrize(
    ("octets", "error", "said"),
    [
        (header(), amqp.sasl.SecurityDowngradeError, "continue with AMQP in the clear"),
        (header("sasl"), amqp.sasl.SecurityDowngradeError, "continue with SASL in the clear"),
        (b"HTTP/1.1 400\r\n", amqp.RemoteProtocolError, "expected an AMQP 1.0 protocol header"),
        (header("tls") + header() + frame("open", container_id="x"), amqp.SecurityError, "is not TLS"),
        (b"", amqp.ConnectionClosedError, "ended the transport before its protocol header"),
        (header("tls"), amqp.ConnectionClosedError, "ended the transport during the TLS handshake"),
    ],
)
async def test_row_03_answer_that_is_less_than_tls_ends_the_dialling(
    octets: bytes, error: Any, said: str, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(octets)
    await theirs.send_eof()
    with pytest.raises(error, match=said):
        await dial(ours, layers=["in-band-tls"], cafile=CA, server_hostname="localhost")
    sent = bytes(await theirs.receive_some(100_000))
    assert sent.startswith(header("tls"))
    assert b"AMQP" not in sent[8:]


@pytest.mark.parametrize("delay", [0, 1.5])
@pytest.mark.parametrize("answer", [b"", header("tls")[:3], header("tls")])
async def test_handshake_begins_when_no_header_answers_ours(
    answer: bytes, delay: float, autojump_clock: MockClock
) -> None:
    """A listener that takes our header and waits for the handshake, and answers late, in part, or not at all."""
    ours, theirs = memory_stream_pair()

    async def listen() -> None:
        assert bytes(await theirs.receive_some(8)) == header("tls")
        hello = bytes(await theirs.receive_some(1))
        assert hello == b"\x16"
        assert trio.current_time() - began >= 1
        await trio.sleep(delay)
        await theirs.send_all(answer)
        if len(answer) == 3:
            await trio.sleep(delay)
            await theirs.send_all(header("tls")[3:])
        secured = await start_tls(theirs, serving(), server_side=True, head=hello)
        await acceptor().run(secured, idle)

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await dial(ours, layers=["in-band-tls"], cafile=CA, server_hostname="localhost")


@pytest.mark.parametrize(
    ("octets", "error", "said"),
    [
        (header(), amqp.sasl.SecurityDowngradeError, "continue with AMQP in the clear"),
        (b"HTTP/1.1 400", amqp.RemoteProtocolError, "expected an AMQP 1.0 protocol header"),
        (b"\x15\x03\x03\x00\x02\x02\x28", amqp.SecurityError, "refused the TLS handshake of this side"),
        (b"", amqp.ConnectionClosedError, "ended the transport"),
    ],
)
async def test_late_answer_that_is_less_than_tls_ends_the_dialling(
    octets: bytes, error: Any, said: str, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()

    async def listen() -> None:
        await trio.sleep(2)
        await theirs.send_all(octets)
        await theirs.send_eof()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        with pytest.raises(error, match=said):
            await dial(ours, layers=["in-band-tls"], cafile=CA, server_hostname="localhost")
    sent = bytes(await theirs.receive_some(100_000))
    assert sent.startswith(header("tls") + b"\x16")
    assert b"AMQP" not in sent[8:]


async def test_handshake_does_not_begin_when_the_answer_asks_for_less(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(header("sasl"))
    with pytest.raises(amqp.sasl.SecurityDowngradeError):
        await dial(ours, layers=["in-band-tls"], cafile=CA, server_hostname="localhost")
    assert bytes(await theirs.receive_some(100_000)) == header("tls")


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (header("sasl"), "is not TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not TLS"),
        (b"", "ended the transport during the TLS handshake"),
    ],
)
async def test_row_06_plain_answer_to_a_tls_hello_ends_the_dialling(
    octets: bytes, said: str, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(octets)
    await theirs.send_eof()
    with pytest.raises(amqp.AmqpError, match=said):
        await dial(ours, layers=["tls"], cafile=CA, server_hostname="localhost")
    sent = bytes(await theirs.receive_some(100_000))
    assert sent[0] == 0x16
    assert b"AMQP" not in sent


@pytest.mark.parametrize("injected", [b"\0", header(), header("sasl"), frame("open", container_id="x")])
async def test_row_04_octets_before_the_switch_to_tls_never_cross_it(
    injected: bytes, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    caplog.set_level("INFO")
    ours, theirs = memory_stream_pair()
    entrance = AcceptedLayers(stacks=frozenset({("in-band-tls",)}), context=serving())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(entrance=entrance).run, ours, never)
        await theirs.send_all(header("tls") + injected)
        peer = ScriptedPeer(theirs)
        await peer.expect_header("tls")
        with pytest.raises(amqp.SecurityError, match="it received other octets than this side sent"):
            await start_tls(theirs, believing(), server_hostname="localhost")
    assert "did not complete the handshake: the input from the peer is not TLS" in caplog.text


@pytest.mark.parametrize("name", ["amqp", "sasl"])
async def test_row_02_weaker_header_is_shown_that_of_tls(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with (
        listening(never, url("amqp+tls"), ssl_context=serving()) as [listener],
        await trio.open_tcp_stream("127.0.0.1", listener.port) as stream,
    ):
        peer = ScriptedPeer(stream)
        await peer.send(header(name), frame("open", container_id="x"))
        await peer.expect_header("tls")
        await peer.expect_eof()
    assert "and this listener requires TLS" in caplog.text


@pytest.mark.parametrize("octets", [b"GET / HTTP/1.1\r\n", b"AMQP\0\0\x09\x01", b"\x16\x03\x01"])
async def test_row_01_stranger_is_shown_the_header_of_tls_where_that_is_taken(octets: bytes) -> None:
    async with (
        listening(never, url("amqp+tls"), ssl_context=serving()) as [listener],
        await trio.open_tcp_stream("127.0.0.1", listener.port) as stream,
    ):
        peer = ScriptedPeer(stream)
        await peer.send(octets)
        await peer.expect_header("tls")
        await peer.expect_eof()


async def test_row_03_dialler_without_tls_is_told_that_the_peer_insists_on_it() -> None:
    async with listening(never, url("amqp+tls"), ssl_context=serving()) as [listener]:
        for sasl in (None, False):
            with pytest.raises(amqp.SecurityError, match="accepts no connection without TLS"):
                await dial(listener.url.replace("amqp+tls", "amqp"), sasl=sasl)
