"""Dialling: what it says when nobody, or somebody strange, answers; and SASL on the way in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from tests.naive.performatives import frame, header

from .dialled import USERS, dial, somebody_listens
from .helpers import acceptor, idle, listening, never, served

if TYPE_CHECKING:
    from pathlib import Path

    from trio_amqp10.amqp10.peer.connection import Connection


def with_user(url: str, user: str) -> str:
    return url.replace("://", f"://{user}@")


async def test_dialling_reaches_a_listener_over_tcp_and_unix(tmp_path: Path) -> None:
    unix = f"amqp+unix://{tmp_path}/s"
    async with listening(idle, "amqp://127.0.0.1:0", "amqp://[::1]:0", unix) as listeners:
        assert [listener.port > 0 for listener in listeners] == [True, True, False]
        for listener in listeners:
            async with amqp.open_connection(listener.url) as conn:
                assert conn.remote.container_id


async def test_dialling_raises_os_error_when_nobody_answers(tmp_path: Path) -> None:
    [unused] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = unused.socket.getsockname()[1]
    await unused.aclose()
    with pytest.raises(OSError, match="connect"):
        await dial(f"amqp://127.0.0.1:{port}")
    with pytest.raises(OSError, match="No such file"):
        await dial(f"amqp+unix://{tmp_path}/none")


async def test_dialling_gives_up_a_peer_that_says_nothing(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    began = trio.current_time()
    with pytest.raises(amqp.ConnectionClosedError, match="took too long, before its"):
        await dial(ours)
    assert trio.current_time() - began <= 11
    await theirs.aclose()


@pytest.mark.parametrize(
    ("octets", "condition"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "amqp:connection:framing-error"),
        (b"AMQP\0\0\x09\x01", "amqp:connection:framing-error"),
        (b"AMQP\x00\x02\x00\x00", "amqp:connection:framing-error"),
        (header() + b"\0\0\0\x01", "amqp:connection:framing-error"),
        (header() + frame("open", container_id="x", max_frame_size=100), "amqp:invalid-field"),
        (header() + frame("open", container_id="x", idle_time_out=1), "amqp:not-allowed"),
    ],
)
async def test_dialling_raises_what_is_wrong_with_the_answer(
    octets: bytes, condition: str, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(octets)
    with pytest.raises(amqp.RemoteProtocolError) as caught:
        await dial(ours)
    assert caught.value.condition == condition
    await theirs.aclose()


@pytest.mark.parametrize("layer", ["sasl", "tls"])
async def test_dialling_says_which_layer_the_peer_insists_on(layer: str, autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(header(layer))
    with pytest.raises(amqp.SecurityError, match=f"accepts no connection without {layer.upper()}"):
        await dial(ours)
    await theirs.aclose()


async def test_dialling_raises_a_lost_connection_when_the_peer_hangs_up(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.aclose()
    with pytest.raises(amqp.ConnectionClosedError, match="the connection was lost"):
        await dial(ours)


# -- SASL -----------------------------------------------------------------------------------


async def test_sasl_lets_in_who_has_the_password() -> None:
    identities: list[Any] = []

    async def handle(conn: Connection) -> None:
        identities.append(conn.identity)

    async with listening(handle, sasl=USERS) as [listener]:
        await dial(with_user(listener.url, "ann:s3cret"))
        await dial(listener.url, sasl=amqp.sasl.Plain("ann", "s3cret"))
        await dial(listener.url, sasl=[amqp.sasl.Anonymous(), amqp.sasl.Plain("ann", "s3cret")])
    assert [one.name for one in identities] == ["ann"] * 3
    assert [one.mechanism for one in identities] == ["SCRAM-SHA-512", "PLAIN", "PLAIN"]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("ann", ""), ("bob", "s3cret")])
async def test_sasl_says_that_the_credentials_were_refused(
    user: str, password: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_amqp10.amqp10.engine.sasl_server.FAILURE_PENALTY", 0.01)
    async with listening(never, sasl=USERS) as [listener]:
        with pytest.raises(amqp.SecurityError, match="refused the credentials") as caught:
            await dial(
                with_user(listener.url, f"{user}:{password}"),
                sasl=amqp.sasl.Plain(user, password) if plain else None,
            )
        assert ("PLAIN" if plain else "SCRAM-SHA-512") in str(caught.value)
        assert "s3cret" not in str(caught.value)
        assert isinstance(caught.value, amqp.sasl.AuthenticationError)


async def test_sasl_says_what_the_service_offers_when_nothing_of_it_will_do() -> None:
    async with listening(never, sasl=USERS) as [listener]:
        with pytest.raises(
            amqp.SecurityError, match=r"the server offers SCRAM.*PLAIN; acceptable here: ANONYMOUS"
        ):
            await dial(listener.url)


async def test_sasl_is_needed_when_there_are_users() -> None:
    async with listening(never, sasl=USERS) as [listener]:
        with pytest.raises(amqp.SecurityError, match="accepts no connection without SASL"):
            await dial(listener.url, sasl=False)


async def test_sasl_is_not_needed_when_there_are_no_users() -> None:
    async with listening() as [listener]:
        await dial(listener.url, sasl=False)
        await dial(listener.url)
        with pytest.raises(amqp.SecurityError, match="ANONYMOUS"):
            await dial(with_user(listener.url, "ann:s3cret"))


async def test_sasl_is_never_left_out_when_the_peer_would_have_it_so(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(header("amqp"))
    with pytest.raises(amqp.SecurityError, match="continue without authentication"):
        await dial(ours, sasl=amqp.sasl.Plain("ann", "s3cret"))
    sent = bytes(await theirs.receive_some(1000))
    assert sent == header("sasl")


async def always(_user: str, _password: str) -> bool:
    return True


async def test_password_is_not_sent_in_the_clear_over_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.net.dialling_base.is_private", somebody_listens)
    only_plain = amqp.sasl.Server(verify=always)
    async with listening(idle, sasl=only_plain) as [listener]:
        url = with_user(listener.url, "ann:s3cret")
        with pytest.raises(amqp.SecurityError, match="the server offers PLAIN; acceptable here: SCRAM"):
            await dial(url)
        with pytest.raises(amqp.SecurityError, match="allow_plaintext_password"):
            await dial(url, sasl=amqp.sasl.Plain("ann", "s3cret"))
        await dial(url, allow_plaintext_password=True)


async def test_password_is_proved_over_a_network_without_being_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.net.dialling_base.is_private", somebody_listens)
    monkeypatch.setattr("trio_amqp10.net.accept_loop.is_private", somebody_listens)
    async with listening(idle, sasl=USERS) as [listener]:
        await dial(with_user(listener.url, "ann:s3cret"))


async def test_password_is_not_taken_in_the_clear_over_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.net.accept_loop.is_private", somebody_listens)
    plain = amqp.sasl.Plain("ann", "s3cret")
    only_plain = amqp.sasl.Server(verify=always)
    async with listening(never, sasl=only_plain) as [listener]:
        with pytest.raises((amqp.SecurityError, amqp.RemoteProtocolError)):
            await dial(listener.url, sasl=plain)
    async with listening(idle, sasl=USERS) as [listener]:
        with pytest.raises(
            amqp.SecurityError, match="the server offers SCRAM-SHA-512, SCRAM-SHA-256; acceptable"
        ):
            await dial(listener.url, sasl=plain)
    async with listening(idle, sasl=USERS, allow_plaintext_password=True) as [listener]:
        await dial(listener.url, sasl=plain)


async def test_verify_is_asked_and_may_take_its_time() -> None:
    async def verify(user: str, password: str) -> bool:
        await trio.sleep(0.01)
        return (user, password) == ("ann", "s3cret")

    async with listening(idle, sasl=amqp.sasl.Server(verify=verify)) as [listener]:
        await dial(with_user(listener.url, "ann:s3cret"))


@pytest.mark.logs_errors
async def test_verify_that_raises_is_logged_and_refuses(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    async def verify(user: str, password: str) -> bool:
        raise ValueError("the directory is down")

    accept = {"sasl": amqp.sasl.Server(verify=verify)}
    with pytest.raises(BaseException) as caught:
        async with served(never, accept=accept, sasl=amqp.sasl.Plain("ann", "s3cret")):
            pass
    assert caught.group_contains(amqp.SecurityError, match="PLAIN")
    assert "the directory is down" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("who", ["client", "service"])
async def test_cancel_during_verification_leaves_nothing(who: str, autojump_clock: MockClock) -> None:
    asked = trio.Event()
    state = ""

    async def verify(user: str, password: str) -> bool:
        nonlocal state
        asked.set()
        try:
            await trio.sleep_forever()
        finally:
            state = "cancelled"
        return True

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        ours, theirs = memory_stream_pair()
        serving = trio.CancelScope()
        dialling = trio.CancelScope()

        async def serve() -> None:
            with serving:
                await acceptor(sasl=amqp.sasl.Server(verify=verify)).run(theirs, never)

        async def ask() -> None:
            with dialling:
                try:
                    await dial(ours, sasl=amqp.sasl.Plain("ann", "s3cret"))
                except amqp.ConnectionClosedError:
                    assert who == "service"

        nursery.start_soon(serve)
        nursery.start_soon(ask)
        await asked.wait()
        (dialling if who == "client" else serving).cancel()
    assert state == "cancelled"
    assert trio.current_time() - began < 5


@pytest.mark.logs_errors
async def test_client_mechanism_that_asks_and_fails_ends_the_dialling(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def token() -> bytes:
        raise ValueError("no token today")

    class Asking(amqp.sasl.ClientMechanism):
        name = "ASKING"
        needs_secrecy = False

        def begin(self, context: Any) -> Any:
            return self

        def start(self) -> Any:
            return amqp.sasl.Question("a token", token)

    ours, theirs = memory_stream_pair()
    await theirs.send_all(header("sasl") + frame("sasl-mechanisms", sasl_server_mechanisms=["ASKING"]))
    with pytest.raises(amqp.SecurityError, match="no credentials: no token today"):
        await dial(ours, sasl=Asking())
    assert "a token" in caplog.text
