"""A connection of the client at work: heartbeats, losses, closes, and the number of channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from trio_amqp10 import amqp091
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_connection_is_given_up_when_heartbeats_are_missing(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(heartbeat=10) as (broker, connection):
        async with connection.open_channel() as channel:
            queue = await channel.declare_queue("q")
            broker.peers[0].mute = True
            broker.peers[0].engine.handle_timer = lambda _now: None
            broker.peers[0].engine.next_deadline = lambda: None
            began = trio.current_time()
            with pytest.raises(amqp091.ConnectionClosedError, match="two heartbeats"):
                await queue.get()
            assert 19 <= trio.current_time() - began <= 31
        with pytest.raises(amqp091.ConnectionClosedError):
            await connection.wait_closed()


async def test_connection_lives_on_through_hours_of_silence(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(heartbeat=10) as (_, connection), connection.open_channel() as channel:
        await trio.sleep(1800)
        await channel.declare_queue("q")


async def test_connection_closed_by_the_server_says_why_and_what_to_do(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        broker.peers[0].close(320, "CONNECTION_FORCED - Closed via management plugin")
        with pytest.raises(amqp091.ConnectionClosedError, match="reconnect=True") as caught:
            await channel.declare_queue("q")
        assert caught.value.code == 320
        assert caught.value.text == "CONNECTION_FORCED - Closed via management plugin"
        assert caught.value.condition == "amqp:connection:forced"
        assert caught.value.may_retry
        assert isinstance(caught.value, trio.BrokenResourceError)


async def test_connection_is_lost_when_the_server_breaks_a_rule(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        broker.peers[0].engine.enqueue(b"\x01\0\x07\0\0\0\x04\0\x32\0\x0b\xce")
        broker.peers[0].pump.wake_writer()
        with pytest.raises(amqp091.ConnectionClosedError, match="violated the protocol"):
            await channel.declare_queue("q")


async def test_connection_cannot_be_used_after_its_close(connected: Any) -> None:
    async with connected() as (_, connection):
        channel = await connection.open_channel().__aenter__()
        queue = await channel.declare_queue("q")
        await connection.aclose()
        await connection.aclose()
        await connection.wait_closed()
        for call in (
            lambda: queue.get(),
            lambda: channel.publish("", "q", b""),
            lambda: connection.open_channel().__aenter__(),
            lambda: connection.update_secret(b""),
            lambda: connection.wait_unblocked(),
        ):
            with pytest.raises(trio.ClosedResourceError):
                await call()
        await channel.aclose()


async def test_connection_refuses_more_channels_than_were_agreed(connected: Any) -> None:
    async with connected(channel_max=1) as (_, connection), connection.open_channel():
        with pytest.raises(LocalProtocolError, match="no free channel number up to 1"):
            await connection.open_channel().__aenter__()
