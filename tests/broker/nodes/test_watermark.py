"""How much memory messages take: what counts, what happens above the limit, and that consumers go on."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of
from trio_amqp10.broker.nodes.watermark import OVERHEAD, SharedWeight, Watermark
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Access, Container

KIB = 1024
BODY = b"x" * (4 * KIB)
EXCEEDED = "amqp:resource-limit-exceeded"


def weight(container: Container) -> int:
    """What the queues of a container weigh, counted anew."""
    queues = [node for node in container.nodes.values() if isinstance(node, amqp.container.Queue)]
    return sum(queue.octets + OVERHEAD * len(queue) for queue in queues)


async def until_refused(sender: amqp.Sender, most: int = 100) -> int:
    """Send until the container takes no more; returns how many it took."""
    for number in range(most):
        outcome = await (await sender.transmit(BODY)).outcome()
        if isinstance(outcome, amqp.Rejected):
            assert outcome.error is not None
            assert outcome.error.condition == EXCEEDED
            return number
    raise AssertionError("the container takes whatever comes")


# -- above the limit ----------------------------------------------------------------------------


async def test_container_takes_no_more_above_its_limit_and_again_when_consumers_have_made_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    container = Container(memory_limit=64 * KIB)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        taken = await until_refused(sender)
        assert 64 * KIB // (4 * KIB + OVERHEAD) <= taken <= 64 * KIB // (4 * KIB) + 1
        figures = container.statistics()
        assert (figures["throttled"], figures["refused_for_memory"]) == (1, 1)
        assert figures["held_octets"] == weight(container) > 64 * KIB
        [said] = [each.message for each in caplog.records if "takes none" in each.message]
        assert "limit of 65536" in said
        async with conn.open_receiver("q", credit=0) as receiver:  # which goes on as ever
            receiver.grant(1)
            await bodies(receiver, 1)
            await wait_all_tasks_blocked()
            with pytest.raises(amqp.DeliveryRejectedError):  # it takes more only when there is some room
                await sender.send(BODY)
            receiver.grant(3)
            await bodies(receiver, 3)
            await wait_all_tasks_blocked()
        assert container.statistics()["throttled"] == 0
        assert "takes messages again" in caplog.text
        await sender.send(BODY)
    assert container.watermark.octets == weight(container)


async def test_limit_is_held_to_the_octet_and_a_queue_that_goes_leaves_none_behind() -> None:
    other = Container()
    await other.send("q", BODY)
    each = other.watermark.octets
    container = Container(memory_limit=10 * each)

    def high() -> int:
        return container.statistics()["throttled"]

    for _ in range(10):
        await container.send("q", BODY)
    assert not high()
    await container.send("q", BODY)
    assert high()
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        for held in (10, 9, 8):
            receiver.grant(1)
            await bodies(receiver, 1)
            await wait_all_tasks_blocked()
            assert container.watermark.octets == held * each
            assert high() == (held >= 9)
    container.remove_node("q")
    assert container.watermark.octets == 0


async def test_credit_is_withheld_above_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    container = Container(memory_limit=64 * KIB)
    queue = container.add_queue("q")
    async with container.connect() as conn, conn.open_sender("q", name="old") as old:
        await until_refused(old)
        async with conn.open_sender("q", name="new") as new:
            await wait_all_tasks_blocked()
            assert new.credit == 0
            while old.credit:
                with pytest.raises(amqp.DeliveryRejectedError):
                    await old.send(b"")
            await wait_all_tasks_blocked()
            assert old.credit == 0
            queue.purge()
            await wait_all_tasks_blocked()
            assert new.credit > 0
            assert old.credit > 0
            await new.send(BODY)
            await old.send(BODY)


async def test_link_of_a_settled_message_is_detached_above_the_limit() -> None:
    container = Container(memory_limit=64 * KIB)
    container.add_queue("q")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        settling = await conn.open_sender("q", guarantee="at-most-once").__aenter__()
        await until_refused(sender)
        await settling.send(b"gone")
        with pytest.raises(amqp.LinkDetachedError, match=EXCEEDED):
            while True:
                await settling.send(b"gone")
                await wait_all_tasks_blocked()


async def test_message_of_a_transaction_is_rejected_above_the_limit() -> None:
    container = Container(memory_limit=64 * KIB)
    container.add_queue("q")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await until_refused(sender)
        before = len(queue_of(container))
        with pytest.raises(amqp.AmqpError):
            async with conn.open_transaction() as transaction:
                await sender.send(BODY, transaction=transaction)
        assert len(queue_of(container)) == before
    assert container.watermark.octets == weight(container)


async def test_transaction_that_was_taken_is_committed_above_the_limit() -> None:
    container = Container(memory_limit=64 * KIB)
    queue = container.add_queue("q")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        async with conn.open_transaction() as transaction:
            for _ in range(10):
                await sender.send(BODY, transaction=transaction)
            assert container.watermark.octets == 10 * (len_of(BODY) + OVERHEAD)
            await until_refused(sender)
        await wait_all_tasks_blocked()
        assert container.watermark.high
        assert len(queue) > 10
        assert container.watermark.octets == weight(container)
        with pytest.raises(RuntimeError):
            async with conn.open_transaction():
                raise RuntimeError
    queue.purge()
    assert container.watermark.octets == 0


def len_of(body: bytes) -> int:
    return len(amqp.Message(body).to_payload())


async def test_management_is_asked_and_dead_letters_move_above_the_limit() -> None:
    container = Container(memory_limit=64 * KIB)
    container.add_queue("q", dead_letter="dead")
    dead = container.add_queue("dead")
    container.add_management()
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await until_refused(sender)
        async with conn.open_receiver("q", credit=1) as receiver:
            (await receiver.receive()).reject()
            await wait_all_tasks_blocked()
        assert len(dead) == 1
        held = weight(container)
        async with conn.open_requester("$management") as requester:
            asked = {"operation": "QUERY", "type": "org.amqp.management", "entityType": "container"}
            reply = await requester.request(amqp.Message({}, application_properties=asked), timeout=5)
            [row] = reply.body["results"]
            shown = dict(zip(reply.body["attributeNames"], row, strict=True))
            assert (shown["held-octets"], shown["memory-limit"]) == (held, 64 * KIB)
            assert (shown["throttled"], shown["type"]) == (True, "container")


@pytest.mark.parametrize("seconds", [None, 0.0])
async def test_relay_takes_no_more_above_the_limit_whatever_the_answers_take(seconds: float | None) -> None:
    async def slowly(_access: Access) -> bool:
        if seconds is not None:
            await trio.sleep(seconds)
        return True

    container = Container(memory_limit=64 * KIB, authorise=slowly if seconds is not None else lambda _: True)
    container.add_queue("q")
    async with container.connect() as conn, conn.open_sender(None) as sender:
        refused = 0
        for _ in range(10):
            deliveries = [await sender.transmit(amqp.Message(BODY, to="q")) for _ in range(4)]
            for each in deliveries:
                refused += not isinstance(await each.outcome(), amqp.Accepted)
        assert 20 < refused < 30
        assert container.statistics()["refused_for_memory"] == refused
        assert len(queue_of(container)) == 40 - refused
    assert container.watermark.octets == weight(container)


# -- what counts --------------------------------------------------------------------------------


async def test_messages_that_wait_for_room_in_a_queue_count() -> None:
    container = Container(memory_limit=64 * KIB)
    queue = container.add_queue("q", max_length=1)
    async with container.connect() as conn:
        sender = await conn.open_sender("q").__aenter__()
        deliveries: list[Any] = []
        for _ in range(40):
            deliveries.append(await sender.transmit(BODY))
            await wait_all_tasks_blocked()
        refused = sum(isinstance(each.state, amqp.Rejected) for each in deliveries)
        assert len(queue) == 1
        assert container.watermark.high
        assert 40 - 17 <= refused <= 40 - 12
        async with conn.open_receiver("q") as receiver:
            await bodies(receiver, 40 - refused)
            await wait_all_tasks_blocked()
        assert container.watermark.octets == 0
        for _ in range(3):
            await sender.transmit(BODY)
        await wait_all_tasks_blocked()
        assert container.watermark.octets == 3 * (len_of(BODY) + OVERHEAD)
        conn.pump.cancel()
    await wait_all_tasks_blocked()
    assert container.watermark.octets == len_of(BODY) + OVERHEAD == weight(container)


async def test_message_of_a_topic_counts_once_however_many_subscribe() -> None:
    container = Container()
    topic = container.add_topic("t")
    size = len_of(BODY)
    async with container.connect() as conn:
        receivers = [await conn.open_receiver("t", credit=0).__aenter__() for _ in range(3)]
        await fill(conn, "t", BODY)
        assert container.watermark.octets == size + 3 * OVERHEAD
        receivers[0].grant(1)
        await bodies(receivers[0], 1)
        await wait_all_tasks_blocked()
        assert container.watermark.octets == size + 2 * OVERHEAD
        await receivers[1].aclose()
        await wait_all_tasks_blocked()
        assert container.watermark.octets == size + OVERHEAD
        assert topic.statistics()["messages"] == 1
        container.remove_node("t")
        assert container.watermark.octets == 0


async def test_messages_that_a_store_has_count_when_they_come_back() -> None:
    store = MemoryStore()
    first = Container("c", store=store)
    first.add_queue("q", durable=True)
    async with first.connect() as conn:
        await fill(conn, "q", *[BODY] * 20)
    again = Container("c", store=store, memory_limit=64 * KIB)
    queue = again.add_queue("q", durable=True)
    async with again.connect() as conn, conn.open_sender("q") as sender:
        assert again.watermark.octets == weight(again) > 64 * KIB
        assert sender.credit == 0
        async with conn.open_receiver("q") as receiver:
            await bodies(receiver, 20)
        await sender.send(b"one")
    assert len(queue) == 1


async def test_messages_of_a_queue_count_from_when_it_is_in_a_container() -> None:
    queue = amqp.container.Queue("q")
    other = Container()
    other.add_node(queue)
    async with other.connect() as conn:
        await fill(conn, "q", BODY)
    container = Container()
    container.add_node(queue)
    assert (container.watermark.octets, other.watermark.octets) == (weight(container), 0)


async def test_container_sends_within_itself_above_its_limit() -> None:
    """What a program sends to its own nodes is its own to bound."""
    container = Container(memory_limit=1)
    queue = container.add_queue("q")
    await container.send("q", "one")
    await container.send("q", "two")
    assert len(queue) == 2


@pytest.mark.parametrize("ending", ["resumed", "expired", "too much"])
async def test_part_of_a_message_counts_while_its_link_may_come_back(
    ending: str, autojump_clock: Any
) -> None:
    container = Container(memory_limit=100 * KIB)
    container.add_queue("q")
    options: dict[str, Any] = {"name": "x", "guarantee": "exactly-once", "expiry_policy": "connection-close"}
    options |= {"expiry_timeout": 60, "store": amqp.MemoryTerminusStore()}
    limits = amqp.Limits(max_frame_size=4096)
    connect = partial(container.connect, container_id="c", idle_timeout=None, limits=limits)
    async with connect() as conn:
        sender = await conn.open_sender("q", **options).__aenter__()
        stream = await sender.stream().__aenter__()
        await stream.send_all(b"x" * 40 * KIB)
        await wait_all_tasks_blocked()
        assert container.watermark.octets == 0
        if ending == "too much":
            await container.send("q", b"x" * 100 * KIB)
        conn.pump.cancel()
        await conn.pump.finished.wait()
    await wait_all_tasks_blocked()
    if ending == "too much":
        assert container.watermark.octets == weight(container)  # it is given up
        return
    assert 30 * KIB < container.watermark.octets <= 41 * KIB
    async with connect() as conn:
        if ending == "resumed":
            options |= {"store": None}
            await conn.open_sender("q", **options).__aenter__()
        else:
            await trio.sleep(61)
        assert container.watermark.octets == 0


# -- counting -----------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3000))))
def test_watermark_rises_above_its_limit_and_falls_below_nine_tenths(steps: list[tuple[bool, int]]) -> None:
    mark = Watermark(10_000)
    held: list[int] = []
    high = False
    for adds, octets in steps:
        if adds:
            held.append(octets)
            mark.add(octets)
        elif held:
            mark.remove(held.pop())
        total = sum(held) + OVERHEAD * len(held)
        high = total > 10_000 or (high and total >= 9_000)
        assert (mark.octets, mark.high) == (total, high)


async def test_watermark_calls_those_who_wait_once_and_stops_when_it_is_high_again() -> None:
    mark = Watermark(1000)
    called: list[str] = []
    mark.add(1000, 0)
    mark.add(1, 0)

    def one() -> None:
        called.append("one")
        mark.add(1001, 0)

    def other() -> None:
        called.append("other")

    for each in (one, one, other):
        mark.when_low(each)
    mark.remove(1001, 0)
    assert not called
    await wait_all_tasks_blocked()
    assert called == ["one"]
    mark.when_low(one)
    mark.forget(one)
    mark.remove(1001, 0)
    await wait_all_tasks_blocked()
    assert called == ["one", "other"]


def test_shared_weight_counts_its_octets_once() -> None:
    mark = Watermark()
    shared = SharedWeight(mark, 100)
    counted: list[int] = []
    for step in (shared.take, shared.take, shared.leave, shared.leave):
        step()
        counted.append(mark.octets)
    assert counted == [100 + OVERHEAD, 100 + 2 * OVERHEAD, 100 + OVERHEAD, 0]


# -- deliveries that are not complete -----------------------------------------------------------


async def test_row_48_deliveries_in_progress_have_a_bound_on_all_connections_of_a_listener() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", max_partial_octets=100 * KIB)
        [listener] = await nursery.start(serve)

        async def begin(conn: amqp.Connection, octets: int) -> tuple[Any, Any]:
            sender = await conn.open_sender("q").__aenter__()
            stream = await sender.stream().__aenter__()
            await stream.send_all(b"x" * octets)
            await until(lambda: pool_of(container) >= octets or sender.credit == 0)
            return sender, stream

        async with amqp.open_connection(listener.url) as greedy, amqp.open_connection(listener.url) as modest:
            with pytest.raises(amqp.LinkDetachedError, match="all connections of the listener"):
                _, stream = await begin(greedy, 80 * KIB)
                other, rest = await begin(modest, 40 * KIB)
                while True:
                    await stream.send_all(b"x")
                    await trio.sleep(0.001)
            await rest.send_all(b"x" * 50 * KIB)
            await rest.aclose()
            await until(lambda: len(queue) == 1)
            await other.aclose()
            assert pool_of(container) == 0
            _, stream = await begin(modest, 60 * KIB)
        async with amqp.open_connection(listener.url) as conn:  # what the last one had is forgotten
            await until(lambda: len(container.conversations) == 1)
            _, stream = await begin(conn, 90 * KIB)
            await stream.aclose()
            await until(lambda: len(queue) == 2)
        nursery.cancel_scope.cancel()


def pool_of(container: Container) -> int:
    return sum(each.connection.engine.partial_octets for each in container.conversations)


async def until(holds: Any) -> None:
    with trio.fail_after(60):
        while not holds():  # noqa: ASYNC110 - what it waits for makes no event
            await trio.sleep(0.001)


async def test_listener_refuses_a_bound_of_nothing() -> None:
    with pytest.raises(amqp.LocalProtocolError, match=r"max_partial_octets=0: .*None for no limit"):
        await amqp.serve(Container().handle, "amqp://127.0.0.1:0", max_partial_octets=0)
