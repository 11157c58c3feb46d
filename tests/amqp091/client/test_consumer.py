"""Consumers of the client: iterating, prefetch, merged acknowledgements, and how they end."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10 import amqp091
from trio_amqp10.amqp091 import spec
from trio_amqp10.core.errors import LocalProtocolError

from .broker import put


async def test_consumer_iterates_and_merges_acknowledgements(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", *(b"%d" % n for n in range(50)))
        async with queue.consume() as consumer:
            deliveries: list[Any] = []
            async for delivery in consumer:
                deliveries.append(delivery)
                if len(deliveries) == 50:
                    break
            for delivery in deliveries:
                delivery.ack()
            await wait_all_tasks_blocked()
            assert [int(delivery.body) for delivery in deliveries] == list(range(50))
            assert broker.log.count("basic.ack") == 1
            assert channel.unsettled == 0
            assert "consumer-1" in repr(consumer)
    assert not broker.queues["q"].messages


async def test_consumer_acknowledges_singly_behind_one_that_is_not_settled(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", b"0", b"1", b"2", b"3")
        async with queue.consume() as consumer:
            deliveries = await consumer.receive_many(10)
            assert [each.body for each in deliveries] == [b"0", b"1", b"2", b"3"]
            for number in (0, 2, 3):
                deliveries[number].ack()
            await wait_all_tasks_blocked()
            [server] = broker.peers[0].channels
            assert list(server.unsettled) == [2]
            deliveries[1].nack(requeue=False)
            with pytest.raises(LocalProtocolError, match="settled already"):
                deliveries[0].ack()
            with pytest.raises(LocalProtocolError, match="settled already"):
                deliveries[1].reject()


async def test_consumer_puts_back_what_was_not_received(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", b"0", b"1", b"2")
        async with queue.consume() as consumer:
            first = await consumer.receive()
            assert consumer.buffered == 2
        await wait_all_tasks_blocked()
        assert [each.content.body for each in broker.queues["q"].messages] == [b"1", b"2"]
        first.ack()
        again = await queue.get()
        assert again is not None
        assert (again.body, again.redelivered) == (b"1", True)


async def test_consumer_reads_no_further_than_its_prefetch(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel(prefetch=2) as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", *(b"%d" % n for n in range(10)))
        async with queue.consume() as first, queue.consume(prefetch=5) as second:
            await wait_all_tasks_blocked()
            assert (first.buffered, second.buffered) == (2, 5)
            assert (first.prefetch, second.prefetch) == (2, 5)
        await wait_all_tasks_blocked()
        assert len(broker.queues["q"].messages) == 10


@pytest.mark.parametrize("prefetch", [0, -1, 65536])
async def test_consumer_refuses_a_prefetch_that_is_none(connected: Any, prefetch: int) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        with pytest.raises(LocalProtocolError, match="None for no limit"):
            channel.queue("q").consume(prefetch=prefetch)
        with pytest.raises(LocalProtocolError, match="None for no limit"):
            await channel.qos(prefetch)
        await channel.qos(7)
        await channel.qos(None, global_=True)


async def test_consumer_ends_with_an_error_when_the_server_cancels_it(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", b"last")
        async with queue.consume(tag="mine") as consumer:
            await wait_all_tasks_blocked()
            broker.delete("q")
            await wait_all_tasks_blocked()
            assert (await consumer.receive()).body == b"last"
            with pytest.raises(amqp091.ConsumerCancelledError, match="'mine'") as caught:
                await consumer.receive()
            assert (caught.value.tag, caught.value.queue) == ("mine", "q")
        assert "basic.cancel" not in broker.log


async def test_consumer_answers_a_cancel_that_asks_for_it(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        async with queue.consume(tag="mine"):
            [server] = broker.peers[0].channels
            server.on_basic_cancel_ok = lambda arrival: broker.log.append(arrival.method.consumer_tag)
            server.send(spec.BasicCancel(consumer_tag="mine"))
            await wait_all_tasks_blocked()
            assert broker.log[-2:] == ["basic.cancel-ok", "mine"]


async def test_consumer_iteration_ends_quietly_after_its_own_close(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        async with queue.consume() as consumer, trio.open_nursery() as nursery:
            seen: list[object] = []

            async def iterate() -> None:
                seen.extend([each async for each in consumer])
                seen.append("end")

            nursery.start_soon(iterate)
            await wait_all_tasks_blocked()
            await consumer.aclose()
            await consumer.aclose()
        assert seen == ["end"]
        with pytest.raises(trio.ClosedResourceError):
            await consumer.receive()


async def test_consumer_reports_what_the_server_refuses(connected: Any) -> None:
    async with connected() as (_, connection):
        async with connection.open_channel() as channel:
            with pytest.raises(amqp091.NotFoundError, match=r"basic\.consume"):
                await channel.queue("nope").consume().__aenter__()
        async with connection.open_channel() as channel:
            queue = await channel.declare_queue("q")
            async with queue.consume(tag="t"):
                with pytest.raises(LocalProtocolError, match="'t' already"):
                    await queue.consume(tag="t").__aenter__()
        with pytest.raises(LocalProtocolError, match="maximum=0: expected a whole number, at least 1"):
            await amqp091.Consumer.receive_many(None, 0)  # type: ignore[arg-type]


async def test_consumer_stops_the_reading_of_the_connection_when_it_is_full(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", *(b"%d" % n for n in range(6)))
        async with queue.consume(no_ack=True, prefetch=5) as consumer:
            await wait_all_tasks_blocked()
            assert connection.engine.braked
            assert not connection.engine.wants_data()
            other = await channel.declare_queue("other")  # an answer is read in any case
            assert other.name == "other"
            assert connection.engine.braked
            delivery = await consumer.receive()
            with pytest.raises(LocalProtocolError, match="no_ack"):
                delivery.ack()
            await consumer.receive()
            assert not connection.engine.braked
        assert not connection.braked


async def test_consumer_without_a_prefetch_has_a_bound_in_octets(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel(prefetch=None) as channel:
        queue = await channel.declare_queue("q")
        for _ in range(3):
            await channel.publish("", "q", bytes(600_000))
        async with queue.consume() as consumer:
            await wait_all_tasks_blocked()
            assert connection.engine.braked
            for _ in range(3):
                (await consumer.receive()).ack()
            assert not connection.engine.braked
