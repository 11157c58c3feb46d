"""A survey: some queues by name, all others added up, totals that only grow."""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.broker.stores.base import StoreError
from trio_amqp10.container import Container
from trio_amqp10.container.management import ManagementError
from trio_amqp10.container.management.survey import matching, survey
from trio_amqp10.sasl import Identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.management import Survey


def at_once(container: Container, named: Callable[[str], bool] = lambda _: False) -> Survey:
    """A survey without a pause."""
    steps = survey(container, named)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Survey = done.value
            return found


async def test_queues_that_are_not_named_are_added_up() -> None:
    now = 100.0
    container = Container("shop", wall_clock=lambda: now)
    for number in range(1, 4):
        container.add_queue(f"q-{number}")
        for _ in range(number):
            await container.send(f"q-{number}", "tea")
            now += 1
    found = await container.management.survey(lambda name: name == "q-2")
    [named] = found.queues
    assert (named.address, named.depth, named.arrived) == ("q-2", 2, 2)
    assert (found.rest.queues, found.rest.depth, found.rest.ready) == (2, 4, 4)
    assert found.rest.oldest == 6
    assert found.rest.octets == found.rest.ready_octets > 0
    assert (found.messages.arrived, found.messages.refused) == (6, 0)
    assert found.container.name == "shop"


async def test_only_so_many_queues_are_named() -> None:
    container = Container()
    for number in range(5):
        container.add_queue(f"q-{number}")
    found = await container.management.survey(lambda _: True, most=3)
    assert [queue.address for queue in found.queues] == ["q-0", "q-1", "q-2"]
    assert found.rest.queues == 2


@given(
    st.lists(st.sampled_from(["send", "accept", "reject", "release", "delete", "purge"]), max_size=30),
    st.integers(0, 3),
)
def test_totals_only_grow_and_named_and_rest_make_the_whole(steps: list[str], named: int) -> None:
    async def run() -> None:
        container = Container()
        management = container.management
        before: list[int] = [0] * 5
        for number, step in enumerate(steps):
            address = f"q-{number % 3}"
            if step == "send":
                await container.send(address, "tea")
            elif step in ("accept", "reject", "release"):
                if address in container.nodes:
                    await management.get(address, outcome=step)  # type: ignore[arg-type]
            elif address in container.nodes:
                await (management.delete(address) if step == "delete" else management.purge(address))
            found = at_once(container, lambda name: int(name[-1]) < named)
            all_of_them = at_once(container)
            assert found.rest.depth + sum(queue.depth for queue in found.queues) == all_of_them.rest.depth
            assert found.messages == all_of_them.messages
            totals = found.messages
            now = [
                totals.arrived,
                totals.delivered,
                totals.acknowledged,
                totals.redelivered,
                totals.dead_letters["rejected"],
            ]
            assert all(new >= old for old, new in zip(before, now, strict=True)), (step, before, now)
            before = now

    trio.run(run)


async def test_totals_stay_when_a_queue_is_deleted_while_a_consumer_has_its_messages() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with container.connect() as conn, conn.open_receiver("q", credit=2) as receiver:
        for _ in range(3):
            await container.send("q", "tea")
        await receiver.receive_many(2)
        assert (queue.leased, at_once(container).messages.delivered) == (2, 2)
        steps = survey(container, lambda _: False)  # It has begun when the queue is deleted.
        next(steps)
        container.remove_node("q")
        assert at_once(container).messages.delivered == 2
        assert queue.totals()["delivered"] == 2
        with pytest.raises(StopIteration) as done:
            while True:
                next(steps)
        assert done.value.value.messages.delivered == 2
        with pytest.raises(amqp.LinkDetachedError):
            await receiver.receive()
    assert at_once(container).messages.arrived == 3


async def test_totals_of_queues_that_are_deleted_when_unused_stay() -> None:
    container = Container()
    async with container.connect() as conn:
        await conn_send(conn, "first-use")
        async with conn.open_receiver("first-use") as receiver:
            (await receiver.receive()).accept()
    assert "first-use" not in container.nodes
    totals = at_once(container).messages
    assert (totals.arrived, totals.delivered, totals.acknowledged) == (1, 1, 1)


async def conn_send(conn: amqp.Connection, address: str) -> None:
    async with conn.open_sender(address) as sender:
        await sender.send("tea")


async def test_subscriptions_count_and_so_do_those_that_have_ended() -> None:
    container = Container()
    container.add_topic("prices")
    async with (
        container.connect() as conn,
        conn.open_receiver("prices", credit=1) as one,
        conn.open_receiver("prices", credit=0),
    ):
        await conn_send(conn, "prices")
        (await one.receive()).accept()
        await wait_all_tasks_blocked()
        found = at_once(container)
        assert (found.topics, found.subscriptions, found.backlog) == (1, 2, 1)
        assert (found.messages.arrived, found.messages.acknowledged) == (2, 1)
    found = at_once(container)
    assert (found.subscriptions, found.backlog) == (0, 0)
    assert (found.messages.arrived, found.messages.acknowledged) == (2, 1)
    container.remove_node("prices")
    assert (at_once(container).messages.arrived, at_once(container).topics) == (2, 0)


