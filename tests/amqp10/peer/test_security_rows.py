"""Rows 3 to 16 of the reaction table over a stream, for either role: what ends a handshake, in which octets and words.

The engine's own tests have every variant; here is one of each, with the pump, the timer and the log. Rows 1 and 2
are in ``test_hostile``, 5 to 7 in ``test_tls``, 17 in ``test_listen``, 18 in ``test_memory``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import empty_frame, frame, header, raw_frame
from tests.sasl.frames import CountClient, CountServer
from trio_amqp10 import tls
from trio_amqp10.net.tls_stream import start_tls
from trio_amqp10.net.transport_layers import AcceptedLayers

from .authority import authority, believing, serving
from .helpers import acceptor, idle, never

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

PLAIN = amqp.sasl.Plain("ann", "s3cret")
SERVER = amqp.sasl.Server({"ann": "s3cret"})
OPEN = frame("open", container_id="x")
INIT = frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ann\0s3cret")
WRONG = frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ann\0wrong")
OK = frame("sasl-outcome", code=0)
OFFER = frame("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"])
CA = str(authority().cafile)


# -- those who dial us ----------------------------------------------------------------------


@asynccontextmanager
async def stranger(
    caplog: pytest.LogCaptureFixture, logged: str, sasl: amqp.sasl.Server = SERVER
) -> AsyncGenerator[ScriptedPeer]:
    """Somebody who has been offered mechanisms, and comes no further; the log says why."""
    caplog.set_level(logging.INFO, "trio_amqp10.listen")
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(sasl=sasl).run, ours, never)
        await peer.send(header("sasl"))
        await peer.expect_header("sasl")
        await peer.expect("sasl-mechanisms")
        with trio.fail_after(60):
            yield peer
            await peer.expect_eof()
    told = [each.message for each in caplog.records if each.levelno == logging.INFO]
    assert len(told) == 1
    assert told[0].startswith("a peer at this machine did not complete the handshake: ")
    assert logged in told[0]


ABORTS: dict[str, tuple[bytes, str]] = {
    "08 large": (raw_frame(b"", frame_type=1, size=8193)[:4], "8193"),
    "09 empty": (raw_frame(b"", frame_type=1), "an empty frame in the SASL layer"),
    "09 trailing octet": (raw_frame(INIT[8:] + b"\x40", frame_type=1), "1 octets follow"),
    "09 two values": (raw_frame(INIT[8:] * 2, frame_type=1), "octets follow"),
    "10 AMQP frame": (OPEN, "a frame of type 0 in the SASL layer"),
    "10 AMQP performative": (raw_frame(OPEN[8:], frame_type=1), "descriptor"),
    "11 outcome of a client": (OK, "SaslOutcome while"),
    "11 mechanisms of a client": (OFFER, "SaslMechanisms while"),
}


@pytest.mark.parametrize(
    ("octets", "logged"), [pytest.param(*case, id=f"row {name}") for name, case in ABORTS.items()]
)
async def test_row_08_to_11_listener_ends_what_cannot_be_sasl_without_a_word(
    octets: bytes, logged: str, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    async with stranger(caplog, logged) as peer:
        began = trio.current_time()
        await peer.send(octets)
        await peer.expect_eof()
        assert trio.current_time() == began


REFUSES: dict[str, bytes] = {
    "11 response first": frame("sasl-response", response=b""),
    "12 not offered": frame("sasl-init", mechanism="ANONYMOUS"),
    "14 no parts": frame("sasl-init", mechanism="PLAIN", initial_response=b"ann"),
    "14 no UTF-8": frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ann\xff\0s3cret"),
    "14 NUL": frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ann\0s3cret\0"),
    "14 long user": frame("sasl-init", mechanism="PLAIN", initial_response=b"\0" + b"u" * 256 + b"\0s3cret"),
    "14 SCRAM": frame("sasl-init", mechanism="SCRAM-SHA-256", initial_response=b"n,,n=ann"),
    "16 password": WRONG,
    "16 user": frame("sasl-init", mechanism="PLAIN", initial_response=b"\0bob\0s3cret"),
    "16 twice": WRONG + INIT,
}


@pytest.mark.parametrize("octets", REFUSES.values(), ids=[f"row {name}" for name in REFUSES])
async def test_row_11_to_16_listener_tells_every_failure_in_the_same_way_after_a_second(
    octets: bytes, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    async with stranger(caplog, "the peer failed to authenticate") as peer:
        began = trio.current_time()
        await peer.send(octets)
        got = await peer.expect("sasl-outcome", code=1)
        assert got["additional_data"] is None
        assert 1 <= trio.current_time() - began <= 1.5


async def test_row_15_listener_ends_rounds_without_end(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    endless = amqp.sasl.Server(mechanisms=[CountServer(rounds=100)])
    async with stranger(caplog, "the peer failed to authenticate", endless) as peer:
        await peer.send(frame("sasl-init", mechanism="X-COUNT"))
        for _ in range(8):
            await peer.expect("sasl-challenge")
            await peer.send(frame("sasl-response", response=b"x"))
        await peer.expect("sasl-outcome", code=1)


async def test_row_10_listener_closes_when_sasl_comes_back_later(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(sasl=SERVER).run, ours, idle)
        await peer.send(header("sasl"), INIT)
        await peer.expect_header("sasl")
        await peer.expect("sasl-mechanisms")
        await peer.expect("sasl-outcome", code=0)
        await peer.dial_open()
        await peer.send(INIT)
        got = await peer.skip_to("close")
        assert got["error"][1]["condition"] == "amqp:connection:framing-error"
        await peer.send(frame("close"))
        await peer.expect_eof()


async def test_row_07_listener_takes_an_end_without_close_notify_for_no_clean_one(
    autojump_clock: MockClock,
) -> None:
    seen: list[amqp.ConnectionClosedError] = []
    begun = trio.Event()
    ours, theirs = memory_stream_pair()

    async def handle(connection: amqp.Connection) -> None:
        begun.set()
        try:
            await connection.wait_closed()
        except amqp.ConnectionClosedError as lost:
            seen.append(lost)

    entrance = AcceptedLayers(stacks=frozenset({("tls",)}), context=serving())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(entrance=entrance).run, ours, handle)
        peer = ScriptedPeer(await start_tls(theirs, believing(), server_hostname="localhost"))
        await peer.dial_open()
        await begun.wait()
        await theirs.send_eof()
    assert len(seen) == 1
    assert "cut off without close_notify" in str(seen[0])


# -- those whom we dial ---------------------------------------------------------------------


async def dials(
    octets: bytes,
    error: type[Exception],
    said: str,
    *,
    sasl: Any = PLAIN,
    then: bytes = b"",
) -> None:
    """We dial a peer that answers with ``octets``, and with ``then`` to our init; it hears no more of us."""
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)

    async def answer() -> None:
        await peer.expect_header("sasl")
        await peer.send(octets)
        if then:
            await peer.expect("sasl-init")
            await peer.send(then)
        await peer.expect_eof()

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            with pytest.raises(error, match=said):
                async with amqp.open_connection(ours, sasl=sasl):
                    pytest.fail("this cannot be opened")


async def test_row_03_dialler_sends_nothing_to_a_peer_that_would_go_on_without_sasl(
    autojump_clock: MockClock,
) -> None:
    downgrade = amqp.sasl.SecurityDowngradeError
    await dials(header(), downgrade, "answered with protocol id 0")
    await dials(header() + OPEN, downgrade, "answered with protocol id 0")
    await dials(header("tls"), amqp.SecurityError, "accepts no connection without TLS")


ANSWERS: dict[str, tuple[bytes, str]] = {
    "08 large": (raw_frame(b"", frame_type=1, size=8193)[:4], "8193"),
    "09 empty": (raw_frame(b"", frame_type=1), "an empty frame"),
    "09 trailing octet": (raw_frame(OFFER[8:] + b"\x40", frame_type=1), "1 octets follow"),
    "10 AMQP frame": (OPEN, "a frame of type 0"),
    "10 empty AMQP frame": (empty_frame(), "a frame of type 0"),
    "10 AMQP performative": (raw_frame(OPEN[8:], frame_type=1), "descriptor"),
    "11 outcome first": (OK, "SaslOutcome while"),
    "11 init": (INIT, "SaslInit while"),
}


@pytest.mark.parametrize(
    ("octets", "said"), [pytest.param(*case, id=f"row {name}") for name, case in ANSWERS.items()]
)
async def test_row_08_to_11_dialler_ends_what_cannot_be_sasl_and_tells_no_password(
    octets: bytes, said: str, autojump_clock: MockClock
) -> None:
    await dials(header("sasl") + octets, amqp.RemoteProtocolError, said)


async def test_row_11_dialler_ends_a_list_that_comes_twice(autojump_clock: MockClock) -> None:
    await dials(header("sasl") + OFFER * 2, amqp.RemoteProtocolError, "SaslMechanisms while")


@pytest.mark.parametrize("names", [[], ["GSSAPI", "ANONYMOUS"]])
async def test_row_13_dialler_names_the_list_in_which_nothing_will_do(
    names: list[str], autojump_clock: MockClock
) -> None:
    octets = header("sasl") + frame("sasl-mechanisms", sasl_server_mechanisms=names)
    await dials(
        octets, amqp.sasl.NoAcceptableMechanismError, "GSSAPI, ANONYMOUS" if names else "offers nothing"
    )


async def test_row_12_and_16_dialler_tells_a_refusal(autojump_clock: MockClock) -> None:
    refusal = frame("sasl-outcome", code=1)
    await dials(header("sasl") + OFFER, amqp.sasl.AuthenticationError, "PLAIN, code 1", then=refusal)


async def test_row_14_dialler_believes_no_outcome_without_the_proof_that_scram_asks_for(
    autojump_clock: MockClock,
) -> None:
    offer = frame("sasl-mechanisms", sasl_server_mechanisms=["SCRAM-SHA-256"])
    scram = amqp.sasl.Scram("ann", "s3cret")
    await dials(header("sasl") + offer, amqp.SecurityError, "SCRAM-SHA-256", sasl=scram, then=OK)


async def test_row_15_dialler_gives_up_challenges_without_end(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)

    async def challenge() -> None:
        await peer.expect_header("sasl")
        await peer.send(header("sasl"), frame("sasl-mechanisms", sasl_server_mechanisms=["X-COUNT"]))
        await peer.expect("sasl-init")
        for _ in range(8):
            await peer.send(frame("sasl-challenge", challenge=b"x"))
            await peer.expect("sasl-response")
        await peer.send(frame("sasl-challenge", challenge=b"x"))
        await peer.expect_eof()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(challenge)
        with pytest.raises(amqp.RemoteProtocolError, match="more than 8 SASL challenges"):
            async with amqp.open_connection(ours, sasl=CountClient()):
                pytest.fail("this cannot be opened")


@pytest.mark.parametrize("injected", [header(), header("sasl"), bytes(5)])
async def test_row_04_dialler_takes_nothing_that_came_before_tls_for_what_came_within(
    injected: bytes, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(header("tls") + injected)
    with pytest.raises(amqp.SecurityError, match="is not TLS"):
        async with amqp.open_connection(
            ours, layers=["in-band-tls"], cafile=CA, server_hostname="localhost", sasl=PLAIN
        ):
            pytest.fail("this cannot be opened")
    sent = bytes(await theirs.receive_some(100_000))
    assert sent.startswith(header("tls"))
    assert b"s3cret" not in sent


# -- both sides ours, and something between them that goes wrong ----------------------------


class Between:
    """What stands between dialler and listener: passes octets on, after it changed them; None cuts the line."""

    def __init__(
        self,
        there: Callable[[bytes], bytes | None] = lambda octets: octets,
        back: Callable[[bytes], bytes | None] = lambda octets: octets,
    ) -> None:
        self.there = there
        self.back = back

    async def run(self, dialler: trio.abc.Stream, listener: trio.abc.Stream) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._carry, dialler, listener, self.there)
            nursery.start_soon(self._carry, listener, dialler, self.back)

    async def _carry(
        self, here: trio.abc.Stream, there: Any, change: Callable[[bytes], bytes | None]
    ) -> None:
        try:
            while octets := await here.receive_some(65_536):
                changed = change(bytes(octets))
                if changed is None:
                    await here.aclose()
                    await there.aclose()
                    return
                await there.send_all(changed)
            await there.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


def replacing(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda octets: octets.replace(old, new, 1)


def cutting_at(part: bytes) -> Callable[[bytes], bytes | None]:
    return lambda octets: None if part in octets else octets


def issued(*names: str, by: str = "believed", **options: Any) -> tls.ServerContext:
    return tls.server_context(authority(by).issue(*(names or ("localhost",)), **options).file)


TLS = ("tls",)
IN_BAND = ("in-band-tls",)
SASL, PLAINLY = header("sasl"), header()
Case = tuple[tuple[str, ...], Callable[[], tls.ServerContext], Between, str, type[Exception], str, str]

GOES_WRONG: dict[str, Case] = {
    "wrong password": (
        (), serving, Between(), "wrong",
        amqp.sasl.AuthenticationError, "SCRAM-SHA-256", "the peer failed to authenticate",
    ),
    "wrong password within TLS": (
        TLS, serving, Between(), "wrong",
        amqp.sasl.AuthenticationError, "SCRAM-SHA-256", "the peer failed to authenticate",
    ),
    "expired certificate": (
        TLS, partial(issued, expired=True), Between(), "s3cret",
        amqp.SecurityError, "certificate has expired; a new one must be installed on the server", "certificate expired",
    ),
    "foreign certificate": (
        TLS, partial(issued, by="foreign"), Between(), "s3cret",
        amqp.SecurityError, "give its authority as cafile", "unknown ca",
    ),
    "foreign certificate in band": (
        IN_BAND, partial(issued, by="foreign"), Between(), "s3cret",
        amqp.SecurityError, "give its authority as cafile", "unknown ca",
    ),
    "another host": (
        TLS, partial(issued, "other.example"), Between(), "s3cret",
        amqp.SecurityError, "certificate is not valid for 'localhost'", "refused the TLS handshake of this side",
    ),
    "octet before the switch to TLS": (
        IN_BAND, serving, Between(there=replacing(header("tls"), header("tls") + b"A")), "s3cret",
        amqp.SecurityError, "it received other octets than this side sent", "the input from the peer is not TLS",
    ),
    "weaker header than TLS": (
        IN_BAND, serving,
        Between(there=replacing(header("tls"), PLAINLY), back=replacing(header("tls"), PLAINLY)), "s3cret",
        amqp.sasl.SecurityDowngradeError, "continue with AMQP in the clear", "this listener requires TLS",
    ),
    "weaker header than SASL": (
        (), serving, Between(there=replacing(SASL, PLAINLY), back=replacing(SASL, PLAINLY)), "s3cret",
        amqp.sasl.SecurityDowngradeError, "continue without authentication", "protocol id 0 is not accepted here",
    ),
    "weaker list": (
        (), serving, Between(back=lambda octets: octets.replace(b"SCRAM-SHA", b"WORSE-SHA")), "s3cret",
        amqp.sasl.NoAcceptableMechanismError, "WORSE-SHA", "before SASL was done",
    ),
    "cut within SASL": (
        (), serving, Between(there=cutting_at(b"SCRAM")), "s3cret",
        amqp.ConnectionClosedError, "before SASL was done", "before SASL was done",
    ),
    "cut within TLS": (
        TLS, serving, Between(there=cutting_at(b"\x16\x03")), "s3cret",
        amqp.ConnectionClosedError, "during the TLS handshake", "during the TLS handshake",
    ),
    "cut within a header": (
        (), serving, Between(back=lambda octets: None), "s3cret",
        amqp.ConnectionClosedError, "before its protocol header", "before SASL was done",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", GOES_WRONG)
async def test_row_03_04_06_16_both_sides_say_what_went_wrong_and_no_connection_stays(
    what: str, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    caplog.set_level(logging.INFO, "trio_amqp10.listen")
    layers, context, between, password, error, said, logged = GOES_WRONG[what]
    entrance = AcceptedLayers(stacks=frozenset({layers}), context=context(), seconds=5, header_seconds=5)  # type: ignore[arg-type]
    options: dict[str, Any] = {"cafile": CA, "server_hostname": "localhost"} if layers else {}
    ours, near = memory_stream_pair()
    far, theirs = memory_stream_pair()
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:  # that it ends: neither side is left waiting
            nursery.start_soon(acceptor(sasl=SERVER, entrance=entrance).run, theirs, never)
            nursery.start_soon(between.run, near, far)
            with pytest.raises(error, match=said) as caught:
                async with amqp.open_connection(
                    ours, layers=layers, sasl=amqp.sasl.Scram("ann", password), **options
                ):
                    pytest.fail("this cannot be opened")
    told = [each.message for each in caplog.records if each.levelno == logging.INFO]
    assert len(told) == 1
    assert told[0].startswith("a peer at this machine did not complete the handshake: ")
    assert logged in told[0]
    assert "s3cret" not in caplog.text + str(caught.value)
    for stream in (ours, theirs):
        with pytest.raises(trio.ClosedResourceError):
            await stream.send_all(b"x")
