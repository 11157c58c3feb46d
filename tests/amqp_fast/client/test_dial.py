"""Dialling a server of AMQP/Fast: URLs, TLS, and peers of another protocol."""

from __future__ import annotations

import ssl
from functools import partial

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.amqp10.peer.authority import believing, serving
from trio_amqp10 import amqp_fast, sasl
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError, SecurityError

from .linked import with_nodes


async def test_another_protocol_is_told() -> None:
    ours, theirs = memory_stream_pair()
    await ours.send_all(b"AMQP\0\1\0\0")
    with pytest.raises(RemoteProtocolError):
        async with amqp_fast.open_connection(theirs):
            pass


@pytest.mark.parametrize("path", ["", "/"])
async def test_client_dials_a_url(path: str) -> None:
    container = with_nodes()
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=["amqp-fast"])
        (listener,) = await nursery.start(serve)
        url = f"amqp-fast://127.0.0.1:{listener.port}{path}"
        async with (
            amqp_fast.open_connection(url, client_name="ada") as connection,
            connection.open_channel() as channel,
            channel.open_handle("q") as handle,
        ):
            await handle.send(b"one")
        nursery.cancel_scope.cancel()


async def test_client_says_a_password_over_tls() -> None:
    container = with_nodes()
    users = sasl.Server({"ada": "secret"})
    async with trio.open_nursery() as nursery:
        serve = partial(
            container.serve,
            "amqps://127.0.0.1:0",
            dialects=["amqp-fast"],
            ssl_context=serving(),
            sasl=users,
        )
        (listener,) = await nursery.start(serve)
        url = f"amqp-fasts://ada:secret@127.0.0.1:{listener.port}"
        with pytest.raises(SecurityError):
            async with amqp_fast.open_connection(url):
                pass
        async with (
            amqp_fast.open_connection(url, ssl_context=believing()) as connection,
            connection.open_channel() as channel,
            channel.open_handle("q") as handle,
        ):
            await handle.send(b"one")
            (peer,) = container.connected
            assert peer.identity == sasl.Identity("ada", "PLAIN")
        nursery.cancel_scope.cancel()


def test_context_without_tls_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="has no TLS"):
        amqp_fast.open_connection("amqp-fast://h", ssl_context=ssl.create_default_context())


@pytest.mark.parametrize("url", ["amqp://h", "h", "amqp-fast://h:x"])
def test_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(LocalProtocolError):
        amqp_fast.open_connection(url)


def test_port_is_that_of_the_document() -> None:
    from trio_amqp10.amqp_fast.client.dial import _parsed

    for url in ("amqp-fast://h", "amqp-fast://h/p", "amqp-fast://u:p@h", "amqp-fasts://[::1]/p"):
        assert _parsed(url).port == 3018
    assert _parsed("amqp-fast://h:7/p").port == 7
