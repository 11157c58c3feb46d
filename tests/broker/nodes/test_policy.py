"""The rules of queues: what a full one does, and who may take from it."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, two
from trio_amqp10.amqp10.peer.errors import DeliveryRejectedError, LinkRefusedError, TransactionRolledBackError
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Container, Queue, QueuePolicy, RefusedError
from trio_amqp10.container.management import ManagementError
from trio_amqp10.core.errors import LocalProtocolError

BROWSE = Source(address="q", distribution_mode="copy")


# -- full ----------------------------------------------------------------------------------------


async def test_full_queue_rejects_each_of_those_that_come_together() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=1, overflow="reject")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await wait_all_tasks_blocked()
        deliveries = [sender.send_nowait(number) for number in range(4)]
        outcomes = [type(await each.outcome()) for each in deliveries]
    assert outcomes == [amqp.Accepted] + [amqp.Rejected] * 3
    assert queue.figures["refused"] == 3


async def test_queue_rejects_what_comes_when_it_is_full_and_takes_again_when_there_is_room() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=2, overflow="reject")
    async with two(container) as (one, other), one.open_sender("q") as sender:
        await sender.send(1)
        await sender.send(2)
        with pytest.raises(DeliveryRejectedError, match="'q' is full") as rejected:
            await sender.send(3)
        assert rejected.value.condition == "amqp:resource-limit-exceeded"
        async with other.open_receiver("q", credit=0) as receiver:
            assert await bodies(receiver, 1) == [1]
            await wait_all_tasks_blocked()
            await sender.send(4)
            assert await bodies(receiver, 2) == [2, 4]
    assert queue.statistics()["refused"] == 1
    assert queue.statistics()["arrived"] == queue.statistics()["accepted"] == 3


async def test_queue_that_rejects_loses_what_came_settled() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=1, overflow="reject")
    async with (
        container.connect() as conn,
        conn.open_sender("q", guarantee="at-most-once") as sender,
    ):
        for number in range(3):
            await sender.send(number)
        await sender.flush()
    assert (len(queue), queue.figures["refused"]) == (1, 2)


@pytest.mark.parametrize("overflow", ["wait", "reject", "drop-oldest"])
async def test_queue_is_full_of_octets_whatever_the_number_of_messages(overflow: Any) -> None:
    container = Container()
    queue = container.add_queue("q", max_octets=1000, overflow=overflow)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        deliveries = [await sender.transmit(bytes(400)) for _ in range(4)]
        await wait_all_tasks_blocked()
        states = [type(each.state).__name__ for each in deliveries]
        assert len(queue) == 3
        assert states[:3] == ["Accepted"] * 3
        assert states[3] == {"wait": "NoneType", "reject": "Rejected", "drop-oldest": "Accepted"}[overflow]
        async with conn.open_receiver("q") as receiver:
            await bodies(receiver, 4 if overflow == "wait" else 3)
            await wait_all_tasks_blocked()
        assert queue.octets == queue.leased == 0


async def test_queue_takes_one_message_larger_than_all_it_may_hold() -> None:
    container = Container()
    queue = container.add_queue("q", max_octets=10, overflow="reject")
    async with container.connect() as conn:
        await fill(conn, "q", bytes(1000))
        with pytest.raises(DeliveryRejectedError):
            await fill(conn, "q", b"")
    assert len(queue) == 1


async def test_queue_drops_the_oldest_of_the_least_urgent_for_what_comes() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=3, overflow="drop-oldest")
    async with container.connect() as conn:
        await fill(conn, "q", amqp.Message("urgent", priority=9), "a", "b", "c", "d")
        async with conn.open_receiver("q", credit=0) as receiver:
            assert await bodies(receiver, 3) == ["urgent", "c", "d"]
    assert queue.figures["dropped"] == 2


async def test_queue_that_drops_rejects_where_all_it_holds_is_out() -> None:
    container = Container()
    container.add_queue("q", max_length=1, overflow="drop-oldest")
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "q", "held")
        held = await receiver.receive()
        with pytest.raises(DeliveryRejectedError):
            await fill(conn, "q", "no room")
        held.accept()
        await wait_all_tasks_blocked()
        await fill(conn, "q", "room")
        assert await bodies(receiver, 1) == ["room"]


async def test_transaction_that_holds_more_than_a_rejecting_queue_has_room_for_is_rolled_back() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=3, overflow="reject")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.send(0)
        with pytest.raises(TransactionRolledBackError, match="no room for 3"):
            async with conn.open_transaction() as txn:
                for number in range(3):
                    await sender.send(number, transaction=txn)
        assert len(queue) == 1
        async with conn.open_transaction() as txn:
            for number in range(2):
                await sender.send(number, transaction=txn)
        assert len(queue) == 3


@pytest.mark.parametrize("stored", [False, True])
async def test_transaction_is_rolled_back_if_a_queue_can_drop_nothing_for_it(stored: bool) -> None:
    container = Container(store=MemoryStore() if stored else None)
    queue = container.add_queue("q", max_length=2, overflow="drop-oldest")
    container.add_queue("from")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await fill(conn, "q", 1, 2)
        await fill(conn, "from", "moved")
        async with conn.open_receiver("q", credit=0) as receiver:
            held = [await receiver.receive() for _ in range(2)]
            with pytest.raises(TransactionRolledBackError):
                async with conn.open_transaction() as txn:
                    await sender.send(3, transaction=txn)
            with pytest.raises(ManagementError, match="no room"):
                await container.management.move("from", "q")
            assert (len(queue), len(container.find("from"))) == (2, 1)  # type: ignore[arg-type]
            held[0].accept()
            await wait_all_tasks_blocked()
            assert await container.management.move("from", "q") == 1
            held[1].accept()
            assert await bodies(receiver, 1) == ["moved"]


@pytest.mark.parametrize("overflow", ["reject", "drop-oldest"])
async def test_messages_of_a_commit_that_wait_are_held_if_the_queue_changes_its_mind(overflow: Any) -> None:
    container = Container()
    queue = container.add_queue("q", max_length=2, overflow="wait")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await fill(conn, "q", 1, 2)
        async with conn.open_receiver("q", credit=0) as receiver:
            held = [await receiver.receive() for _ in range(2)]
            async with conn.open_transaction() as txn:
                for number in (3, 4):
                    await sender.send(number, transaction=txn)
            assert len(queue) == 2  # the others wait for room
            await container.management.set_queue("q", overflow=overflow)
            for each in held:
                each.accept()
                await wait_all_tasks_blocked()
            assert len(queue) + queue.figures["dropped"] == 2
            assert queue.figures["refused"] == 0


async def test_transaction_that_waiting_consumers_could_hold_needs_room_for_all_of_it() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=2, overflow="drop-oldest")
    async with container.connect() as conn, conn.open_sender("q") as sender:

        async def send(count: int) -> None:
            async with conn.open_transaction() as txn:
                for number in range(count):
                    await sender.send(number, transaction=txn)

        await send(5)
        assert (len(queue), queue.figures["dropped"]) == (2, 3)
        queue.purge()
        async with conn.open_receiver("q", credit=9) as receiver:
            with pytest.raises(TransactionRolledBackError, match="no room for 3"):
                await send(3)
            await send(2)
            assert await bodies(receiver, 2) == [0, 1]


async def test_transaction_needs_room_for_all_messages_of_a_group_that_a_consumer_has() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=2, overflow="drop-oldest", grouped=True)
    async with (
        container.connect() as conn,
        conn.open_sender("q") as sender,
        conn.open_receiver("q", credit=0) as receiver,
    ):
        await fill(conn, "q", amqp.Message(0, group_id="g"))
        await receiver.receive()
        with pytest.raises(TransactionRolledBackError, match="no room for 2"):
            async with conn.open_transaction() as txn:
                for number in range(2):
                    await sender.send(amqp.Message(number, group_id="g"), transaction=txn)
        assert len(queue) == 1


async def test_transaction_has_room_where_all_others_are_on_their_way_to_the_disk() -> None:
    container = Container(store=MemoryStore())
    queue = container.add_queue("q", durable=True, max_length=2, overflow="drop-oldest")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await wait_all_tasks_blocked()
        async with conn.open_transaction() as txn:
            for number in range(5):
                await sender.send(number, transaction=txn)
            others = [sender.send_nowait(number) for number in range(5, 9)]
        assert [await each.outcome() for each in others] == [amqp.Accepted()] * 4
        await wait_all_tasks_blocked()
        assert (len(queue), queue.figures["dropped"]) == (2, 7)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("rules", [{"bound": "ready", "max_length": 1}, {"max_length": 0}])
async def test_transaction_of_any_length_has_room_where_what_is_leased_does_not_count(
    rules: dict[str, Any], waits: bool
) -> None:
    container = Container()
    queue = container.add_queue("q", overflow="drop-oldest", **rules)
    async with (
        container.connect() as conn,
        conn.open_sender("q") as sender,
        conn.open_receiver("q", credit=9 if waits else 0) as receiver,
    ):
        await wait_all_tasks_blocked()
        async with conn.open_transaction() as txn:
            for number in range(4):
                await sender.send(number, transaction=txn)
        if waits:
            assert await bodies(receiver, 4) == [0, 1, 2, 3]
        else:
            assert queue.figures["dropped"] == 4 - rules["max_length"]


@pytest.mark.parametrize("dead_letter", [None, "dead"])
@pytest.mark.parametrize("bound", ["held", "ready"])
@pytest.mark.parametrize("together", [False, True])
async def test_messages_on_their_way_to_the_disk_are_dropped_for_newer_ones(
    together: bool, bound: Any, dead_letter: str | None
) -> None:
    container = Container(store=MemoryStore())
    container.add_queue("dead", durable=True)
    queue = container.add_queue(
        "q", durable=True, max_length=3, overflow="drop-oldest", bound=bound, dead_letter=dead_letter
    )
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await wait_all_tasks_blocked()
        if together:
            outcomes = [await each.outcome() for each in [sender.send_nowait(n) for n in range(10)]]
        else:
            outcomes = [await (await sender.transmit(n)).outcome() for n in range(10)]
        assert outcomes == [amqp.Accepted()] * 10
        await wait_all_tasks_blocked()
        assert (len(queue), queue.figures["dropped"], queue.figures["refused"]) == (3, 7, 0)
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 3) == [7, 8, 9]
        if dead_letter is not None:
            async with conn.open_receiver(dead_letter) as receiver:
                assert await bodies(receiver, 7) == list(range(7))


async def test_transaction_that_holds_too_many_octets_for_a_rejecting_queue_is_rolled_back() -> None:
    container = Container()
    queue = container.add_queue("q", max_octets=100, overflow="reject")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        with pytest.raises(TransactionRolledBackError):
            async with conn.open_transaction() as txn:
                for _ in range(2):
                    await sender.send(bytes(150), transaction=txn)
        async with conn.open_transaction() as txn:
            await sender.send(bytes(300), transaction=txn)
    assert len(queue) == 1


@pytest.mark.parametrize(
    ("limit", "messages", "octets", "room"),
    [(100, 2, 100, True), (100, 2, 101, False), (1, 1, 50, True)],
)
def test_queue_that_rejects_has_room_while_it_is_not_full_before_the_last(
    limit: int, messages: int, octets: int, room: bool
) -> None:
    queue = Queue("q", policy=QueuePolicy(max_octets=limit, overflow="reject"))
    if room:
        queue.check_room(messages, octets)
        return
    with pytest.raises(RefusedError, match="'q' has no room for 2 messages") as refused:
        queue.check_room(messages, octets)
    assert refused.value.condition == "amqp:resource-limit-exceeded"


@pytest.mark.parametrize(("overflow", "held"), [("wait", ["a"]), ("reject", ["a"]), ("drop-oldest", ["b"])])
def test_queue_gathers_one_more_if_there_is_room_or_some_can_be_made(overflow: Any, held: list[str]) -> None:
    queue = Queue("q", policy=QueuePolicy(max_length=1, overflow=overflow))
    first, second = amqp.Message("a"), amqp.Message("b")
    assert queue.gather(content_of_message(first), None)
    assert queue.gather(content_of_message(second), None) is (held == ["b"])
    assert len(queue) == 1
    assert queue.statistics()["dropped"] == (held == ["b"])


async def test_queue_goes_by_new_rules_from_now_on() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=1)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        deliveries = [await sender.transmit(number) for number in range(3)]
        await wait_all_tasks_blocked()
        assert [each.settled for each in deliveries] == [True, False, False]
        queue.update(QueuePolicy(max_length=2))
        await wait_all_tasks_blocked()
        assert [each.settled for each in deliveries] == [True, True, False]
        queue.update(QueuePolicy())
        await sender.flush()
    assert len(queue) == 3
    with pytest.raises(LocalProtocolError, match="grouped"):
        queue.update(QueuePolicy(grouped=True))
    assert queue.policy == QueuePolicy()


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_length": 0},
        {"max_octets": 0},
        {"delivery_limit": 0},
        {"overflow": "explode"},
        {"dead_letter": ""},
    ],
)
def test_policy_refuses_what_makes_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match=next(iter(wrong))):
        Container().add_queue("q", **wrong)


# -- who may take --------------------------------------------------------------------------------


async def test_exclusive_queue_has_one_consumer_at_a_time_and_any_number_of_browsers() -> None:
    container = Container()
    container.add_queue("q", exclusive=True)
    async with two(container) as (one, other):
        await fill(one, "q", "x")
        async with other.open_receiver("q", source=BROWSE) as browser:
            assert await bodies(browser, 1, accept=False) == ["x"]
            async with one.open_receiver("q", credit=1):
                with pytest.raises(
                    LinkRefusedError, match="'q' is exclusive and has a consumer already"
                ) as refused:
                    async with other.open_receiver("q"):
                        pass
                assert refused.value.condition == "amqp:resource-locked"
                async with other.open_receiver("q", source=BROWSE):
                    pass
            async with other.open_receiver("q") as receiver:
                assert await bodies(receiver, 1) == ["x"]


async def test_single_active_consumer_gets_all_until_it_goes_and_then_the_next() -> None:
    container = Container()
    container.add_queue("q", single_active=True)
    async with (
        two(container) as (one, other),
        other.open_receiver("q", credit=0) as first,
        one.open_receiver("q", credit=2) as second,
        other.open_receiver("q", credit=9) as third,
    ):
        await fill(one, "q", *range(5))
        await wait_all_tasks_blocked()
        assert (first.buffered, second.buffered, third.buffered) == (0, 0, 0)
        await first.aclose()
        await wait_all_tasks_blocked()
        assert (second.buffered, third.buffered) == (2, 0)
        assert await bodies(second, 3) == [0, 1, 2]
        held = [await second.receive(), await second.receive()]
        assert [each.message.body for each in held] == [3, 4]
        await second.aclose()
        again = [await third.receive() for _ in range(2)]
        assert [(each.message.body, each.message.delivery_count) for each in again] == [(3, 1), (4, 1)]


async def test_single_active_consumer_waits_until_nothing_is_out_that_the_last_one_had() -> None:
    container = Container()
    queue = container.add_queue("q", single_active=True)
    async with two(container) as (one, other):
        await fill(one, "q", 1, 2, 3)
        async with one.open_receiver("q", credit=0) as first, other.open_receiver("q", credit=0) as next_one:
            async with one.open_transaction() as txn:
                (await first.receive()).accept(transaction=txn)
                await first.aclose()
                next_one.grant(3)
                await wait_all_tasks_blocked()
                assert (next_one.buffered, queue.leased) == (0, 1)  # decided upon when the transaction is
            assert await bodies(next_one, 2) == [2, 3]


async def test_single_active_consumer_that_comes_while_something_is_out_is_served_in_the_end() -> None:
    container = Container()
    queue = container.add_queue("q", single_active=True)
    async with two(container) as (one, other):
        await fill(one, "q", 1, 2)
        async with one.open_transaction() as txn:
            async with one.open_receiver("q", credit=0) as first:
                (await first.receive()).accept(transaction=txn)
            assert queue.leased == 1
            async with other.open_receiver("q", credit=2) as second:
                await wait_all_tasks_blocked()
                assert second.buffered == 0
                await txn.commit()
                assert await bodies(second, 1) == [2]
