"""Streams of TLS: handshakes that fail and what each side says of it, and how they end."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, check_half_closeable_stream, lockstep_stream_pair, memory_stream_pair

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, believing, serving
from tests.amqp10.peer.certificates import CA, SCHEMES, url
from tests.amqp10.peer.dialled import dial
from tests.amqp10.peer.helpers import Node, acceptor, idle, listening, never
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame, header
from trio_amqp10 import tls
from trio_amqp10.net.tls_stream import TlsStream, start_tls
from trio_amqp10.net.transport_layers import AcceptedLayers

if TYPE_CHECKING:
    from pathlib import Path

# -- handshakes -----------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_messages_cross_tls(scheme: str) -> None:
    node = Node()
    async with (
        listening(node.handle, url(scheme), ssl_context=serving()) as [listener],
        amqp.open_connection(listener.url, cafile=CA) as conn,
        conn.open_sender("q") as sender,
    ):
        assert listener.url.startswith(f"{scheme}://")
        for size in (0, 1, 100_000, 3_000_000):
            await sender.send(bytes(size))
    assert [len(body) for body in node.got] == [0, 1, 100_000, 3_000_000]


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "expired": (
        {"expired": True},
        "is not valid: certificate has expired; a new one",
        "certificate expired",
    ),
    "foreign": ({}, "unable to get local issuer certificate; give its authority as cafile", "unknown ca"),
    "wrong name": ({}, "Hostname mismatch, certificate is not valid for 'localhost'", "alert"),
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("what", REFUSED)
async def test_row_06_certificate_that_does_not_hold_is_refused_by_both_sides_in_words(
    what: str, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    issue, said, logged = REFUSED[what]
    who = authority("foreign" if what == "foreign" else "believed")
    theirs = who.issue(*(["other.example"] if what == "wrong name" else ["localhost"]), **issue)
    async with listening(never, url(scheme), ssl_context=tls.server_context(theirs.file)) as [listener]:
        with pytest.raises(amqp.SecurityError, match=said):
            await dial(listener.url.replace("127.0.0.1", "localhost"), cafile=CA)
        await trio.testing.wait_all_tasks_blocked(0.05)
    [record] = [each for each in caplog.records if each.name == "trio_amqp10.listen"]
    assert record.levelname == "INFO"
    assert (
        "a peer at 127.0.0.1 did not complete the handshake: the peer refused the TLS handshake of this side"
        in record.message
    )
    assert logged in record.message


async def test_row_06_old_version_is_refused() -> None:
    context = believing()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    modern = serving()
    modern.minimum_version = ssl.TLSVersion.TLSv1_3
    async with listening(never, url(), ssl_context=modern) as [listener]:
        with pytest.raises(
            amqp.SecurityError, match=r"refused the TLS handshake of this side: .*protocol version"
        ):
            await dial(listener.url, ssl_context=context)


@pytest.mark.parametrize("ours", [None, "foreign"])
async def test_client_certificate_that_is_missing_or_foreign_is_refused(
    ours: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    certfile = None if ours is None else authority(ours).issue(common_name="ann").file
    async with listening(never, url(), ssl_context=serving(clients="clients")) as [listener]:
        with pytest.raises(amqp.SecurityError, match="the peer refused the TLS handshake of this side"):
            await dial(listener.url, cafile=CA, certfile=certfile)
    assert (
        "the client's certificate is not valid" if ours else "did not return a certificate"
    ) in caplog.text


async def test_insecure_takes_any_certificate() -> None:
    theirs = authority("foreign").issue("other.example")
    async with listening(idle, url(), ssl_context=tls.server_context(theirs.file)) as [listener]:
        await dial(listener.url, insecure=True)


async def test_insecure_gives_no_password_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.net.dialling_base.is_private", lambda _: False)
    theirs = authority("foreign").issue("other.example")
    plain = amqp.sasl.Plain("ann", "s3cret")
    users = amqp.sasl.Server({"ann": "s3cret"})
    async with listening(idle, url(), ssl_context=tls.server_context(theirs.file), sasl=users) as [listener]:
        with pytest.raises(amqp.SecurityError, match="allow_plaintext_password"):
            await dial(listener.url, insecure=True, sasl=plain)
        await dial(listener.url, insecure=True, sasl=plain, allow_plaintext_password=True)


async def test_name_that_is_meant_may_be_another_than_the_one_that_is_dialled() -> None:
    seen: list[str | None] = []
    context = tls.server_context(authority().issue("orders.example").file)
    context.sni_callback = lambda stream, name, _: seen.append(name)
    async with listening(idle, url(), ssl_context=context) as [listener]:
        await dial(listener.url, cafile=CA, server_hostname="orders.example")
        with pytest.raises(amqp.SecurityError, match="IP address mismatch"):
            await dial(listener.url, cafile=CA)
        with pytest.raises(amqp.SecurityError, match="Hostname mismatch"):
            await dial(listener.url.replace("127.0.0.1", "localhost"), cafile=CA)
    assert seen == ["orders.example", None, "localhost"]


async def test_tls_goes_over_any_stream(tmp_path: Path) -> None:
    unix = f"amqp+unix://{tmp_path}/s"
    layers = ["tls", "websocket", "in-band-tls"]
    options: dict[str, Any] = {"cafile": CA, "server_hostname": "localhost", "layers": layers}
    async with listening(idle, unix, ssl_context=serving(), layers=layers) as [listener]:
        await dial(listener.url, **options)
    ours, theirs = memory_stream_pair()
    entrance = AcceptedLayers(stacks=frozenset({tuple(layers)}), context=serving())  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(entrance=entrance).run, theirs, idle)
        await dial(ours, **options)


# -- time ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [("tls",), ("in-band-tls",)])
@pytest.mark.parametrize("said", [b"", b"AMQP\x02\x01", header("tls"), b"\x16\x03\x01\x02"])
async def test_row_05_silence_before_or_during_the_handshake_is_ended(
    layers: Any, said: bytes, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    ours, theirs = memory_stream_pair()
    entrance = AcceptedLayers(stacks=frozenset({layers}), context=serving(), seconds=5, header_seconds=5)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(entrance=entrance).run, ours, never)
        await theirs.send_all(said) if said else None
        while await theirs.receive_some(1000):
            pass
    assert trio.current_time() - began <= 11
    assert "did not complete the handshake" in caplog.text


@pytest.mark.parametrize("layers", [["tls"], ["in-band-tls"], ["websocket"]])
async def test_row_05_dialler_gives_up_a_peer_that_says_nothing(
    layers: Any, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    options = {} if layers == ["websocket"] else {"cafile": CA, "server_hostname": "localhost"}
    began = trio.current_time()
    with pytest.raises(amqp.ConnectionClosedError, match=r"took too long, during the .* handshake"):
        await dial(ours, layers=layers, **options)
    assert trio.current_time() - began == pytest.approx(5)
    while await theirs.receive_some(1000):
        pass


async def test_row_05_time_of_all_layers_together_has_one_end(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    entrance = AcceptedLayers(stacks=frozenset({("tls", "websocket")}), context=serving(), seconds=None)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(entrance=entrance).run, ours, never)
        inside = await start_tls(theirs, believing(), server_hostname="localhost")
        with pytest.raises(trio.BrokenResourceError, match="cut off without close_notify"):
            await inside.receive_some(1)
    assert trio.current_time() - began == pytest.approx(10)


# -- the end --------------------------------------------------------------------------------


async def test_row_07_end_without_close_notify_is_no_clean_end(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()

    async def serve() -> None:
        peer = ScriptedPeer(await start_tls(theirs, serving(), server_side=True))
        await peer.accept_open()
        await peer.accept_begin()
        await theirs.send_eof()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with amqp.open_connection(ours, layers=["tls"], cafile=CA, server_hostname="localhost") as conn:
            with pytest.raises(amqp.ConnectionClosedError, match="cut off without close_notify"):
                await conn.wait_closed()


async def test_end_without_close_notify_is_no_error_when_the_peer_has_said_close(
    autojump_clock: MockClock,
) -> None:
    ours, theirs = memory_stream_pair()

    async def serve() -> None:
        peer = ScriptedPeer(await start_tls(theirs, serving(), server_side=True))
        await peer.accept_open()
        await peer.accept_begin()
        await peer.send(frame("close"))
        await theirs.send_eof()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with amqp.open_connection(ours, layers=["tls"], cafile=CA, server_hostname="localhost") as conn:
            await conn.wait_closed()


async def test_close_is_told_inside_tls(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()

    async def serve() -> None:
        inside = await start_tls(theirs, serving(), server_side=True)
        peer = ScriptedPeer(inside)
        await peer.accept_open()
        await peer.accept_begin()
        await peer.accept_close()
        assert await inside.receive_some(1) == b""  # close_notify, or it would raise

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await dial(ours, layers=["tls"], cafile=CA, server_hostname="localhost")


async def test_close_never_waits_for_a_peer_that_reads_nothing(autojump_clock: MockClock) -> None:
    ours, theirs = lockstep_stream_pair()
    began = 0.0

    async def serve() -> None:
        peer = ScriptedPeer(await start_tls(theirs, serving(), server_side=True))
        await peer.accept_open()
        await peer.accept_begin()
        await trio.sleep(1000)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with amqp.open_connection(ours, layers=["tls"], cafile=CA, server_hostname="localhost"):
            began = trio.current_time()
        assert trio.current_time() - began < 8
        nursery.cancel_scope.cancel()


async def test_dialling_leaves_nothing_open_when_it_is_cancelled_during_the_handshake() -> None:
    ours, theirs = memory_stream_pair()
    with trio.move_on_after(0.01) as scope:
        await dial(ours, layers=["tls"], cafile=CA, server_hostname="localhost")
    assert scope.cancelled_caught
    while await theirs.receive_some(1000):
        pass


async def test_tls_is_a_stream_as_trio_has_them() -> None:
    context, believed = serving(), believing()

    async def pair() -> tuple[TlsStream, TlsStream]:
        ours, theirs = memory_stream_pair()
        made: list[TlsStream] = []

        async def accept() -> None:
            made.append(await start_tls(theirs, context, server_side=True))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            first = await start_tls(ours, believed, server_hostname="localhost")
        return first, made[0]

    await check_half_closeable_stream(pair, None)


# -- certificates ---------------------------------------------------------------------------


async def test_optional_certificate_is_looked_at_when_it_is_there() -> None:
    identities: list[Any] = []

    async def handle(conn: amqp.Connection) -> None:
        identities.append(conn.identity.mechanism)

    sasl = amqp.sasl.Server(
        mechanisms=[amqp.sasl.ExternalServer(lambda one: one.common_name)], users=None, anonymous=True
    )
    context = serving(clients="clients", required=False)
    async with listening(handle, url(), ssl_context=context, sasl=sasl) as [listener]:
        await dial(listener.url, cafile=CA)
        await dial(listener.url, cafile=CA, certfile=authority("clients").issue(common_name="ann").file)
    assert identities == ["ANONYMOUS", "EXTERNAL"]


async def test_certificate_chosen_by_name_is_the_one_that_exchanges_are_bound_to() -> None:
    other = tls.server_context(authority().issue("other.example").file)
    context = serving()

    def choose(stream: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if name == "other.example":
            stream.context = other

    context.sni_callback = choose
    mechanisms: list[str] = []

    async def handle(conn: amqp.Connection) -> None:
        mechanisms.append(conn.identity.mechanism)

    users = amqp.sasl.Server({"ann": "s3cret"})
    async with listening(handle, url(), ssl_context=context, sasl=users) as [listener]:
        for name in ("localhost", "other.example"):
            await dial(listener.url.replace("://", "://ann:s3cret@"), cafile=CA, server_hostname=name)
    assert mechanisms == ["SCRAM-SHA-512-PLUS"] * 2
