"""The client's connection: opening, blocking, secrets, and what the block raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from trio_amqp10 import amqp091

from .conftest import URL

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_connection_opens_and_closes(connected: Any) -> None:
    async with connected(connection_name="here") as (broker, connection):
        assert connection.server_properties["product"] == "Small"
        assert connection.capabilities["publisher_confirms"] is True
        assert connection.heartbeat == 60
        [peer] = broker.peers
        assert peer.answer.client_properties["connection_name"] == "here"
        assert peer.answer.client_properties["capabilities"]["connection.blocked"] is True
        assert peer.answer.mechanism == "PLAIN"
        statistics = connection.statistics()
        assert (statistics["state"], statistics["transports"]) == ("OPEN", 1)
        assert "OPEN" in repr(connection)
    assert not broker.peers


async def test_connection_makes_publishes_wait_while_it_is_blocked(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected() as (broker, connection), connection.open_publisher() as out:
        await out.declare_queue("q")
        broker.peers[0].block("low on memory")
        await trio.testing.wait_all_tasks_blocked()
        assert connection.blocked == "low on memory"
        assert connection.statistics()["blocked"] is True
        with trio.move_on_after(5) as scope:
            await out.publish("", "q", b"1")
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(out.publish, "", "q", b"2")
            nursery.start_soon(connection.wait_unblocked)
            await trio.sleep(5)
            assert not broker.received
            broker.peers[0].unblock()
        assert broker.received == [b"2"]
        assert connection.blocked is None


async def test_connection_takes_a_new_secret(connected: Any) -> None:
    async with connected() as (broker, connection):
        await connection.update_secret(b"token", "it expires")
        assert broker.peers[0].secrets == [b"token"]


async def test_connection_ends_when_a_secret_is_refused(connected: Any) -> None:
    async with connected() as (broker, connection):
        broker.peers[0].keeps_secrets = False
        async with trio.open_nursery() as nursery:

            async def refuse() -> None:
                while not broker.peers[0].secrets:
                    await trio.lowlevel.checkpoint()
                broker.peers[0].close(530, "NOT_ALLOWED - bad token")

            nursery.start_soon(refuse)
            with pytest.raises(amqp091.ConnectionClosedError, match="bad token"):
                await connection.update_secret(b"token")


async def test_connection_lets_errors_of_the_block_leave_as_themselves(brokered: Any) -> None:
    async with brokered():
        with pytest.raises(ZeroDivisionError):
            async with amqp091.open_connection(URL) as connection, connection.open_channel():
                raise ZeroDivisionError
