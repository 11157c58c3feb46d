"""Delayed redelivery: how long a message that came back waits before a consumer gets it again (3.4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.container.helpers import bodies, fill, queue_of, two
from trio_amqp10 import Container, LocalProtocolError, MemoryStore, Message, QueuePolicy, SqliteStore
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.broker.nodes.message_store import DELAYS, MESSAGES
from trio_amqp10.broker.nodes.policy import LONGEST_DELAY

if TYPE_CHECKING:
    from pathlib import Path

DELIVERY_TIME = Symbol("x-opt-delivery-time")
BROWSE = Source(address="q", distribution_mode=Symbol("copy"))


def wall() -> float:
    """The time of day, on the clock of the test."""
    return 1_000_000 + trio.current_time()


def made(store: Any = None, **policy: Any) -> Container:
    """A container with a queue of this policy."""
    container = Container(store=store, wall_clock=wall)
    container.add_queue("q", **policy)
    return container


def due_in(seconds: float) -> dict[Any, Any]:
    return {DELIVERY_TIME: round((wall() + seconds) * 1000)}


# -- the policy -----------------------------------------------------------------------------------


async def test_delay_grows_with_each_failed_attempt_up_to_its_maximum(autojump_clock: MockClock) -> None:
    container = made(redelivery_delay=10, redelivery_delay_multiplier=2, max_redelivery_delay=30)
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", "x")
        waited: list[float] = []
        for _ in range(4):
            (await receiver.receive()).modify(delivery_failed=True)
            began = trio.current_time()
            delivery = await receiver.receive()
            waited.append(trio.current_time() - began)
            delivery.modify(delivery_failed=False)  # no attempt: given out again at once
        assert (await receiver.receive()).message.delivery_count == 4
    assert trio.current_time() == pytest.approx(sum(waited), abs=0.1)
    assert waited == pytest.approx([10, 20, 30, 30], abs=0.1)


async def test_released_message_does_not_wait(autojump_clock: MockClock) -> None:
    container = made(redelivery_delay=10)
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", "x")
        began = trio.current_time()
        for _ in range(3):
            (await receiver.receive()).release()
        assert (await receiver.receive()).message.body == "x"
        assert trio.current_time() - began < 1


async def test_message_whose_consumer_is_lost_waits(autojump_clock: MockClock) -> None:
    container = made(redelivery_delay=10)
    async with two(container) as (one, other):
        await fill(one, "q", "x")
        async with one.open_receiver("q") as receiver:
            await receiver.receive()
        began = trio.current_time()
        async with other.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["x"]
        assert trio.current_time() - began == pytest.approx(10, abs=0.1)


async def test_others_overtake_a_message_that_waits_and_then_it_has_its_old_place(
    autojump_clock: MockClock,
) -> None:
    container = made(redelivery_delay=10)
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", "a", "b", "c")
        receiver.grant(1)
        (await receiver.receive()).modify(delivery_failed=True)
        receiver.grant(1)
        assert await bodies(receiver, 1) == ["b"]
        await trio.sleep(11)
        receiver.grant(2)
        assert await bodies(receiver, 2) == ["a", "c"]


@given(
    delay=st.floats(0.001, 1e6),
    multiplier=st.none() | st.floats(1, 1e6),
    most=st.none() | st.floats(0.001, 1e9),
    failures=st.integers(1, 10_000),
)
def test_delay_never_shrinks_and_never_exceeds_its_maximum(
    delay: float, multiplier: float | None, most: float | None, failures: int
) -> None:
    policy = QueuePolicy(
        redelivery_delay=delay, redelivery_delay_multiplier=multiplier, max_redelivery_delay=most
    )
    longest = LONGEST_DELAY if most is None else most
    assert policy.delay_after(1) == min(delay, longest)
    assert policy.delay_after(failures) <= policy.delay_after(failures + 1) <= longest


@pytest.mark.parametrize(
    "wrong",
    [
        {"redelivery_delay": 0},
        {"redelivery_delay": float("inf")},
        {"redelivery_delay": float("nan")},
        {"redelivery_delay_multiplier": 0.5},
        {"redelivery_delay_multiplier": float("nan")},
        {"max_redelivery_delay": -1},
    ],
)
def test_policy_refuses_a_delay_that_makes_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match=next(iter(wrong))):
        QueuePolicy(**wrong)


# -- what a consumer asks for ---------------------------------------------------------------------


async def test_consumer_says_how_long_to_wait(autojump_clock: MockClock) -> None:
    container = Container()  # by the time of day that the delivery goes by
    container.add_queue("q")
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", "x")
        (await receiver.receive()).modify(delay=1000, annotations={"x-opt-note": "later"})
        began = trio.current_time()
        message = (await receiver.receive()).message
        # What passes on the clock on the wall meanwhile is taken off: a machine under load needs a while.
        assert 500 < trio.current_time() - began <= 1000.1
        assert (message.annotations["x-opt-note"], message.delivery_count) == ("later", 0)
        assert DELIVERY_TIME in message.annotations, "merged, as any other (3.4.5)"


async def test_time_that_a_consumer_asks_for_goes_before_the_policy(autojump_clock: MockClock) -> None:
    container = made(redelivery_delay=10)
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", "x")
        for asked, expected in ((50, 50), (-5, 0)):
            (await receiver.receive()).modify(delivery_failed=True, annotations=due_in(asked))
            began = trio.current_time()
            delivery = await receiver.receive()
            assert trio.current_time() - began == pytest.approx(expected, abs=0.1)
            delivery.release()


@pytest.mark.parametrize("asked", ["soon", True, None, 2.5])
async def test_annotation_that_is_no_time_leaves_it_to_the_policy(
    asked: Any, autojump_clock: MockClock
) -> None:
    container = made(redelivery_delay=10)
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", "x")
        (await receiver.receive()).modify(delivery_failed=True, annotations={DELIVERY_TIME: asked})
        began = trio.current_time()
        await receiver.receive()
        assert trio.current_time() - began == pytest.approx(10, abs=0.1)


async def test_time_in_the_farthest_future_is_bounded(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    container = made(store, durable=True)
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", "x")
        (await receiver.receive()).modify(annotations={DELIVERY_TIME: 2**63 - 1})
        await wait_all_tasks_blocked()
        [(_, due)] = list(store.rows(DELAYS))
        assert isinstance(due, int)
        assert due / 1000 - wall() == pytest.approx(LONGEST_DELAY, abs=1)


@pytest.mark.parametrize("delay", [-1, float("inf"), float("nan"), 1e300])
async def test_delivery_refuses_a_delay_that_makes_no_sense(delay: float) -> None:
    async with made().connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "q", "x")
        delivery = await receiver.receive()
        with pytest.raises(LocalProtocolError, match="delay="):
            delivery.modify(delay=delay)
        assert not delivery.settled
        delivery.accept()


# -- what else goes on meanwhile ------------------------------------------------------------------


async def test_message_that_waits_is_counted_and_is_neither_available_nor_leased(
    autojump_clock: MockClock,
) -> None:
    container = made(redelivery_delay=10)
    queue = queue_of(container)
    names = ("messages", "available", "leased", "delayed")
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", "a", "b")
        receiver.grant(1)
        (await receiver.receive()).modify(delivery_failed=True)
        await wait_all_tasks_blocked()
        assert [queue.statistics()[name] for name in names] == [2, 1, 0, 1]
        await trio.sleep(11)
        assert [queue.statistics()[name] for name in names] == [2, 2, 0, 0]
        receiver.grant(1)
        (await receiver.receive()).modify(delivery_failed=True)
        await wait_all_tasks_blocked()
        assert queue.purge() == 2
        assert [queue.statistics()[name] for name in names] == [0, 0, 0, 0]
        await trio.sleep(60)
        assert len(queue) == 0


async def test_message_expires_while_it_waits(autojump_clock: MockClock) -> None:
    container = made(redelivery_delay=100, dead_letter="dead")
    container.add_queue("dead")
    async with two(container) as (one, other), one.open_receiver("q", credit=1) as receiver:
        await fill(one, "q", Message("x", ttl=5000))
        began = trio.current_time()
        (await receiver.receive()).modify(delivery_failed=True)
        async with other.open_receiver("dead") as dead:
            letter = await dead.receive()
            letter.accept()
        assert letter.message.annotations["x-opt-deadletter-reason"] == "expired"
        assert trio.current_time() - began == pytest.approx(5, abs=0.1)


async def test_each_message_comes_in_its_time_without_anything_else_going_on(
    autojump_clock: MockClock,
) -> None:
    container = made()
    async with container.connect() as conn, conn.open_receiver("q", credit=10) as receiver:
        await fill(conn, "q", *range(4))
        for seconds in (30, 10, 40, 20):
            (await receiver.receive()).modify(annotations=due_in(seconds))
        began = trio.current_time()
        for expected, body in ((10, 1), (20, 3), (30, 0), (40, 2)):
            assert await bodies(receiver, 1) == [body]
            assert trio.current_time() - began == pytest.approx(expected, abs=0.1)


async def test_message_that_is_due_in_a_queue_that_is_full_of_ready_ones_makes_the_oldest_go(
    autojump_clock: MockClock,
) -> None:
    container = made(redelivery_delay=10, max_length=1, bound="ready", overflow="drop-oldest")
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", "a")
        receiver.grant(1)
        (await receiver.receive()).modify(delivery_failed=True)
        await fill(conn, "q", "b")
        await trio.sleep(20)
        receiver.grant(1)
        assert await bodies(receiver, 1) == ["b"]
    assert queue_of(container).statistics()["dropped"] == 1


async def test_last_attempt_does_not_wait_to_die(autojump_clock: MockClock) -> None:
    container = made(redelivery_delay=100, delivery_limit=1)
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", "x")
        (await receiver.receive()).modify(delivery_failed=True)
        await wait_all_tasks_blocked()
    statistics = queue_of(container).statistics()
    assert (statistics["messages"], statistics["delayed"], statistics["failed"]) == (0, 0, 1)


async def test_browser_sees_a_message_once_it_is_due(autojump_clock: MockClock) -> None:
    container = made(redelivery_delay=10)
    async with two(container) as (one, other):
        await fill(one, "q", "x")
        async with one.open_receiver("q", credit=0) as receiver:
            receiver.grant(1)
            (await receiver.receive()).modify(delivery_failed=True)
            await wait_all_tasks_blocked()
            began = trio.current_time()
            async with other.open_receiver("q", source=BROWSE) as browser:
                assert await bodies(browser, 1, accept=False) == ["x"]
            assert trio.current_time() - began == pytest.approx(10, abs=0.1)


async def test_next_consumer_is_active_while_a_message_of_the_last_one_waits(
    autojump_clock: MockClock,
) -> None:
    container = made(redelivery_delay=10, single_active=True)
    async with two(container) as (one, other), other.open_receiver("q") as second:
        async with one.open_receiver("q", credit=1):
            pass
        await fill(one, "q", "a", "b")
        (await second.receive()).modify(delivery_failed=True)
        assert await bodies(second, 1) == ["b"]
        async with one.open_receiver("q") as third:
            await second.aclose()
            assert await bodies(third, 1) == ["a"]


async def test_rest_of_a_group_waits_for_its_message_and_other_groups_do_not(
    autojump_clock: MockClock,
) -> None:
    container = made(redelivery_delay=10, grouped=True)
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", *(Message(body, group_id=body[0]) for body in ("a1", "a2", "b1")))
        receiver.grant(1)
        first = await receiver.receive()
        assert first.message.body == "a1"
        first.modify(delivery_failed=True)
        began = trio.current_time()
        receiver.grant(3)
        assert await bodies(receiver, 1) == ["b1"]
        assert trio.current_time() - began < 1
        assert await bodies(receiver, 2) == ["a1", "a2"]
        assert trio.current_time() - began == pytest.approx(10, abs=0.1)


async def test_group_goes_on_when_its_message_expires_while_it_waits(autojump_clock: MockClock) -> None:
    container = made(redelivery_delay=100, grouped=True)
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", Message("a1", group_id="a", ttl=5000), Message("a2", group_id="a"))
        receiver.grant(1)
        (await receiver.receive()).modify(delivery_failed=True)
        receiver.grant(1)
        began = trio.current_time()
        assert await bodies(receiver, 1) == ["a2"]
        assert trio.current_time() - began == pytest.approx(5, abs=0.1)


async def test_subscription_of_a_topic_waits_as_its_consumer_asks(autojump_clock: MockClock) -> None:
    container = Container(wall_clock=wall)
    container.add_topic("t")
    async with container.connect() as conn, conn.open_receiver("t", credit=1) as receiver:
        await fill(conn, "t", "x")
        (await receiver.receive()).modify(annotations=due_in(20))
        began = trio.current_time()
        assert await bodies(receiver, 1) == ["x"]
        assert trio.current_time() - began == pytest.approx(20, abs=0.1)


async def test_queue_that_is_deleted_lets_go_of_what_waits(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    container = made(store, durable=True, redelivery_delay=10)
    async with container.connect() as conn:
        await fill(conn, "q", "x")
        async with conn.open_receiver("q") as receiver:
            (await receiver.receive()).modify(delivery_failed=True)
            await wait_all_tasks_blocked()
        queue = queue_of(container)
        container.remove_node("q")
        await trio.sleep(60)
        assert queue.leased == len(queue) == 0
    assert (list(store.rows(MESSAGES)), list(store.rows(DELAYS))) == ([], [])


# -- a store --------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("away", "left"), [(30, 70), (200, 0)])
async def test_message_waits_on_after_a_restart(
    away: float, left: float, grouped: bool, autojump_clock: MockClock
) -> None:
    store = MemoryStore()
    container = made(store, durable=True, redelivery_delay=100, grouped=grouped)
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", Message("x", group_id="g"), "y")
        receiver.grant(1)
        (await receiver.receive()).modify(delivery_failed=True)
        await wait_all_tasks_blocked()
    await trio.sleep(away)
    container = made(store, durable=True, redelivery_delay=100, grouped=grouped)
    began = trio.current_time()
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        receiver.grant(2)
        assert await bodies(receiver, 2) == (["y", "x"] if left else ["x", "y"])
        assert trio.current_time() - began == pytest.approx(left, abs=1)
        await wait_all_tasks_blocked()
        await fill(conn, "q", "z")  # what was accepted is written with it
    assert [Message.from_payload(row[4]).body for row in store.rows(MESSAGES)] == ["z"]  # type: ignore[arg-type]
    assert list(store.rows(DELAYS)) == []


async def test_message_of_another_format_waits_on_after_a_restart(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    container = made(store, durable=True)
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", Message.from_payload(b"octets that nobody here reads", 0x80013700))
        (await receiver.receive()).modify(annotations=due_in(100))
        await wait_all_tasks_blocked()
    container = made(store, durable=True)
    async with container.connect():
        await wait_all_tasks_blocked()
        assert queue_of(container).statistics()["delayed"] == 1


async def test_file_has_what_waits(tmp_path: Path) -> None:
    for _ in range(2):
        with SqliteStore(tmp_path / "store.sqlite") as store:
            container = Container(store=store)
            queue = container.add_queue("q", durable=True)
            async with container.connect() as conn:
                if not list(store.rows(MESSAGES)):
                    await fill(conn, "q", "x")
                    async with conn.open_receiver("q") as receiver:
                        (await receiver.receive()).modify(delay=1000)
                    await fill(conn, "q", "y")  # written with it
                statistics = queue.statistics()
                assert (statistics["messages"], statistics["available"], statistics["delayed"]) == (2, 1, 1)


@pytest.mark.parametrize("delay", [100, 10])
async def test_message_that_waited_before_a_restart_expires_after_it(
    delay: float, autojump_clock: MockClock
) -> None:
    store = MemoryStore()
    container = made(store, durable=True, redelivery_delay=delay)
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", Message("x", ttl=50_000))
        (await receiver.receive()).modify(delivery_failed=True)
        await wait_all_tasks_blocked()
    container = made(store, durable=True)
    async with container.connect():
        await trio.sleep(40)
        statistics = queue_of(container).statistics()
        assert (statistics["delayed"], statistics["available"]) == ((1, 0) if delay > 40 else (0, 1))
        await trio.sleep(20)
        statistics = queue_of(container).statistics()
        assert (statistics["messages"], statistics["delayed"], statistics["expired"]) == (0, 0, 1)
