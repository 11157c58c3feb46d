"""The client of 0-9-1 comes back to a container that has not noticed the loss, and holds nothing that nobody asked for."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.container.served import Redialled, redialled
from trio_amqp10 import amqp091
from trio_amqp10.amqp091.client.channel_base import ChannelBase
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

URL = "amqp091://guest:guest@server"


@asynccontextmanager
async def connected(
    monkeypatch: pytest.MonkeyPatch, **options: Any
) -> AsyncGenerator[tuple[Container, Redialled, amqp091.Connection]]:
    container = Container()
    async with (
        redialled(Amqp091(container), monkeypatch) as server,
        amqp091.open_connection(URL, **{"reconnect": True, **options}) as connection,
    ):
        yield container, server, connection


async def lose_unnoticed(server: Redialled) -> Any:
    """Cut the transport, and have the server keep its end."""
    stream = server.streams[-1]
    stream.hold_the_other_end()
    await stream.cut()
    await wait_all_tasks_blocked()
    return stream


def consumers(container: Container, queue: str) -> int:
    return len(container.nodes[queue].outlets)


async def test_exclusive_consumer_comes_back_once_the_server_has_noticed_the_loss(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with (
        connected(monkeypatch) as (container, server, connection),
        connection.open_channel() as channel,
        connection.open_channel() as other,
    ):
        queue = await channel.declare_queue("mine")
        async with queue.consume(exclusive=True) as consumer:
            stream = await lose_unnoticed(server)
            await trio.sleep(60)
            assert consumers(container, "mine") == 1  # that of the old connection
            await stream.let_go()
            await other.publish("", "mine", b"1")
            with trio.fail_after(60):
                delivery = await consumer.receive()
            delivery.ack()
            assert consumers(container, "mine") == 1
        assert consumers(container, "mine") == 0


async def test_exclusive_consumer_is_refused_in_the_end(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with (
        connected(monkeypatch, heartbeat=0) as (_, server, connection),
        connection.open_channel() as other,
    ):
        opening = connection.open_channel()
        channel = await opening.__aenter__()
        consuming = (await channel.declare_queue("mine")).consume(exclusive=True)
        consumer = await consuming.__aenter__()
        began = trio.current_time()
        stream = await lose_unnoticed(server)
        with pytest.raises(amqp091.AccessRefusedError, match="in exclusive use"):
            await consumer.receive()
        assert 180 <= trio.current_time() - began <= 250
        await other.declare_queue("still")
        await consuming.__aexit__(None, None, None)
        await opening.__aexit__(None, None, None)
        await stream.let_go()


@pytest.mark.parametrize("held", [5, 1000])
async def test_exclusive_queue_whose_declaration_was_under_way_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, held: float
) -> None:
    async with connected(monkeypatch, heartbeat=0) as (container, server, connection):
        opening = connection.open_channel()
        channel = await opening.__aenter__()
        stream = server.streams[-1]
        stream.hold_the_other_end()
        stream.limit_reading(0)  # the request arrives, its answer does not
        outcome: list[object] = []

        async def declare() -> None:
            try:
                outcome.append((await channel.declare_queue("mine", exclusive=True)).name)
            except amqp091.ResourceLockedError as refusal:
                outcome.append(type(refusal))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(declare)
            await trio.sleep(held)
            assert "mine" in container.nodes
            await stream.let_go()
        waits = held < 180
        assert outcome == ["mine" if waits else amqp091.ResourceLockedError]
        assert list(chain.from_iterable(connection.topology.stages())) == [] or waits
        await opening.__aexit__(None, None, None)


async def test_declaration_that_was_expected_is_forgotten_when_it_is_given_up(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with (
        connected(monkeypatch) as (_, server, connection),
        connection.open_channel() as channel,
    ):
        server.accepts = False
        with trio.move_on_after(5):
            server.streams[-1].limit_writing(0)
            await channel.declare_queue("mine", exclusive=True)
        assert list(chain.from_iterable(connection.topology.stages())) == []
        server.accepts = True


async def test_consumer_that_is_closed_while_the_connection_comes_back_is_not_there(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """At each moment of the recovery: before its request, between request and answer, and after the answer."""
    for steps in range(60):
        async with (
            connected(monkeypatch) as (container, server, connection),
            connection.open_channel() as channel,
            connection.open_channel() as other,
        ):
            await other.declare_queue("fed")
            await other.publish("", "fed", b"1")
            consuming = channel.queue("fed").consume()
            consumer = await consuming.__aenter__()
            await server.sever()
            while not connection.is_live:
                await connection.wait()
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            await consumer.aclose()
            await other.qos(1)
            await wait_all_tasks_blocked()
            assert consumers(container, "fed") == 0
            got = await other.queue("fed").get()
            assert got is not None
            assert got.body == b"1"
            await got_back(got)


async def got_back(delivery: amqp091.Delivery) -> None:
    delivery.nack()
    await wait_all_tasks_blocked()


async def test_consumer_whose_start_is_cancelled_at_a_loss_is_not_there(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    for patience in (0.0, 0.05, 0.1, 0.2):
        async with (
            connected(monkeypatch) as (container, server, connection),
            connection.open_channel() as channel,
        ):
            queue = await channel.declare_queue("q")
            server.streams[-1].break_silently()
            with trio.move_on_after(patience):
                async with queue.consume():
                    await trio.sleep_forever()
            await channel.qos(1)
            await wait_all_tasks_blocked()
            assert consumers(container, "q") == 0


async def test_flow_that_was_stopped_stays_stopped(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with (
        connected(monkeypatch) as (_, server, connection),
        connection.open_channel() as channel,
        connection.open_channel() as other,
    ):
        queue = await channel.declare_queue("q")
        async with queue.consume() as consumer:
            async with trio.open_nursery() as nursery:  # two at a time, and both are answered
                nursery.start_soon(channel.flow, True)
                nursery.start_soon(channel.flow, True)
            await channel.flow(active=False)
            await server.sever()
            await other.publish("", "q", b"1")
            await trio.sleep(60)
            await other.publish("", "q", b"2")
            await trio.sleep(60)
            assert consumer.buffered == 0
            await channel.flow(active=True)
            assert (await consumer.receive()).body in (b"1", b"2")


async def test_message_of_a_get_that_came_right_before_the_loss_settles_nothing_else(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with (
        connected(monkeypatch) as (_, server, connection),
        connection.open_channel() as channel,
    ):
        queue = await channel.declare_queue("q")
        await channel.publish("", "q", b"1")
        take = ChannelBase.take_answer

        def take_and_break(self: Any, arrival: Any) -> None:
            take(self, arrival)
            connection.go_down(amqp091.ConnectionClosedError("cut behind the answer"))
            server.streams[-1].break_silently()

        with monkeypatch.context() as patched:
            patched.setattr(ChannelBase, "take_answer", take_and_break)
            first = await queue.get()
        assert first is not None
        second = await queue.get()
        assert second is not None
        with pytest.raises(amqp091.DeliveryLostError):
            first.ack()
        assert not second.settled


async def test_publish_that_the_new_frames_do_not_take_is_refused(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with connected(monkeypatch) as (_, server, connection), connection.open_publisher() as publisher:
        server.streams[-1].limit_writing(0)
        server.dialect = Amqp091(Container(), limits=amqp091.Limits(frame_max=4096))
        ticket = await publisher.transmit("", "q", b"1", headers={"h": "x" * 8000})
        with pytest.raises(LocalProtocolError, match="exceed the largest frame payload"):
            await ticket.outcome()
        assert ticket.state == "refused"
