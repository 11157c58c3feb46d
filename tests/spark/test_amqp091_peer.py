"""The part of AMQP 1.0 that the pipeline uses, over a connection of 0-9-1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark.amqp091_peer import open_091, place_of
from trio_amqp10.spark.options import SinkOptions

from .desk import numbered
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


@pytest.fixture
def peer() -> Iterator[Server]:
    """A container that serves both protocols at one port."""
    with Server(dialects="all") as running:
        running.address("q")
        yield running


def connected(peer: Server, use: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a function makes of a connection."""
    options = SinkOptions.parse({"url": peer.url.replace("amqp://", "amqp091://ada:enigma@"), "address": "q"})

    async def main() -> Any:
        with trio.fail_after(60):
            async with open_091(options, None) as connection:
                return await use(connection)

    return trio.run(main)


@given(st.text(min_size=1), st.text())
def test_any_name_has_an_address(name: str, key: str) -> None:
    assert place_of(f"/queues/{quote(name, safe='')}") == ("", name)
    assert place_of(f"/exchanges/{quote(name, safe='')}/{quote(key, safe='')}") == (name, key)


def test_drain_takes_what_there_was_and_no_more_than_was_granted(peer: Server) -> None:
    peer.put("q", numbered(5))

    async def take(connection: Any) -> list[int]:
        found: list[int] = []
        async with connection.open_receiver("q") as receiver:
            for grant in (2, 9, 9):
                receiver.grant(grant)
                deliveries = await receiver.drain()
                found.append(len(deliveries))
                for each in deliveries:
                    each.accept()
                assert (receiver.credit, receiver.unsettled) == (0, 0)
        return found

    assert connected(peer, take) == [2, 3, 0]
    assert peer.held("q") == 0


def test_message_has_the_octets_of_the_standard_and_is_settled_once(peer: Server) -> None:
    peer.put("q", [amqp.Message(b"tea", message_id="7", content_type="text/plain")])

    async def take(connection: Any) -> amqp.Message:
        async with connection.open_receiver("q") as receiver:
            receiver.grant(1)
            [delivery] = await receiver.receive_many(1)
            assert (delivery.settled, receiver.unsettled) == (False, 1)
            delivery.reject("amqp:decode-error", "why")
            assert (delivery.settled, receiver.unsettled) == (True, 0)
            return amqp.Message.from_payload(delivery.payload)

    message = connected(peer, take)
    assert (message.body, message.message_id, message.content_type) == (b"tea", "7", "text/plain")


def test_sent_message_is_accepted_or_rejected_for_want_of_a_queue(peer: Server) -> None:
    async def send(connection: Any) -> list[Any]:
        found = []
        for address in ("q", "nowhere"):
            async with connection.open_sender(address) as sender:
                with pytest.raises(trio.WouldBlock):
                    sender.send_nowait(amqp.Message(b""))
                outgoing = await sender.transmit(amqp.Message(b"tea"))
                found.append(await outgoing.outcome())
        return found

    accepted, rejected = connected(peer, send)
    assert isinstance(accepted, amqp.Accepted)
    assert isinstance(rejected, amqp.Rejected)
    assert rejected.error is not None
    assert rejected.error.condition == "amqp:not-found"
    assert peer.held("q") == 1


def test_exchange_is_no_source_and_there_is_no_source_to_check(peer: Server) -> None:
    async def receive(connection: Any) -> None:
        with pytest.raises(LocalProtocolError, match="is an exchange"):
            async with connection.open_receiver("/exchanges/shop/tea"):
                pass
        async with connection.open_receiver("q") as receiver:
            with pytest.raises(LocalProtocolError, match="no sources"):
                _ = receiver.remote

    connected(peer, receive)
