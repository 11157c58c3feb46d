"""Rules of queues: priorities, ttl, the objects of a bound, and expiry of queues."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of
from trio_amqp10 import Container, LocalProtocolError, Message, QueuePolicy
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.broker.exchanges.arguments import policy_of

ANY = Described(Symbol("apache.org:selector-filter:string"), "TRUE")


def prior(priority: Any, name: str = "rabbitmq:priority") -> dict[Any, Any]:
    return {Symbol(name): priority}


# -- priorities of consumers ---------------------------------------------------------------------


async def test_consumer_of_the_higher_priority_gets_messages_while_it_has_credit() -> None:
    container = Container()
    container.add_queue("q")
    async with (
        container.connect() as conn,
        conn.open_receiver("q", credit=0) as low,
        conn.open_receiver("q", credit=0, properties=prior(10)) as high,
        conn.open_receiver("q", credit=0, properties=prior(-1)) as lowest,
    ):
        lowest.grant(5)
        low.grant(2)
        await wait_all_tasks_blocked()
        high.grant(3)
        await wait_all_tasks_blocked()
        await fill(conn, "q", *range(7))
        assert await bodies(high, 3) == [0, 1, 2]
        assert await bodies(low, 2) == [3, 4]
        assert await bodies(lowest, 2) == [5, 6]


async def test_consumers_of_one_priority_take_turns() -> None:
    container = Container()
    container.add_queue("q")
    async with (
        container.connect() as conn,
        conn.open_receiver("q", properties=prior(3)) as one,
        conn.open_receiver("q", properties=prior(3, "priority")) as other,
        conn.open_receiver("q") as low,
    ):
        await wait_all_tasks_blocked()
        await fill(conn, "q", *range(4))
        assert sorted([await bodies(one, 2), await bodies(other, 2)]) == [[0, 2], [1, 3]]
        await one.aclose()
        await other.aclose()
        await fill(conn, "q", 4)
        assert await bodies(low, 1) == [4]


async def test_message_that_is_returned_goes_to_the_consumer_of_higher_priority() -> None:
    container = Container()
    container.add_queue("q")
    async with (
        container.connect() as conn,
        conn.open_receiver("q") as low,
        conn.open_receiver("q", credit=0, properties=prior(1)) as high,
    ):
        await fill(conn, "q", "tea")
        delivery = await low.receive()
        high.grant(1)
        await wait_all_tasks_blocked()
        delivery.release()
        assert await bodies(high, 1) == ["tea"]


# -- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("highest", "order"),
    [
        (None, ["9", "200", "10", "5", "4", "0"]),
        (4, ["5", "4", "9", "200", "10", "0"]),
        (0, ["0", "5", "4", "9", "200", "10"]),
        (10, ["200", "10", "9", "5", "4", "0"]),
        (255, ["200", "10", "9", "5", "4", "0"]),
    ],
)
async def test_priorities_above_max_priority_count_as_max_priority(
    highest: int | None, order: list[str]
) -> None:
    container = Container()
    container.add_queue("q", max_priority=highest)
    async with container.connect() as conn:
        await fill(conn, "q", *[Message(str(each), priority=each) for each in (0, 5, 4, 9, 200, 10)])
        async with conn.open_receiver("q", source=Source(address="q", distribution_mode="copy")) as browser:
            assert await bodies(browser, 6) == order
        async with conn.open_receiver("q", source=Source(address="q", filter={"f": ANY})) as receiver:
            assert await bodies(receiver, 6) == order


@pytest.mark.parametrize("highest", [None, 255])
async def test_queue_that_is_full_drops_the_oldest_of_the_lowest_priority(highest: int | None) -> None:
    container = Container()
    container.add_queue("q", max_priority=highest, max_length=3, overflow="drop-oldest")
    async with container.connect() as conn:
        await fill(conn, "q", *[Message(f"{each}", priority=each) for each in (20, 3, 30, 2, 40)])
        async with conn.open_receiver("q") as receiver:
            kept = await bodies(receiver, 3)
    assert kept == (["20", "30", "40"] if highest is None else ["40", "30", "20"])


async def test_no_message_lives_longer_than_the_ttl_of_its_queue(autojump_clock: MockClock) -> None:
    container = Container()
    container.add_queue("q", ttl=5000, dead_letter="dead")
    container.add_queue("dead")
    async with container.connect() as conn:
        await fill(conn, "q", Message("short", ttl=1000), Message("long", ttl=60_000), "none")
        await trio.sleep(2)
        assert (len(queue_of(container)), len(queue_of(container, "dead"))) == (2, 1)
        async with conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(1)
            delivery = await receiver.receive()
            assert delivery.message.ttl == 58_000  # the limit of the queue is not shown to receivers
            delivery.release()
        await trio.sleep(4)
        assert (len(queue_of(container)), len(queue_of(container, "dead"))) == (0, 3)


async def test_message_with_ttl_0_is_delivered_to_a_waiting_receiver_or_expires(
    autojump_clock: MockClock,
) -> None:
    container = Container()
    container.add_queue("q", ttl=0)
    async with container.connect() as conn:
        async with conn.open_receiver("q") as receiver:
            await fill(conn, "q", "now")
            assert await bodies(receiver, 1) == ["now"]
        await fill(conn, "q", "never")
        await trio.sleep(1)
        assert queue_of(container).figures["expired"] == 1


# -- the objects of a bound ----------------------------------------------------------------------


@pytest.mark.parametrize(("bound", "accepted"), [("held", 2), ("ready", 4)])
async def test_bound_ready_does_not_count_unsettled_deliveries(bound: Any, accepted: int) -> None:
    container = Container()
    container.add_queue("q", max_length=2, overflow="reject", bound=bound)
    async with (
        container.connect() as conn,
        conn.open_receiver("q", credit=0) as receiver,
        conn.open_sender("q") as sender,
    ):
        receiver.grant(2)
        taken = 0
        for number in range(6):
            try:
                await sender.send(number)
                taken += 1
            except amqp.DeliveryRejectedError:
                pass
            await wait_all_tasks_blocked()
        assert taken == accepted


async def test_bound_ready_counts_the_octets_of_ready_messages() -> None:
    container = Container()
    container.add_queue("q", max_octets=150, overflow="drop-oldest", bound="ready")
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        receiver.grant(1)
        await fill(conn, "q", *[bytes([each]) * 90 for each in range(4)])
        assert await bodies(receiver, 1) == [bytes(90)]
        await wait_all_tasks_blocked()
        assert [len(queue_of(container)), queue_of(container).figures["dropped"]] == [2, 1]


async def test_message_that_is_returned_to_a_full_queue_drops_the_oldest() -> None:
    container = Container()
    container.add_queue("q", max_length=1, overflow="drop-oldest", bound="ready")
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", "first")
        receiver.grant(1)
        delivery = await receiver.receive()
        await fill(conn, "q", "second")
        delivery.release()
        await wait_all_tasks_blocked()
        receiver.grant(1)
        assert await bodies(receiver, 1) == ["second"]
        assert queue_of(container).figures["dropped"] == 1


@pytest.mark.parametrize(("spare", "left"), [(0, 2), (-1, 1)])
async def test_message_that_is_returned_may_fill_a_queue_to_its_last_octet(spare: int, left: int) -> None:
    container = Container()
    queue = container.add_queue("q")
    async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
        await fill(conn, "q", "first", "second")
        delivery = await receiver.receive()
        queue.update(QueuePolicy(max_octets=queue.octets + spare, overflow="drop-oldest", bound="ready"))
        delivery.release()
        await receiver.aclose()
        await wait_all_tasks_blocked()
        assert len(queue) == left


async def test_returned_messages_drop_no_more_than_the_dead_letter_queue_has_room_for() -> None:
    container = Container()
    letters = container.add_queue("dead", max_length=1)
    queue = container.add_queue("q", max_length=1, overflow="drop-oldest", bound="ready", dead_letter="dead")
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "dead", "full")
        for body in ("first", "second"):
            await fill(conn, "q", body)
            receiver.grant(1)
            await wait_all_tasks_blocked()
        await fill(conn, "q", "third")
        for _ in range(2):
            (await receiver.receive()).release()
            await wait_all_tasks_blocked()
        assert (queue.figures["dropped"], queue.available, len(letters)) == (1, 2, 1)


# -- queues that expire --------------------------------------------------------------------------


async def test_unused_queue_is_deleted_after_its_expires(autojump_clock: MockClock) -> None:
    container = Container()
    async with container.connect() as conn:
        container.add_queue("q", expires=10)
        await fill(conn, "q", "gone with it")  # sending to a queue does not count as use
        await trio.sleep(9)
        async with conn.open_receiver("q", credit=0):
            await trio.sleep(30)
            assert "q" in container.nodes
        await trio.sleep(9)
        assert "q" in container.nodes
        await trio.sleep(2)
        assert "q" not in container.nodes


async def test_queue_that_is_touched_expires_later(autojump_clock: MockClock) -> None:
    container = Container()
    async with container.connect() as conn:
        queue = container.add_queue("q", expires=10)
        await trio.sleep(8)
        queue.touch()
        await trio.sleep(8)
        assert "q" in container.nodes
        await trio.sleep(3)
        assert "q" not in container.nodes
        assert conn


async def test_queue_whose_expires_is_removed_stays(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    container = Container()
    async with container.connect() as conn:
        queue = container.add_queue("q", expires=10)
        await trio.sleep(5)
        queue.update(QueuePolicy())
        await trio.sleep(20)
        await fill(conn, "q", Message("x", ttl=1000))
        await trio.sleep(5)
        assert "q" in container.nodes
        assert queue.figures["expired"] == 1
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


async def test_queue_made_before_trio_ran_expires_after_its_first_use(autojump_clock: MockClock) -> None:
    container = Container()
    queue = container.add_queue("q", expires=10)
    queue._unused_since = None  # as without trio  # pyright: ignore[reportPrivateUsage]
    async with container.connect() as conn:
        await trio.sleep(30)
        assert "q" in container.nodes
        async with conn.open_receiver("q"):
            pass
        await trio.sleep(11)
        assert "q" not in container.nodes


def test_queue_that_expires_can_be_made_without_trio() -> None:
    assert Container().add_queue("q", expires=10).policy.expires == 10


def test_declared_queue_has_its_rules_from_its_arguments() -> None:
    arguments = {"x-message-ttl": 5000, "x-max-priority": 3, "x-expires": 1500}
    policy = policy_of("q", arguments, str)
    assert (policy.ttl, policy.max_priority, policy.expires, policy.bound) == (5000, 3, 1.5, "ready")
    plain = policy_of("q", {}, str)
    assert (plain.ttl, plain.max_priority, plain.expires) == (None, 0, None)


@pytest.mark.parametrize(
    "rules", [{"ttl": -1}, {"max_priority": -1}, {"max_priority": 256}, {"expires": 0}, {"bound": "all"}]
)
def test_rules_that_make_no_sense_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match="expected"):
        QueuePolicy(**rules)
