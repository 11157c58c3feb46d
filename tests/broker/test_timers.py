"""What ends with time, and is seen to end when its time comes: messages, subscriptions, and timers themselves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

import trio_amqp10 as amqp
from tests.container.helpers import fill, queue_of
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source
from trio_amqp10.broker.background_tasks import TaskRunner
from trio_amqp10.broker.timers import Timers
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_message_leaves_for_the_dead_letters_when_its_time_comes_and_nobody_looks(
    autojump_clock: MockClock,
) -> None:
    container = Container()
    container.add_queue("q", dead_letter="dead")
    dead = container.add_queue("dead")
    async with container.connect() as conn:
        await fill(conn, "q", amqp.Message("late", ttl=5000), amqp.Message("soon", ttl=1000), "stays")
        for seconds, length, letters in ((0.9, 3, 0), (1.1, 2, 1), (4.9, 2, 1), (5.1, 1, 2)):
            await trio.sleep_until(seconds)
            assert (len(queue_of(container)), len(dead)) == (length, letters)


async def test_message_leaves_when_its_absolute_time_comes(autojump_clock: MockClock) -> None:
    container = Container(wall_clock=lambda: 1000 + trio.current_time())
    queue = container.add_queue("q")
    async with container.connect() as conn:
        await fill(conn, "q", amqp.Message("x", absolute_expiry_time=1_002_000))
        await trio.sleep(1.9)
        assert len(queue) == 1
        await trio.sleep(0.2)
        assert len(queue) == 0
        assert queue.figures["expired"] == 1


async def test_dead_letter_reaches_its_handler_while_nobody_is_connected(autojump_clock: MockClock) -> None:
    container = Container()
    container.add_queue("q", dead_letter="obituaries")
    dead: list[tuple[float, object]] = []

    @container.consumer("obituaries")
    async def note(delivery: amqp.Delivery) -> None:
        dead.append((round(trio.current_time()), delivery.message.body))

    async with trio.open_nursery() as nursery:
        await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
        await container.send("q", amqp.Message("x", ttl=60_000))
        await trio.sleep(61)
        assert dead == [(60, "x")]
        nursery.cancel_scope.cancel()


async def test_subscription_is_over_when_its_time_comes_and_nobody_looks(autojump_clock: MockClock) -> None:
    container = Container()
    topic = container.add_topic("t")
    lasting = Source(address="t", expiry_policy=ExpiryPolicy.LINK_DETACH, timeout=30)
    async with container.connect() as conn:
        for name in ("one", "two"):
            receiver = await conn.open_receiver("t", source=lasting, name=name).__aenter__()
            await receiver.detach()
        await fill(conn, "t", "x")
        await trio.sleep(29)
        assert (len(topic.subscriptions), topic.statistics()["messages"]) == (2, 2)
        await trio.sleep(2)
        assert (len(topic.subscriptions), topic.statistics()["messages"]) == (0, 0)


async def test_durable_subscription_ends_in_time_after_a_restart(autojump_clock: MockClock) -> None:
    store = amqp.MemoryStore()
    before = Container(store=store)
    before.add_topic("t")
    source = Source(address="t", durable=1, expiry_policy=ExpiryPolicy.LINK_DETACH, timeout=30)
    async with before.connect(container_id="c") as conn:
        receiver = await conn.open_receiver("t", source=source, name="s").__aenter__()
        await receiver.detach()
    after = Container(store=store)
    topic = after.add_topic("t")
    async with after.connect():
        assert len(topic.subscriptions) == 1
        await trio.sleep(31)
        assert not topic.subscriptions


async def test_messages_that_are_taken_in_time_leave_no_timers_behind(autojump_clock: MockClock) -> None:
    container = Container()
    async with container.connect() as conn, conn.open_receiver("q", credit=10) as receiver:
        for round_ in range(300):
            await fill(conn, "q", amqp.Message("x", ttl=3_600_000 - round_))
            (await receiver.receive()).accept()
            await trio.sleep(0.02)
        timers = container._timers._due
        assert len(timers) + timers.empty < 150
        assert len(queue_of(container).held.deadlines) == 0


async def test_deleted_queue_needs_no_timer(autojump_clock: MockClock) -> None:
    container = Container()
    container.add_queue("q")
    async with container.connect() as conn:
        await fill(conn, "q", amqp.Message("x", ttl=1000))
        container.remove_node("q")
        assert not container._timers._due


# Timers -----------------------------------------------------------------------------------------


async def test_timers_call_what_was_not_cancelled_in_order(autojump_clock: MockClock) -> None:
    runners: dict[TaskRunner, None] = {}
    timers = Timers(trio.current_time, runners)
    called: list[int] = []
    set_ = [timers.call_at(9 - number, partial(called.append, number)) for number in range(8)]
    set_[3].cancel()
    async with trio.open_nursery() as nursery:
        runner = TaskRunner(Container())
        runner.begin(nursery)
        runners[runner] = None
        timers.join(runner)
        await trio.sleep(8.5)
        runner.open = False
        timers.leave(runner)
    assert called == [7, 6, 5, 4, 2, 1]


async def test_timers_throw_out_what_was_cancelled() -> None:
    timers = Timers(trio.current_time, {})
    for _ in range(1000):
        timers.call_at(1e9, lambda: None).cancel()
    assert len(timers._due) + timers._due.empty <= 64
