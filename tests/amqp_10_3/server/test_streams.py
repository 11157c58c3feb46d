"""Streams: without acknowledgements, at their rate, and dropped above their window."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.wire.properties import StreamProperties

from .script import Client, opened


async def send(client: Client, body: bytes, priority: int | None = None, **place: Any) -> None:
    method = spec.StreamPublish(**{"routing_key": "q", **place})
    await client.carry(method, body, StreamProperties(priority=priority, content_type="a/b"))


async def test_stream_is_delivered_without_acknowledgements() -> None:
    async with opened() as client:
        await client.declare()
        await client.consume(spec.StreamConsume)
        for body in (b"1", b"2"):
            await send(client, body, 3)
            heard = await client.heard("stream.deliver")
            assert (heard.body, heard["queue"]) == (body, b"q")
            assert heard.properties == [b"a/b", None, None, 3, None]
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0
        await client.ask(spec.StreamCancel(consumer_tag="c"))
        await send(client, b"3")
        assert await client.quiet()


async def test_stream_returns_what_is_mandatory() -> None:
    async with opened() as client:
        await send(client, b"x", routing_key="nowhere", mandatory=True)
        assert (await client.heard("stream.return")).properties[0] == b"a/b"


async def test_stream_keeps_to_its_rate(autojump_clock: Any) -> None:
    async with opened() as client:
        await client.declare()
        for _ in range(3):
            await send(client, b"x" * 100)
        await client.consume(spec.StreamConsume, consume_rate=50)
        times = []
        for _ in range(3):
            await client.heard("stream.deliver")
            times.append(trio.current_time())
        assert [round(each - times[0], 3) for each in times] == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("window", [{"prefetch_count": 2}, {"prefetch_size": 200}], ids=str)
async def test_stream_drops_the_least_urgent_above_its_window(window: Any, autojump_clock: Any) -> None:
    async with opened() as client:
        await client.declare()
        await client.consume(spec.StreamConsume, consume_rate=10, **window)
        for number, priority in enumerate((5, 1, 7, 1, 9)):
            await send(client, bytes([48 + number]) * 100, priority)
        heard = [(await client.heard("stream.deliver")).body[:1] for _ in range(3)]
        assert heard == [b"0", b"2", b"4"]
        assert await client.quiet()


async def test_stream_stops_with_the_flow() -> None:
    async with opened() as client:
        await client.declare()
        await client.consume(spec.StreamConsume)
        assert (await client.ask(spec.ChannelFlow(active=False))).name == "channel.flow-ok"
        await send(client, b"x")
        assert await client.quiet()
        assert (await client.ask(spec.ChannelFlow(active=True))).name == "channel.flow-ok"
        assert (await client.heard("stream.deliver")).body == b"x"
