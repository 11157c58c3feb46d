"""Channels, exchanges, queues, consumers and settling."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_amqp10 import amqp091
from trio_amqp10.amqp091 import spec
from trio_amqp10.errors import LocalProtocolError


async def put(channel: amqp091.Channel, queue: str, *bodies: bytes) -> None:
    for body in bodies:
        await channel.publish("", queue, body)
    await wait_all_tasks_blocked()


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


async def test_channel_error_names_what_failed_and_ends_that_channel_alone(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as other:
        async with connection.open_channel() as channel:
            with pytest.raises(amqp091.NotFoundError, match="declare it first") as caught:
                await channel.declare_queue("nope", passive=True)
            assert (caught.value.code, caught.value.method) == (404, "queue.declare")
            assert caught.value.text == "NOT_FOUND - no queue 'nope' in vhost '/'"
            assert caught.value.condition == "amqp:not-found"
            assert caught.value.may_retry
            for call in (channel.declare_queue, channel.recover):
                with pytest.raises(amqp091.NotFoundError):
                    await call()
        await other.declare_queue("there")


async def test_channel_error_that_no_call_raised_is_raised_on_leaving(connected: Any) -> None:
    async with connected() as (_, connection):
        with pytest.raises(amqp091.NotFoundError, match=r"basic\.publish"):
            async with connection.open_channel() as channel:
                await channel.publish("nope", "", b"")
                await wait_all_tasks_blocked()


async def test_channel_reports_what_is_declared_otherwise(connected: Any) -> None:
    async with connected() as (_, connection):
        async with connection.open_channel() as channel:
            await channel.declare_queue("q", durable=True)
            with pytest.raises(amqp091.PreconditionFailedError, match="inequivalent arg 'durable'"):
                await channel.declare_queue("q")
        async with (
            amqp091.open_connection("amqp091://guest:secret@broker") as second,
            connection.open_channel() as mine,
            second.open_channel() as channel,
        ):
            await mine.declare_queue("own", exclusive=True)
            with pytest.raises(amqp091.ResourceLockedError):
                await channel.declare_queue("own")


async def test_channel_gives_answers_to_the_calls_that_asked(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        found: dict[str, str] = {}

        async def declare(name: str) -> None:
            found[name] = (await channel.declare_queue(name)).name

        async with trio.open_nursery() as nursery:
            for name in "abcdef":
                nursery.start_soon(declare, name)
        assert found == {name: name for name in "abcdef"}


async def test_channel_iterates_over_returned_messages(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        await channel.publish("", "nowhere", b"lost", mandatory=True)
        async for message in channel.returns():
            assert (message.code, message.text, message.body) == (312, "NO_ROUTE", b"lost")
            assert "nowhere" in repr(message)
            break
        async with trio.open_nursery() as nursery:
            ended = []

            async def watch() -> None:
                ended.extend([each async for each in channel.returns()])
                ended.append("end")

            nursery.start_soon(watch)
            await wait_all_tasks_blocked()
            await channel.aclose()
        assert ended == ["end"]


async def test_channel_keeps_a_hundred_returned_messages(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        for number in range(103):
            await channel.publish("", "nowhere", b"%d" % number, mandatory=True)
        await wait_all_tasks_blocked()
        assert (await channel.next_returned()).body == b"3"


async def test_channel_waits_while_the_server_stops_its_flow(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        await channel.declare_queue("q")
        [server] = broker.peers[0].channels
        server.engine.flow(active=False)
        broker.peers[0].pump.wake_writer()
        await wait_all_tasks_blocked()
        with trio.move_on_after(3) as scope:
            await channel.publish("", "q", b"1")
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(channel.publish, "", "q", b"2")
            await trio.sleep(1)
            assert "basic.publish" not in broker.log
            server.engine.flow(active=True)
            broker.peers[0].pump.wake_writer()
        await channel.flow(True)
        assert "basic.publish" in broker.log


async def test_channel_waits_for_room_in_the_write_buffer(connected: Any, autojump_clock: MockClock) -> None:
    limits = amqp091.Limits(write_buffer=1000)
    async with connected(limits=limits) as (broker, connection), connection.open_channel() as channel:
        await channel.declare_queue("q")
        for _ in range(10):
            await channel.publish("", "q", bytes(900))
            assert connection.engine.queued < 2200
        await wait_all_tasks_blocked()
        assert len(broker.received) == 10


async def test_channel_reads_what_it_publishes_one_octet_at_a_time(
    brokered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with brokered() as broker:
        dial = broker.dial

        async def slow(url: Any) -> trio.abc.Stream:
            stream = await dial(url)
            take = stream.receive_some
            monkeypatch.setattr(stream, "receive_some", lambda _max=None: take(1))
            return stream

        from trio_amqp10.amqp091.client import dialling as module

        monkeypatch.setattr(module, "connect", slow)
        async with (
            amqp091.open_connection("amqp091://guest:secret@broker") as connection,
            connection.open_publisher() as out,
        ):
            queue = await out.declare_queue("q")
            await out.publish("", "q", b"tea", headers={"a": [1, "b"]})
            async with queue.consume() as consumer:
                delivery = await consumer.receive()
                assert (delivery.body, delivery.headers) == (b"tea", {"a": [1, "b"]})
                delivery.ack()


# -- consuming ------------------------------------------------------------------------------


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
        with pytest.raises(ValueError, match="at least 1"):
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


async def test_channel_recovers_what_is_not_settled(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", b"1")
        assert await queue.get() is not None
        await channel.recover()
        again = await queue.get()
        assert again is not None
        assert again.redelivered
        assert "redelivered" in repr(again)


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


# -- cancellation ---------------------------------------------------------------------------


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


async def test_every_call_can_be_cancelled_at_once(connected: Any, autojump_clock: MockClock) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        consumer = await queue.consume().__aenter__()
        for call in (
            channel.declare_queue,
            queue.purge,
            queue.get,
            consumer.receive,
            channel.recover,
            lambda: channel.qos(3),
            lambda: channel.declare_exchange("x"),
            lambda: channel.publish("", "q", b""),
            lambda: channel.flow(True),
            lambda: queue.consume().__aenter__(),
            channel.next_returned,
            lambda: connection.open_channel().__aenter__(),
            lambda: connection.update_secret(b"x"),
            connection.wait_unblocked,
            connection.wait_closed,
        ):
            with trio.move_on_after(0) as scope:
                await call()
            assert scope.cancelled_caught
        await channel.declare_queue("still usable")
        assert (await queue.get()) is None


@pytest.mark.parametrize("steps", range(12))
async def test_consume_that_is_cancelled_leaves_no_consumer(connected: Any, steps: int) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", b"1", b"2")
        entered = False
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def cancel() -> None:
                    for _ in range(steps):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

                nursery.start_soon(cancel)
                async with queue.consume():
                    entered = True
        await wait_all_tasks_blocked()
        assert not broker.queues["q"].consumers
        assert len(broker.queues["q"].messages) == 2
        assert entered in (True, False)


async def test_channel_that_is_closed_leaves_nothing_behind(connected: Any) -> None:
    async with connected() as (broker, connection):
        for _ in range(5):
            async with connection.open_channel() as channel:
                queue = await channel.declare_queue("q")
                async with queue.consume():
                    pass
            async with connection.open_publisher() as out:
                await out.publish("", "q", b"")
                await out.delete_queue("q")
            with pytest.raises(amqp091.NotFoundError):
                async with connection.open_channel() as failed:
                    await failed.declare_queue("nope", passive=True)
        assert not connection.channels
        assert not connection.attached
        assert not broker.peers[0].channels
        assert not list(connection.topology.requests())
