"""A channel of the client: answers, returned messages, flow, room, and calls that are cancelled."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_amqp10 import amqp091

from .broker import put


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
        assert not list(chain.from_iterable(connection.topology.stages()))
