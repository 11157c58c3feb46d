"""The expiry of messages, by the clock of a container."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.container import Container
from trio_amqp10.testing import open_container


def test_clock_returns_the_earlier_of_two_deadlines() -> None:
    clock = Clock(lambda: 1000.0, lambda: 0.0)
    assert clock.deadline(5.0, 2000, None) == 7.0
    assert clock.deadline(5.0, None, 1_001_000) == 6.0
    assert clock.deadline(5.0, 2000, 1_001_000) == 6.0
    assert clock.deadline(5.0, 500, 1_001_000) == 5.5


async def test_queue_drops_messages_after_their_ttl(autojump_clock: MockClock) -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(
            conn,
            "q",
            amqp.Message("a", ttl=1000),
            "b",
            amqp.Message("c", ttl=3000),
            amqp.Message("d", ttl=500),
        )
        await trio.sleep(2)
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 2) == ["b", "c"]
            await wait_all_tasks_blocked()
            assert receiver.buffered == 0
            assert len(queue_of(container)) == 0


@pytest.mark.parametrize(("ttl", "left"), [(None, None), (60_000, 56_000)])
async def test_queue_drops_messages_after_their_absolute_expiry_time(
    ttl: int | None, left: int | None, autojump_clock: MockClock
) -> None:
    container = Container(wall_clock=lambda: 1_700_000_000.0)
    container.add_queue("q")
    async with container.connect() as conn:
        async with conn.open_sender("q") as sender:
            for body, seconds in (("late", -1), ("brief", 3), ("long", 5)):
                expiry = (1_700_000_000 + seconds) * 1000
                await sender.send(amqp.Message(body, ttl=ttl, absolute_expiry_time=expiry))
        assert len(queue_of(container)) == 2
        await trio.sleep(4)
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            assert delivery.message.body == "long"
            assert delivery.message.ttl == left
            assert delivery.message.absolute_expiry_time == 1_700_000_005_000
            delivery.accept()
            await wait_all_tasks_blocked()
            assert len(queue_of(container)) == 0
