"""Queues of the client: declare, bind, publish to and get from them."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_amqp10.amqp091 import spec

from .broker import put


async def test_channel_declares_binds_publishes_and_gets(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        exchange = await channel.declare_exchange("prices", "fanout", durable=True)
        queue = await channel.declare_queue("orders", arguments={"x-max-length": 10})
        await queue.bind(exchange)
        await channel.publish(exchange, "any", b"tea", headers={"n": 1}, delivery_mode=2)
        got = await queue.get()
        assert got is not None
        assert (got.body, got.exchange, got.routing_key) == (b"tea", "prices", "any")
        assert (got.headers, got.properties.delivery_mode, got.message_count) == ({"n": 1}, 2, 0)
        assert not got.settled
        got.ack()
        assert got.settled
        assert await queue.get() is None
        await put(channel, "orders", b"1", b"2")
        assert (await channel.declare_queue("orders", passive=True)).message_count == 2
        assert await queue.purge() == 2
        await queue.unbind(exchange)
        assert not broker.bindings
        await exchange.bind("amq.topic", "#")
        await exchange.unbind("amq.topic", "#")
        await exchange.delete()
        assert await channel.delete_queue("orders") == 0
        assert repr(exchange) == "<Exchange 'prices'>"
        assert repr(queue) == "<Queue 'orders'>"


async def test_get_that_is_cancelled_puts_the_message_back(connected: Any, autojump_clock: MockClock) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", b"1")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def cancel() -> None:
                    while "basic.get" not in broker.log:
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

                nursery.start_soon(cancel)
                broker.peers[0].mute = True
                await queue.get()
        broker.peers[0].mute = False
        [server] = broker.peers[0].channels
        message = broker.queues["q"].messages.popleft()
        server.tag += 1
        server.unsettled[server.tag] = (broker.queues["q"], message, "")
        server.send(spec.BasicGetOk(delivery_tag=1), message.content)
        await wait_all_tasks_blocked()
        assert broker.log[-1] == "basic.nack"
        assert len(broker.queues["q"].messages) == 1
