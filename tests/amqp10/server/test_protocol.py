"""AMQP 1.0 over a container: one conversation for each connection, and what its ``open`` offers."""

from __future__ import annotations

from typing import Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp10.server.connection import Amqp10Connection
from trio_amqp10.amqp10.server.protocol import Amqp10
from trio_amqp10.container import Container
from trio_amqp10.testing import open_container


def test_open_of_a_container_offers_what_it_does() -> None:
    offered = Amqp10.offered_capabilities()
    assert offered[:3] == ("ANONYMOUS-RELAY", "LINK_PAIR_V1_0", "sole-connection-for-container")
    assert len(set(offered)) == len(offered)


async def test_peer_is_told_what_the_container_offers() -> None:
    async with open_container() as container, container.connect() as conn:
        assert conn.remote.offered_capabilities == Amqp10.offered_capabilities()


async def test_each_connection_has_one_conversation_of_the_class_that_was_chosen() -> None:
    made: list[Any] = []

    class Own(Amqp10Connection):
        """A conversation of another service."""

        def __init__(self, container: Any, connection: Any) -> None:
            super().__init__(container, connection)
            made.append(self)

    container = Container("hub")
    container.amqp10.converse = Own
    container.add_queue("q")
    async with container.connect() as one, container.connect() as two:
        for conn in (one, two):
            async with conn.open_sender("q") as sender:
                await sender.send("hi")
    assert len(made) == 2


async def test_peer_without_permission_is_told_why_and_let_go() -> None:
    container = Container("hub", authorise=lambda *_: False)
    with pytest.raises(amqp.ConnectionClosedError, match="unauthorized-access"):
        async with container.connect() as conn:
            await conn.wait_closed()
    assert container.statistics()["connections"] == 0
