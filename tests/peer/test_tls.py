"""TLS: contexts that are refused, handshakes that fail and what each side says of it, and how it ends."""

from __future__ import annotations

import shutil
import ssl
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, check_half_closeable_stream, lockstep_stream_pair, memory_stream_pair

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame, header
from trio_amqp10 import tls
from trio_amqp10.net.tls_stream import TlsStream, start_tls
from trio_amqp10.net.transport_layers import AcceptedLayers

from .authority import authority, believing, serving
from .helpers import Node, acceptor, idle, listening, never

if TYPE_CHECKING:
    from pathlib import Path

SCHEMES = ["amqps", "amqp+tls"]
CA = str(authority().cafile)


async def dial(where: Any, **options: Any) -> None:
    async with amqp.open_connection(where, **options):
        pass


def url(scheme: str = "amqps", host: str = "127.0.0.1", port: int = 0) -> str:
    return f"{scheme}://{host}:{port}"


# -- contexts -------------------------------------------------------------------------------


def test_contexts_are_modern_and_verify() -> None:
    client, server = believing(), serving()
    for context in (client, server):
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
        assert context.options & ssl.OP_NO_RENEGOTIATION
    assert (client.verify_mode, client.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert server.num_tickets == 0
    assert server.options & ssl.OP_NO_TICKET


def test_cafile_takes_the_place_of_the_authorities_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority("system").cafile))
    assert [names(each) for each in tls.client_context().get_ca_certs()] == ["system"]
    assert [names(each) for each in believing().get_ca_certs()] == ["believed"]


def names(certificate: dict[str, Any]) -> str:
    return str(dict(row[0] for row in certificate["subject"])["organizationName"])


def unchecked(context: ssl.SSLContext) -> None:
    context.check_hostname = False


def unverified(context: ssl.SSLContext) -> None:
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE


def old(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED


def anonymous(context: ssl.SSLContext) -> None:
    context.set_ciphers("ADH-AES256-GCM-SHA384:@SECLEVEL=0")


def unencrypted(context: ssl.SSLContext) -> None:
    context.set_ciphers("ECDHE-RSA-NULL-SHA:@SECLEVEL=0")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (unchecked, "does not verify host names"),
        (unverified, "does not verify certificates"),
        (old, "set minimum_version to TLSVersion.TLSv1_2"),
        (anonymous, "takes the cipher ADH-AES256-GCM-SHA384"),
        (unencrypted, "takes the cipher ECDHE-RSA-NULL-SHA"),
    ],
)
def test_row_06_context_that_is_not_safe_is_refused(spoil: Any, said: str) -> None:
    context = believing()
    spoil(context)
    with pytest.raises(amqp.LocalProtocolError, match=said):
        amqp.open_connection("amqps://h", ssl_context=context)


async def test_row_06_context_of_a_listener_that_is_not_safe_is_refused() -> None:
    for spoil, said in ((old, "TLSv1_2"), (anonymous, "ADH-AES256"), (unencrypted, "NULL")):
        context = serving()
        spoil(context)
        with pytest.raises(amqp.LocalProtocolError, match=said):
            await amqp.serve(idle, url(), ssl_context=context)
    with pytest.raises(amqp.LocalProtocolError, match="is a client's"):
        await amqp.serve(idle, url(), ssl_context=believing())


async def test_listener_switches_renegotiation_off_in_a_context_of_somebody_elses() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority().issue().file)
    assert not context.options & ssl.OP_NO_RENEGOTIATION
    async with listening(idle, url(), ssl_context=context) as [listener]:
        assert context.options & ssl.OP_NO_RENEGOTIATION
        await dial(listener.url, cafile=CA)


@pytest.mark.parametrize(
    ("where", "options", "said"),
    [
        ("amqp://h", {"cafile": "x"}, "amqp://h:5672 has no TLS"),
        ("amqp://h", {"ssl_context": believing()}, "amqp://h:5672 has no TLS"),
        ("amqp://h", {"insecure": True}, "has no TLS"),
        ("amqp://h", {"certfile": "x"}, "has no TLS"),
        ("amqpws://h", {"server_hostname": "x"}, "has no TLS"),
        ("amqps://h", {"layers": []}, "would take the TLS out"),
        ("amqps://h", {"ssl_context": believing(), "cafile": "x"}, "either ssl_context or cafile"),
        ("amqps://h", {"ssl_context": believing(), "certfile": "x"}, "either ssl_context or certfile"),
        ("amqps://h", {"keyfile": "x"}, "keyfile needs certfile"),
        ("amqps://h", {"insecure": True, "cafile": "x"}, "insecure=True would not look at cafile"),
        ("amqp+unix:///s", {"layers": ["tls"]}, "server_hostname='...'"),
        ("amqp://h", {"layers": ["websocket", "tls"]}, "in this order"),
        ("amqp://h", {"layers": ["tls", "tls"]}, "each at most once"),
        ("amqp://h", {"layers": ["ssl"]}, "of 'tls', 'websocket' and 'in-band-tls'"),
    ],
)
def test_dialling_refuses_options_that_make_no_sense(where: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=said):
        amqp.open_connection(where, **options)


