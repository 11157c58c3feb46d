"""Dialling a server of 10.3: URLs, TLS, logins, and peers of another protocol."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.amqp10.peer.authority import believing, serving
from trio_amqp10 import amqp_10_3, sasl
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError, SecurityError

from .linked import SECONDS, channelled, connected, with_queue


async def test_what_cannot_be_written_is_refused_here() -> None:
    async with channelled() as channel:
        with pytest.raises(LocalProtocolError):
            await channel.publish("", "q", b"one", headers={"x-hyphen": "no"})
        with pytest.raises(LocalProtocolError):
            await channel.declare_queue("other", arguments={"x-max-length": 1})
        with pytest.raises(LocalProtocolError, match="prefetch"):
            channel.queue("q").consume(prefetch=0)
        async with channel.queue("q").consume(tag="mine"):
            with pytest.raises(LocalProtocolError, match="mine"):
                async with channel.queue("q").consume(tag="mine"):
                    pass
        assert await channel.queue("q").get() is None


async def test_client_logs_in() -> None:
    container = with_queue()
    users = sasl.Server({"ada": "secret"})
    async with connected(container, users=users, login=("ada", "secret"), connection_name="desk"):
        (peer,) = container.connected
        assert peer.identity is not None
        assert peer.identity.name == "ada"


async def test_login_that_fails_is_a_security_error(autojump_clock: trio.testing.MockClock) -> None:
    _ = autojump_clock
    with pytest.raises(BaseExceptionGroup) as caught:
        async with connected(users=sasl.Server({"ada": "secret"}), login=("ada", "wrong")):
            pass
    assert caught.group_contains(SecurityError)


async def test_another_protocol_is_told() -> None:
    ours, theirs = memory_stream_pair()
    await ours.send_all(b"AMQP\0\0\x09\1")
    with pytest.raises(RemoteProtocolError):
        async with amqp_10_3.open_connection(theirs, allow_plaintext_password=True):
            pass


@pytest.mark.parametrize("path", ["", "/", "/%2F"])
async def test_client_dials_a_url(path: str) -> None:
    container = with_queue()
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            serve = partial(container.serve, "amqp://127.0.0.1:0", dialects="all")
            (listener,) = await nursery.start(serve)
            async with (
                amqp_10_3.open_connection(f"amqp103://127.0.0.1:{listener.port}{path}") as connection,
                connection.open_channel() as channel,
            ):
                await channel.publish("", "q", b"one")
                assert await channel.queue("q").get() is not None
            nursery.cancel_scope.cancel()


async def test_client_says_a_password_over_tls() -> None:
    container = with_queue()
    users = sasl.Server({"ada": "secret"})
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            serve = partial(
                container.serve,
                "amqps://127.0.0.1:0",
                dialects=["10.3"],
                ssl_context=serving(),
                sasl=users,
            )
            (listener,) = await nursery.start(serve)
            url = f"amqp103s://ada:secret@127.0.0.1:{listener.port}"
            with pytest.raises(SecurityError):
                async with amqp_10_3.open_connection(url):
                    pass
            async with amqp_10_3.open_connection(url, ssl_context=believing()):
                (peer,) = container.connected
                assert peer.identity is not None
            nursery.cancel_scope.cancel()


def test_url_of_another_protocol_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="amqp103://"):
        amqp_10_3.open_connection("amqp091://h")
    with pytest.raises(LocalProtocolError, match="use amqp103s://"):
        amqp_10_3.open_connection("amqp+tls://h")
    with pytest.raises(LocalProtocolError, match="no URL"):
        amqp_10_3.open_connection([])
