"""Each client names the place that it could not dial, the user, and what to do."""

from __future__ import annotations

import ssl
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast

from .protocols import PROTOCOLS

CLIENTS: dict[str, tuple[str, Any]] = {
    "1.0": ("amqp", amqp.open_connection),
    "0-9-1": ("amqp091", amqp091.open_connection),
    "10.3": ("amqp103", amqp_10_3.open_connection),
    "amqp-fast": ("amqp-fast", amqp_fast.open_connection),
}


async def failure_of(opening: Any) -> Exception:
    with pytest.raises(amqp.AmqpError) as failed:
        async with opening:
            pytest.fail("it is open")
    return failed.value


@pytest.mark.parametrize("protocol", CLIENTS)
async def test_wrong_password_names_place_and_user_and_no_password(protocol: str) -> None:
    scheme, open_connection = CLIENTS[protocol]
    users = amqp.sasl.Server(users={"bob": "enigma"})
    serve = partial(amqp.Container("shop").serve, "amqp://127.0.0.1:0", dialects="all", sasl=users)
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(serve)
        place = f"127.0.0.1:{listener.port}"
        failure = await failure_of(open_connection(f"{scheme}://bob:a-secret@{place}"))
        nursery.cancel_scope.cancel()
    assert isinstance(failure, amqp.SecurityError)
    assert str(failure).startswith(f"{place}: ")
    assert "user 'bob'" in str(failure)
    assert "a-secret" not in str(failure)


@pytest.mark.parametrize("protocol", CLIENTS)
async def test_tls_to_a_port_without_it_names_the_place_and_what_to_do(protocol: str) -> None:
    scheme, open_connection = CLIENTS[protocol]
    async with trio.open_nursery() as nursery:
        serve = partial(amqp.Container("shop").serve, "amqp://127.0.0.1:0", dialects="all")
        [listener] = await nursery.start(serve)
        place = f"127.0.0.1:{listener.port}"
        context = ssl.create_default_context()
        failure = await failure_of(open_connection(f"{scheme}s://{place}", ssl_context=context))
        nursery.cancel_scope.cancel()
    assert str(failure).startswith(f"{place}: the input from the peer is not TLS (")
    assert str(failure).endswith("; use a scheme without TLS, such as amqp://, if that port has none")


@pytest.mark.parametrize("protocol", CLIENTS)
async def test_silent_program_is_named_and_suspected(
    protocol: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    scheme, open_connection = CLIENTS[protocol]
    ours, _theirs = memory_stream_pair()

    async def connect(_url: Any) -> trio.abc.Stream:
        return ours

    monkeypatch.setattr("trio_amqp10.net.dialling_base.connect", connect)
    failure = await failure_of(open_connection(f"{scheme}://broker.example:8000"))
    assert str(failure).startswith("broker.example:8000: ")
    assert str(failure).endswith("; the program there may not be a server of AMQP")


@pytest.mark.parametrize("protocol", CLIENTS)
async def test_stream_of_the_program_has_no_place(protocol: str, autojump_clock: MockClock) -> None:
    ours, _theirs = memory_stream_pair()
    failure = await failure_of(CLIENTS[protocol][1](ours))
    assert str(failure).startswith("the connection ")


def test_every_client_fails_to_dial_here() -> None:
    assert PROTOCOLS.keys() - CLIENTS.keys() == {"1.0-draft-2010"}  # it has the client of 1.0