async def test_dialling_refuses_tls_without_a_name_on_a_stream() -> None:
    ours, _ = memory_stream_pair()
    with pytest.raises(amqp.LocalProtocolError, match="has no TLS"):
        amqp.open_connection(ours, cafile=CA)
    with pytest.raises(amqp.LocalProtocolError, match="server_hostname"):
        amqp.open_connection(ours, layers=["tls"])


@pytest.mark.parametrize("scheme", [*SCHEMES, "amqpwss"])
async def test_listener_needs_a_certificate(scheme: str) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=r"needs a certificate: serve\(\.\.\., ssl_context="):
        await amqp.serve(idle, url(scheme))
    with pytest.raises(amqp.LocalProtocolError, match="take the TLS out"):
        await amqp.serve(idle, url(scheme), ssl_context=serving(), layers=())


def test_contexts_raise_when_a_file_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        tls.client_context(tmp_path / "none")
    with pytest.raises(OSError, match="No such file"):
        tls.server_context(tmp_path / "none")
    with pytest.raises(amqp.LocalProtocolError, match="would not look at cafile"):
        tls.client_context(CA, insecure=True)


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
        "does not hold: certificate has expired; a new one",
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
        "a peer at 127.0.0.1 came no further than the handshake: the peer refused our side" in record.message
    )
    assert logged in record.message


async def test_row_06_old_version_is_refused() -> None:
    context = believing()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    modern = serving()
    modern.minimum_version = ssl.TLSVersion.TLSv1_3
    async with listening(never, url(), ssl_context=modern) as [listener]:
        with pytest.raises(
            amqp.SecurityError, match=r"refused our side of the TLS handshake: .*protocol version"
        ):
            await dial(listener.url, ssl_context=context)


