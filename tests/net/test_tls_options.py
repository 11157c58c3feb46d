"""Contradictory options of TLS are refused before dialling."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import believing, serving
from tests.amqp10.peer.certificates import CA, SCHEMES, url
from tests.amqp10.peer.helpers import idle


@pytest.mark.parametrize(
    ("where", "options", "message"),
    [
        ("amqp://h", {"cafile": "x"}, "amqp://h:5672 has no TLS"),
        ("amqp://h", {"ssl_context": believing()}, "amqp://h:5672 has no TLS"),
        ("amqp://h", {"insecure": True}, "has no TLS"),
        ("amqp://h", {"certfile": "x"}, "has no TLS"),
        ("amqpws://h", {"server_hostname": "x"}, "has no TLS"),
        ("amqps://h", {"layers": []}, "would take the TLS out"),
        (
            "amqps://h",
            {"ssl_context": believing(), "cafile": "x"},
            "ssl_context and cafile exclude each other",
        ),
        (
            "amqps://h",
            {"ssl_context": believing(), "certfile": "x"},
            "ssl_context and certfile exclude each other",
        ),
        ("amqps://h", {"keyfile": "x"}, "keyfile needs certfile"),
        ("amqps://h", {"insecure": True, "cafile": "x"}, "insecure=True would ignore cafile"),
        ("amqp+unix:///s", {"layers": ["tls"]}, "server_hostname='...'"),
        ("amqp://h", {"layers": ["websocket", "tls"]}, "in this order"),
        ("amqp://h", {"layers": ["tls", "tls"]}, "each at most once"),
        ("amqp://h", {"layers": ["ssl"]}, "expected 'tls', 'websocket' and 'in-band-tls'"),
    ],
)
def test_dialling_refuses_contradictory_options(where: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=message):
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
