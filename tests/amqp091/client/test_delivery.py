"""Deliveries: what they say, and how they are settled."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from .broker import put


async def test_delivery_settles_all_up_to_it(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", b"0", b"1", b"2", b"3", b"4")
        async with queue.consume() as consumer:
            deliveries = await consumer.receive_many(5)
            deliveries[1].ack(multiple=True)
            assert [each.settled for each in deliveries] == [True, True, False, False, False]
            deliveries[3].nack(multiple=True, requeue=False)
            deliveries[4].reject(requeue=False)
            await wait_all_tasks_blocked()
            [server] = broker.peers[0].channels
            assert not server.unsettled


async def test_delivery_is_a_message_of_the_standard_too(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        headers = {"n": 1, "x-delivery-count": 2, "x-tags": ["a"], "table": {}}
        await channel.publish(
            "", "q", b"tea", headers=headers, delivery_mode=2, message_id="m", expiration="9000"
        )
        delivery = await queue.get()
        assert delivery is not None
        message = delivery.to_message()
        assert (message.body, message.durable, message.message_id, message.ttl) == (b"tea", True, "m", 9000)
        assert (message.application_properties, message.delivery_count) == ({"n": 1}, 2)
        assert message.annotations["x-tags"] == ["a"]
        assert (message.annotations["x-exchange"], message.annotations["x-routing-key"]) == ("", "q")
        assert message.first_acquirer
        delivery.nack()
        again = await queue.get()
        assert again is not None
        assert not again.to_message().first_acquirer


async def test_delivery_has_properties_of_its_own(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        for _ in range(2):
            await channel.publish("", "q", b"")
        async with queue.consume() as consumer:
            first, second = [await consumer.receive() for _ in range(2)]
            first.properties.message_id = "mine"
            assert first.properties.message_id == "mine"
            assert second.properties.message_id is None


async def test_delivery_cannot_be_settled_when_its_channel_is_gone(connected: Any) -> None:
    async with connected() as (_, connection):
        async with connection.open_channel() as channel:
            queue = await channel.declare_queue("q")
            await put(channel, "q", b"1")
            got = await queue.get()
        assert got is not None
        with pytest.raises(trio.ClosedResourceError):
            got.ack()
        with pytest.raises(trio.ClosedResourceError):
            got.nack()
