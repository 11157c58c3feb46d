"""A client that asks to be the sole connection of its container, and reads the answer."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import acceptor
from tests.amqp10.server.sole_connections import CLOSE, PLAIN, REFUSE
from tests.naive.peer import ScriptedPeer


async def test_client_raises_when_the_peer_does_not_see_to_it() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:

        async def handle(connection: amqp.Connection) -> None:
            await connection.wait_closed()

        nursery.start_soon(acceptor().run, theirs, handle)
        with pytest.raises(amqp.GuaranteeNotSupportedError, match="one connection only"):
            async with amqp.open_connection(ours, **REFUSE):
                raise AssertionError("a connection that should not come to be")
        nursery.cancel_scope.cancel()


async def test_client_closes_when_the_peer_does_not_offer_to_see_to_it(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:

        async def answer() -> None:
            await peer.accept_open(offered_capabilities=["other"])
            await peer.accept_begin()
            closed = await peer.accept_close()
            assert closed["error"][1]["condition"] == "amqp:not-implemented"
            assert "sole-connection-for-container" in closed["error"][1]["description"]
            await peer.expect_eof()

        nursery.start_soon(answer)
        with pytest.raises(amqp.GuaranteeNotSupportedError):
            async with amqp.open_connection(ours, **REFUSE):
                raise AssertionError("a connection that should not come to be")


async def test_client_goes_when_its_close_for_a_capability_is_not_answered(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.accept_open)
        began = trio.current_time()
        with pytest.raises(amqp.GuaranteeNotSupportedError):
            async with amqp.open_connection(ours, close_timeout=2.0, **REFUSE):
                raise AssertionError("a connection that should not come to be")
    assert trio.current_time() - began == pytest.approx(2.0)
    await peer.skip_to("close")


@pytest.mark.parametrize(
    "options", [{"sole_connection": "refuse-connection"}, PLAIN | {"sole_connection": "both"}]
)
def test_client_refuses_what_makes_no_sense(options: Any) -> None:
    with pytest.raises(amqp.LocalProtocolError, match="sole_connection"):
        amqp.open_connection("amqp://localhost", **options)


async def test_client_that_was_superseded_does_not_come_back() -> None:
    container = amqp.Container()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        url = listeners[0].url
        async with (
            amqp.open_connection(url, reconnect=True, **CLOSE) as old,
            amqp.open_connection(url, reconnect=True, **CLOSE) as new,
        ):
            with pytest.raises(amqp.ConnectionClosedError) as caught:
                await old.wait_closed()
            assert caught.value.condition == "amqp:resource-locked"
            async with new.open_sender("q") as sender:
                await sender.send("hello")
        nursery.cancel_scope.cancel()
