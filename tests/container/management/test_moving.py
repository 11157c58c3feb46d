"""Messages that management publishes, looks at, takes, moves and sends back."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.container.helpers import queue_of
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Container
from trio_amqp10.container.management import ManagementError
from trio_amqp10.container.management.status import Redriven
from trio_amqp10.sasl import Identity

if TYPE_CHECKING:
    from trio.testing import MockClock


async def filled(count: int, **options: Any) -> Container:
    """A container with the queues ``a``, of so many messages, and ``b``."""
    container = Container(**options)
    container.add_queue("a")
    container.add_queue("b")
    for number in range(count):
        await container.send("a", amqp.Message(number, application_properties={"n": number}, durable=True))
    return container


async def bodies(container: Container, address: str) -> list[Any]:
    return [each.message.body for each in await container.management.browse(address, 1_000_000)]


async def add_letters_of_two(container: Container) -> None:
    """Add the queues one and two, and a dead letter of each."""
    container.add_queue("dead")
    for name in ("one", "two"):
        container.add_queue(name, dead_letter="dead")
        await container.management.publish(name, name)
        await container.management.get(name, outcome="reject")


async def test_message_is_published_to_a_queue_and_through_an_exchange() -> None:
    container = await filled(0)
    management = container.management
    assert await management.publish("a", "x")
    container.add_broker()
    await management.bind("amq.topic", "b", "k.*")
    assert await management.publish("/exchanges/amq.topic/k.1", amqp.Message("y"))
    assert not await management.publish("/exchanges/amq.topic/other", "z")
    assert (await bodies(container, "a"), await bodies(container, "b")) == (["x"], ["y"])
    with pytest.raises(ManagementError, match="no node 'nowhere'"):
        await management.publish("nowhere", "x")
    container.add_queue("small", max_length=1, overflow="reject")
    await management.publish("small", 1)
    with pytest.raises(ManagementError, match="full") as refused:
        await management.publish("small", 2)
    assert refused.value.reason == "refused"


async def test_browsing_takes_nothing_and_shows_all_of_a_message() -> None:
    container = await filled(5)
    shown = await container.management.browse("a", 2, offset=1)
    assert [each.message.body for each in shown] == [1, 2]
    assert (shown[0].queue, shown[0].place, shown[0].priority, shown[0].redelivered) == ("a", 1, 4, False)
    assert (shown[0].expires, shown[0].died_in, shown[0].octets > 0) == (None, None, True)
    shown = await container.management.browse("a", filter="n > 2")
    assert [each.message.body for each in shown] == [3, 4]
    assert queue_of(container, "a").available == 5
    with pytest.raises(ManagementError, match="filter"):
        await container.management.browse("a", filter="n >")


@pytest.mark.parametrize(("outcome", "left"), [("accept", 3), ("release", 5), ("reject", 3)])
async def test_message_is_taken_with_an_outcome(outcome: Any, left: int) -> None:
    container = await filled(5)
    got = await container.management.get("a", 2, outcome=outcome)
    assert [each.message.body for each in got] == [0, 1]
    assert queue_of(container, "a").available == len(queue_of(container, "a")) == left
    got = await container.management.get("a", 9, filter="n = 4", outcome=outcome)
    assert [each.message.body for each in got] == [4]


async def test_move_takes_all_or_some_or_those_that_match() -> None:
    container = await filled(1000)
    move = container.management.move
    assert await move("a", "b", 3) == 3
    assert await bodies(container, "b") == [0, 1, 2]
    assert await move("a", "b", filter="n >= 900") == 100
    assert (await bodies(container, "b"))[3:] == list(range(900, 1000))
    assert await move("a", "b") == 897
    assert Counter(await bodies(container, "b")) == Counter(range(1000))
    assert (await bodies(container, "a"), await move("a", "b")) == ([], 0)
    with pytest.raises(ManagementError, match="both"):
        await move("a", "a")
    with pytest.raises(ManagementError, match="no queue 'nowhere'"):
        await move("nowhere", "a")
    with pytest.raises(ManagementError, match="no node 'nowhere'"):
        await move("a", "nowhere")


async def test_move_with_a_store_deletes_and_writes_in_the_same_commits() -> None:
    store = MemoryStore()
    container = await served(store, 250)
    async with container.connect():
        commits: list[tuple[int, int]] = []
        write = store.write

        def noting(batch: Any, done: Any) -> None:
            rows = [row for changes in batch.values() for row in changes.values()]
            commits.append((sum(row is None for row in rows), sum(row is not None for row in rows)))
            write(batch, done)

        store.write = noting  # type: ignore[method-assign]
        assert await container.management.move("a", "b") == 250
        assert sum(deleted for deleted, _ in commits) == 250
        assert all(deleted == written > 0 for deleted, written in commits)
    again = Container(store=store, keeps_all=True)
    again.add_queue("a")
    again.add_queue("b")
    async with again.connect():
        assert await bodies(again, "b") == list(range(250))
        assert await bodies(again, "a") == []


async def served(store: MemoryStore, count: int) -> Container:
    container = Container(store=store, keeps_all=True)
    container.add_queue("a")
    container.add_queue("b")
    async with container.connect() as conn, conn.open_sender("a") as sender:
        for number in range(count):
            await sender.send(number)
    return container


async def test_move_to_a_full_queue_moves_what_fits() -> None:
    container = await filled(10)
    container.add_queue("small", max_length=3)
    with pytest.raises(ManagementError, match=r"full.*3 messages were moved before"):
        await container.management.move("a", "small")
    container.add_queue("strict", max_length=3, overflow="reject")
    with pytest.raises(ManagementError, match="room"):
        await container.management.move("a", "strict")
    assert await bodies(container, "small") == [0, 1, 2]
    assert (await bodies(container, "a"), await bodies(container, "strict")) == (list(range(3, 10)), [])


async def test_move_through_an_exchange_reaches_all_bound_queues_or_moves_nothing() -> None:
    container = await filled(3)
    container.add_broker()
    with pytest.raises(ManagementError, match="no queue"):
        await container.management.move("a", "/exchanges/amq.fanout")
    assert await bodies(container, "a") == [0, 1, 2]
    for name in ("one", "two"):
        await container.management.declare_queue(name)
        await container.management.bind("amq.fanout", name)
    assert await container.management.move("a", "/exchanges/amq.fanout") == 3
    assert await bodies(container, "one") == await bodies(container, "two") == [0, 1, 2]


async def test_cancelled_move_leaves_every_message_at_one_of_the_two() -> None:
    container = await filled(1000)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def cut() -> None:
                await trio.lowlevel.checkpoint()
                await trio.lowlevel.checkpoint()
                scope.cancel()

            nursery.start_soon(cut)
            await container.management.move("a", "b")
    found = await bodies(container, "a") + await bodies(container, "b")
    assert sorted(found) == list(range(1000))
    assert queue_of(container, "a").leased == 0


messages = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=40)
moves = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from("abc"),
        st.none() | st.integers(0, 30),
        st.none() | st.integers(0, 3),
    ),
    max_size=8,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=messages, moved=moves, stored=st.booleans())
def test_moves_keep_every_message_once(
    sent: list[tuple[int, int]], moved: list[tuple[str, str, int | None, int | None]], stored: bool
) -> None:
    async def main() -> None:
        container = Container(store=MemoryStore() if stored else None, keeps_all=stored)
        for name in "abc":
            container.add_queue(name)
        async with container.connect() as conn:
            async with conn.open_sender("a") as sender:
                for number, (priority, colour) in enumerate(sent):
                    properties = {"colour": colour}
                    await sender.send(
                        amqp.Message(number, priority=priority, application_properties=properties)
                    )
            for source, target, count, wanted in moved:
                before = queue_of(container, source).available
                chosen = None if wanted is None else f"colour = {wanted}"
                if source == target:
                    continue
                found = await container.management.move(source, target, count, filter=chosen)
                assert found <= (before if count is None else count)
                assert queue_of(container, source).available == before - found
            everything = [body for name in "abc" for body in await bodies(container, name)]
            assert sorted(everything) == list(range(len(sent)))

    trio.run(main)


async def test_dead_letters_go_back_to_where_they_died() -> None:
    container = Container()
    container.add_queue("dead")
    for name in ("one", "two", "gone"):
        container.add_queue(name, dead_letter="dead", delivery_limit=3)
        await container.send(name, name)
    await container.management.declare_queue(
        "old", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    )
    await container.management.publish("old", "old")
    for name in ("one", "two", "gone", "old"):
        await container.management.get(name, outcome="reject")
    await container.send("dead", "sent by hand")
    await container.management.delete("gone")
    died = {each.message.body: each.died_in for each in await container.management.browse("dead")}
    assert died == {"one": "one", "two": "two", "gone": "gone", "old": "old", "sent by hand": None}
    done = await container.management.redrive("dead")
    assert (dict(done.moved), done.left) == ({"one": 1, "two": 1, "old": 1}, 2)
    assert await bodies(container, "dead") == ["gone", "sent by hand"]
    for name in ("one", "two", "old"):
        assert await bodies(container, name) == [name]
    [again] = await container.management.browse("old")
    assert (again.failures, again.redelivered) == (0, False)


async def test_dead_letters_of_one_queue_go_back_by_its_name_or_address() -> None:
    container = Container()
    model = container.management
    container.add_queue("dead")
    for name in ("one", "two"):
        container.add_queue(name, dead_letter="dead")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    container.add_broker().declare_queue("old", letters)
    old = model.queue_address("old")
    for number in range(3):
        for address in ("one", "two", old):
            await model.publish(address, f"{address} {number}")
            await model.get(address, outcome="reject")
    assert await model.redrive("dead", 1, died_in="two") == Redriven(moved={"two": 1}, left=8)
    assert await model.redrive("dead", died_in="two") == Redriven(moved={"two": 2}, left=6)
    assert await model.redrive("dead", died_in="two") == Redriven(moved={}, left=6)
    assert await bodies(container, "two") == ["two 0", "two 1", "two 2"]
    assert await model.redrive("dead", 1, died_in="old") == Redriven(moved={old: 1}, left=5)
    assert await model.redrive("dead", died_in=old) == Redriven(moved={old: 2}, left=3)
    with pytest.raises(ManagementError, match="no queue 'nowhere', to which dead letters could go back"):
        await model.redrive("dead", died_in="nowhere")
    with pytest.raises(ManagementError, match="no queue 'dead'"):
        await model.redrive("dead", died_in="dead")
    assert await bodies(container, "dead") == ["one 0", "one 1", "one 2"]


async def test_one_who_redrives_those_of_a_queue_needs_to_send_to_it_alone() -> None:
    rules = amqp.Rules(("ada", "receive", "dead"), ("ada", "send", "one"))
    container = Container(authorise=rules)
    await add_letters_of_two(container)
    ada = container.management.on_behalf_of(Identity(name="ada", mechanism="PLAIN"))
    for name in ("two", "nowhere"):
        with pytest.raises(ManagementError, match=f"'ada' may not send to '{name}'"):
            await ada.redrive("dead", died_in=name)
    assert dict((await ada.redrive("dead", died_in="one")).moved) == {"one": 1}
    assert await bodies(container, "dead") == ["two"]


async def test_history_of_a_letter_that_dies_again_names_the_last_queue_and_counts() -> None:
    container = Container()
    container.add_queue("plain", dead_letter="dead")
    container.add_queue("dead")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    await container.management.declare_queue("declared", letters)
    await container.send("plain", "x")
    await container.management.get("plain", outcome="reject")
    await container.management.move("dead", "declared")
    await container.management.get("declared", outcome="reject")
    [letter] = await container.management.browse("dead")
    assert letter.died_in == "declared"
    for times in (2, 3):
        assert dict((await container.management.redrive("dead")).moved) == {"declared": 1}
        await container.management.get("declared", outcome="reject")
        [letter] = await container.management.browse("dead")
        assert letter.message.annotations["x-opt-deaths"][0]["count"] == times


async def test_one_who_redrives_needs_to_send_to_each_queue() -> None:
    rules = amqp.Rules(
        ("ada", "receive", "dead"),
        ("ada", "send", "one"),
        ("eve", "manage", "dead one two"),
        ("bob", "send", "one"),
    )
    container = Container(authorise=rules)
    await add_letters_of_two(container)
    of = container.management.on_behalf_of
    ada, eve, bob = (of(Identity(name=name, mechanism="PLAIN")) for name in ("ada", "eve", "bob"))
    with pytest.raises(ManagementError, match="'ada' may not send to 'two'"):
        await ada.redrive("dead")
    assert len(await bodies(container, "dead")) == 2
    for call in (
        partial(bob.redrive, "dead"),
        partial(bob.move, "dead", "one"),
        partial(bob.browse, "dead"),
        partial(bob.get, "dead"),
        partial(bob.purge, "dead"),
    ):
        with pytest.raises(ManagementError, match="'bob' may not receive from 'dead'"):
            await call()
    with pytest.raises(ManagementError, match="'ada' may not send to 'two'"):
        await ada.move("dead", "two")
    assert dict((await eve.redrive("dead")).moved) == {"one": 1, "two": 1}


async def test_long_operations_leave_time_to_others(autojump_clock: MockClock) -> None:
    container = await filled(3000)
    container.add_queue("c")
    passes = 0

    async def watch() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await trio.lowlevel.checkpoint()
        management = container.management
        for call in (
            partial(management.browse, "a", 3000, filter="n < 0"),
            partial(management.move, "a", "b", filter="n > 10"),
            partial(management.get, "b", 1500, outcome="release"),
            partial(management.purge, "b"),
        ):
            passes = 0
            await call()
            assert passes >= 1
        nursery.cancel_scope.cancel()