async def test_protocols_have_their_connections_and_links() -> None:
    container = Container()
    async with (
        container.connect() as conn,
        container.connect(),
        conn.open_sender("q"),
        conn.open_receiver("q"),
    ):
        found = at_once(container)
        of_10 = found.protocols["AMQP 1.0"]
        assert (of_10.connections, of_10.channels) == (2, 2)
        assert (of_10.senders, of_10.receivers) == (1, 1)
        assert (found.container.connections, found.entered) == ({"AMQP 1.0": 2}, 2)
        octets = found.container.totals["octets_in"]
        assert octets > 0
    found = at_once(container)
    assert (dict(found.protocols), found.entered) == ({}, 2)
    assert found.container.totals["octets_in"] > octets


async def test_exchanges_count_what_they_could_not_route_and_it_stays() -> None:
    container = Container()
    await container.management.declare_exchange("events", "fanout")
    assert not await container.management.publish("/exchanges/events", "tea")
    assert at_once(container).messages.unroutable == 1
    await container.management.delete_exchange("events")
    assert at_once(container).messages.unroutable == 1


async def test_reader_gets_no_name_that_it_may_not_see() -> None:
    container = Container(
        authorise=lambda access: (
            access.action == "monitor" and access.address in ("$management/container", "q-1")
        )
    )
    for name in ("q-1", "q-2"):
        container.add_queue(name)
    reader = container.management.on_behalf_of(Identity("ada", "PLAIN"))
    found = await reader.survey(lambda _: True)
    assert [queue.address for queue in found.queues] == ["q-1"]
    assert found.rest.queues == 1
    stranger = Container(authorise=lambda _: False).management.on_behalf_of(None)
    with pytest.raises(ManagementError) as refused:
        await stranger.survey()
    assert refused.value.reason == "forbidden"
    with pytest.raises(ManagementError):
        await stranger.check_store()


async def test_survey_of_many_queues_never_holds_the_loop(no_collector: None) -> None:
    container = Container(memory_limit=None)
    for number in range(10_000):
        container.add_queue(f"q-{number}")
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            began = thread_time()
            await trio.lowlevel.checkpoint()
            longest = max(longest, thread_time() - began)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        found = await container.management.survey(lambda _: True)
        nursery.cancel_scope.cancel()
    assert (len(found.queues), found.rest.queues) == (500, 9500)
    assert longest < 0.02  # a tenth of it where nothing else runs


@pytest.mark.logs_errors
async def test_store_is_checked_by_writing_to_it() -> None:
    store = MemoryStore()
    container = Container(store=store)
    async with container.connect():
        await container.management.check_store()
        store.failure = StoreError("the disk is gone")
        with pytest.raises(ManagementError, match="the disk is gone") as failed:
            await container.management.check_store()
        assert failed.value.reason == "store-failed"
        store.failure = None
    await Container().management.check_store()


async def test_cancelled_survey_changes_nothing() -> None:
    container = Container()
    await container.send("q", "tea")
    for number in range(2000):
        container.add_queue(f"q-{number}")
    with trio.CancelScope() as scope:
        scope.cancel()
        await container.management.survey(lambda _: True)
    assert scope.cancelled_caught
    assert at_once(container).rest.depth == 1


def test_pattern_is_of_the_whole_name() -> None:
    named = matching(["a*", "b"])
    assert named is not None
    assert [name for name in ("a", "ab", "b", "bc", "ca") if named(name)] == ["a", "ab", "b"]
    assert matching([]) is None


async def test_queue_counts_that_was_used_once_or_restored() -> None:
    store = MemoryStore()
    container = Container(store=store)
    queue, management = container.add_queue("q"), container.management
    assert queue.held.is_untouched
    await container.send("q", amqp.Message("x", durable=True))
    await container.send("q", amqp.Message("y", durable=True))
    await management.get("q", outcome="accept")
    assert at_once(container).messages.acknowledged == 1
    await management.purge("q")
    assert not queue.held.is_untouched
    assert at_once(container).messages.arrived == 2
    await container.send("q", amqp.Message("z", durable=True))

    container = Container(store=store)
    queue, management = container.add_queue("q"), container.management
    async with container.connect():
        assert (queue.held.is_untouched, queue.totals()["arrived"]) == (False, 0)
        await management.get("q", outcome="release")
        assert at_once(container).messages.delivered == 1
        await management.purge("q")
        assert (queue.held.is_untouched, at_once(container).messages.delivered) == (False, 1)