@pytest.mark.parametrize("ours", [None, "foreign"])
async def test_client_certificate_that_is_missing_or_foreign_is_refused(
    ours: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    certfile = None if ours is None else authority(ours).issue(common_name="ann").file
    async with listening(never, url(), ssl_context=serving(clients="clients")) as [listener]:
        with pytest.raises(amqp.SecurityError, match="the peer refused our side of the TLS handshake"):
            await dial(listener.url, cafile=CA, certfile=certfile)
    assert (
        "the client's certificate does not hold" if ours else "did not return a certificate"
    ) in caplog.text


async def test_insecure_takes_any_certificate() -> None:
    theirs = authority("foreign").issue("other.example")
    async with listening(idle, url(), ssl_context=tls.server_context(theirs.file)) as [listener]:
        await dial(listener.url, insecure=True)


async def test_insecure_gives_no_password_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.peer.dialling.is_private", lambda _: False)
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


# -- what is not TLS ------------------------------------------------------------------------


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
        (b"\x15\x03\x03\x00\x02\x02\x28", amqp.SecurityError, "refused our side"),
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
        with pytest.raises(amqp.SecurityError, match="what reached it is not what we sent"):
            await start_tls(theirs, believing(), server_hostname="localhost")
    assert "came no further than the handshake: what the peer sent is not TLS" in caplog.text


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
    assert "came no further than the handshake" in caplog.text


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


async def test_reload_gives_new_connections_the_new_certificate_and_keeps_the_old_ones(
    tmp_path: Path,
) -> None:
    certfile = tmp_path / "certificate.pem"
    first, second = authority().issue("127.0.0.1"), authority("next").issue("127.0.0.1")
    shutil.copy(first.file, certfile)
    context = tls.server_context(certfile)
    node = Node()
    async with (
        listening(node.handle, url(), ssl_context=context) as [listener],
        amqp.open_connection(listener.url, cafile=CA) as old_one,
        old_one.open_sender("q") as sender,
    ):
        shutil.copy(second.file, certfile)
        context.reload()
        assert context.certificate == second.der
        async with amqp.open_connection(listener.url, cafile=authority("next").cafile):
            await sender.send("still here")
        with pytest.raises(amqp.SecurityError):
            await dial(listener.url, cafile=CA)
    assert node.got == ["still here"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_reload_has_new_clients_verified_by_the_new_authorities_and_keeps_the_old_ones(
    version: ssl.TLSVersion, tmp_path: Path
) -> None:
    certfile, cafile = tmp_path / "certificate.pem", tmp_path / "clients.pem"
    first, second = authority().issue("127.0.0.1"), authority("next").issue("127.0.0.1")
    shutil.copy(first.file, certfile)
    shutil.copy(authority("clients").cafile, cafile)
    context = tls.server_context(certfile, client_cafile=cafile)
    node = Node()

    def known(believed: str, client: str) -> dict[str, Any]:
        ours = tls.client_context(
            authority(believed).cafile,
            certfile=authority(client).issue("ann.example", common_name="ann").file,
        )
        ours.maximum_version = version
        return {"ssl_context": ours}

    async with (
        listening(node.handle, url(), ssl_context=context) as [listener],
        amqp.open_connection(listener.url, **known("believed", "clients")) as old_one,
        old_one.open_sender("q") as sender,
    ):
        shutil.copy(second.file, certfile)
        shutil.copy(authority("new clients").cafile, cafile)
        context.reload()
        await dial(listener.url, **known("next", "new clients"))
        with pytest.raises((amqp.SecurityError, amqp.ConnectionClosedError)):
            await dial(listener.url, **known("next", "clients"))
        await sender.send("still here")
        cafile.write_text("not a certificate\n")
        with pytest.raises(ssl.SSLError):
            context.reload()
        await dial(listener.url, **known("next", "new clients"))
        context.load_verify_locations(authority("clients").cafile)
        context.load_cert_chain(first.file)
        await dial(listener.url, **known("believed", "clients"))
    assert node.got == ["still here"]


async def test_reload_leaves_it_to_a_callback_which_context_a_name_has(tmp_path: Path) -> None:
    elsewhere = tls.server_context(authority("next").issue("127.0.0.1", "localhost").file)
    context = tls.server_context(
        authority().issue("127.0.0.1").file, client_cafile=authority("clients").cafile
    )
    asked: list[str | None] = []

    def choose(tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        asked.append(name)
        tls.context = elsewhere

    context.sni_callback = choose
    context.verify_mode = ssl.CERT_OPTIONAL
    async with listening(idle, url(), ssl_context=context) as [listener]:
        context.reload()
        await dial(listener.url, cafile=authority("next").cafile, server_hostname="localhost")
    assert asked == ["localhost"]


async def test_reload_of_what_cannot_be_used_leaves_the_old_one(tmp_path: Path) -> None:
    certfile, keyfile = tmp_path / "certificate.pem", tmp_path / "key.pem"
    first, second = authority().issue("127.0.0.1"), authority("next").issue("127.0.0.1")
    shutil.copy(first.file, certfile)
    shutil.copy(first.file, keyfile)
    context = tls.server_context(certfile, keyfile)
    async with listening(idle, url(), ssl_context=context) as [listener]:
        shutil.copy(second.file, certfile)  # and its key is not there yet
        with pytest.raises(ssl.SSLError, match="mismatch"):
            context.reload()
        assert context.certificate == first.der
        await dial(listener.url, cafile=CA)
    with pytest.raises(amqp.LocalProtocolError, match="load_cert_chain"):
        tls.ServerContext(ssl.PROTOCOL_TLS_SERVER).reload()


async def test_certificate_of_a_client_tells_its_names() -> None:
    issued = authority("clients").issue("ann.example", "ann@example.org", common_name="ann")
    seen: list[tls.Certificate] = []

    def identify(certificate: tls.Certificate) -> str | None:
        seen.append(certificate)
        return certificate.common_name

    identities: list[Any] = []

    async def handle(conn: amqp.Connection) -> None:
        identities.append(conn.identity)

    sasl = amqp.sasl.Server(mechanisms=[amqp.sasl.ExternalServer(identify)])
    async with listening(handle, url(), ssl_context=serving(clients="clients"), sasl=sasl) as [listener]:
        await dial(listener.url, cafile=CA, certfile=issued.file)
    [certificate] = seen
    assert certificate.der == issued.der
    assert certificate.alternative_names("DNS") == ("ann.example",)
    assert certificate.alternative_names("email") == ("ann@example.org",)
    assert repr(certificate) == "<Certificate 'ann'>"
    assert [(one.name, one.mechanism) for one in identities] == [("ann", "EXTERNAL")]


def test_common_name_is_none_unless_there_is_exactly_one() -> None:
    cn = (("commonName", "a"),)
    assert tls.Certificate(b"", {"subject": (cn,)}).common_name == "a"
    assert tls.Certificate(b"", {"subject": (cn, cn)}).common_name is None
    assert tls.Certificate(b"", {}).common_name is None


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
