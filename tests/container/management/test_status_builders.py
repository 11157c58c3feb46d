"""What management shows: each thing with its figures, in lists that are made lazily."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import fields
from functools import partial
from time import thread_time

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Container
from trio_amqp10.container.management import ConnectionStatus, ManagementError, QueueStatus
from trio_amqp10.container.management.status_builders import CONNECTION_READERS, QUEUE_READERS
from trio_amqp10.container.virtual_hosts import VirtualHosts
from trio_amqp10.sasl import Identity


async def test_queue_shows_its_depth_and_its_totals() -> None:
    now = 1000.0
    container = Container("shop", wall_clock=lambda: now)
    container.add_queue("q", delivery_limit=2, dead_letter="dead")
    for number in range(4):
        await container.send("q", amqp.Message(number, priority=9 - number))
        now += 10
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        receiver.grant(3)
        one, two, three = await receiver.receive_many(3)
        one.accept()
        two.modify(delivery_failed=True)
        three.reject()
        await wait_all_tasks_blocked()
        shown = await container.management.queue("q")
        assert (shown.depth, shown.ready, shown.unacked, shown.consumers) == (2, 2, 0, 1)
        assert (shown.arrived, shown.delivered, shown.acknowledged, shown.redelivered) == (4, 3, 1, 0)
        assert (shown.dead_letters["rejected"], shown.dead_letters["expired"]) == (1, 0)
        assert shown.oldest == 30  # of the one that was sent second, and came back
        receiver.grant(1)
        again = await receiver.receive()
        shown = await container.management.queue("q")
        assert (shown.unacked, shown.redelivered, shown.delivered) == (1, 1, 4)
        assert (shown.virtual_host, shown.rules.dead_letter, shown.durable) == ("shop", "dead", False)
        again.accept()


async def test_declared_queue_shows_how_it_was_declared() -> None:
    container = Container()
    management = container.management
    await management.declare_queue("tasks", {"x-message-ttl": 60_000}, auto_delete=True)
    await management.declare_exchange("events", "topic", internal=True)
    await management.bind("events", "tasks", "a.*")
    queue = await management.queue("tasks")
    assert (queue.name, queue.declared, queue.auto_delete, queue.exclusive) == ("tasks", True, True, False)
    assert (dict(queue.arguments), queue.rules.ttl, queue.kind) == (
        {"x-message-ttl": 60_000},
        60_000,
        "queue",
    )
    exchange = await management.exchange("events")
    assert (exchange.type, exchange.internal, exchange.bindings) == ("topic", True, 1)
    [binding] = [each async for each in management.bindings()]
    assert (binding.source, binding.destination, binding.key) == ("events", "tasks", "a.*")
    assert {each.name async for each in management.exchanges()} >= {"", "amq.topic", "events"}
    await management.unbind("events", "tasks", "a.*")
    assert await management.bindings().count() == 0


async def test_topic_shows_its_subscriptions() -> None:
    container = Container()
    container.add_topic("news")
    async with container.connect(container_id="reader") as conn, conn.open_receiver("news", credit=0):
        await container.send("news", "x")
        [topic] = [each async for each in container.management.topics()]
        [subscription] = [each async for each in container.management.subscriptions()]
    assert (topic.subscriptions, topic.depth, topic.arrived) == (1, 1, 1)
    assert (subscription.topic, subscription.depth, subscription.ready) == ("news", 1, 1)
    assert (subscription.container_id, subscription.durable, subscription.receivers) == ("reader", False, 1)


async def test_connection_shows_who_it_is_with_its_sessions_and_links() -> None:
    container = Container(wall_clock=lambda: 7.0)
    container.add_queue("q")
    users = amqp.sasl.Server(users={"ada": "enigma"})
    sasl = amqp.sasl.Plain("ada", "enigma")
    async with (
        container.connect(container_id="till", users=users, sasl=sasl) as conn,
        conn.open_sender("q", name="mine") as sender,
    ):
        await sender.send("x")
        [shown] = [each async for each in container.management.connections()]
        assert (shown.number, shown.container_id, shown.user) == (1, "till", "ada")
        assert (shown.protocol, shown.since, shown.state) == ("AMQP 1.0", 7.0, "OPENED")
        assert (shown.messages_in, shown.channels, shown.receivers) == (1, 1, 1)
        assert shown == await container.management.connection(1)
        [session] = [each async for each in container.management.channels()]
        assert (session.connection, session.user, session.prefetch) == (1, "ada", None)
        assert (session.incoming_window or 0) > 0
        [link] = [each async for each in container.management.links(role="receiver")]
        assert (link.identity, link.address, link.messages) == ("1/receiver/mine", "q", 1)
        assert await container.management.links(role="sender").count() == 0
        [user] = [each async for each in container.management.users()]
        assert (user.name, user.connections, user.links) == ("ada", 1, 1)
        status = await container.management.describe()
        assert (dict(status.connections), status.totals["messages_in"]) == ({"AMQP 1.0": 1}, 1)
    status = await container.management.describe()
    assert (dict(status.connections), status.totals["messages_in"]) == ({}, 1)


async def test_channel_of_0_9_1_shows_its_mode_and_its_consumers() -> None:
    container = Container()
    async with trio.open_nursery() as tasks:
        [listener] = await tasks.start(partial(container.serve, "amqp091://127.0.0.1:0"))
        async with amqp091.open_connection(listener.url) as conn, conn.open_channel() as channel:
            queue = await channel.declare_queue("q")
            async with queue.consume(prefetch=5):
                [shown] = [each async for each in container.management.channels()]
                assert (shown.protocol, shown.number, shown.consumers) == ("AMQP 0-9-1", 1, 1)
                [link] = [each async for each in container.management.links(role="sender")]
                assert (link.address, link.credit) == ("q", 5)
        status = await container.management.describe()
        assert status.listeners == (listener.url,)
        tasks.cancel_scope.cancel()
    assert (await container.management.describe()).listeners == ()


async def test_transaction_shows_its_work_until_it_is_over() -> None:
    container = Container()
    container.add_queue("q")
    management = container.management
    async with container.connect() as conn, conn.open_sender("q") as sender:
        async with conn.open_transaction() as transaction:
            await sender.send("x", transaction=transaction)
            [shown] = [each async for each in management.transactions()]
            assert (shown.connection, shown.messages, shown.answers, shown.committing) == (1, 1, 0, False)
            assert shown.octets > 0
        assert await management.transactions().count() == 0


async def test_store_shows_its_size_and_how_long_a_commit_takes(autojump_clock: MockClock) -> None:
    container = Container(store=MemoryStore(), keeps_all=True)
    container.add_queue("q")
    async with container.connect():
        await container.send("q", "x")
        status = await container.management.describe()
    assert status.store is not None
    assert (status.store.commits, status.store.failures, status.store.octets) == (1, 0, None)
    assert status.store.last_commit_seconds == 0


async def test_virtual_hosts_are_the_names_that_peers_ask_for() -> None:
    container = Container("one")
    assert [each.name async for each in container.management.virtual_hosts()] == ["/"]
    VirtualHosts({"a.example": container, "b.example": container})
    assert [each.name async for each in container.management.virtual_hosts()] == ["a.example", "b.example"]


async def test_list_is_read_in_pages_and_never_holds_the_loop(no_collector: None) -> None:
    container = Container(memory_limit=None)
    for number in range(10_000):
        container.add_queue(f"q{number}")
    longest, last = 0.0, thread_time()
    done = False

    async def watch() -> None:
        nonlocal longest, last
        while not done:
            last = thread_time()
            await trio.lowlevel.checkpoint()
            longest = max(longest, thread_time() - last)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await trio.lowlevel.checkpoint()
        queues = container.management.queues()
        page = await queues.page(9_000, 100)
        assert ([each.address for each in page.items][:2], page.more) == (["q9000", "q9001"], True)
        assert len([each async for each in queues]) == await queues.count() == 10_000
        assert not (await queues.page(10_000)).more
        done = True
    assert longest < 0.05  # a few milliseconds, on a machine that may be busy
    with pytest.raises(ManagementError, match="offset=-1"):
        await queues.page(-1)


async def test_one_without_permission_learns_nothing() -> None:
    rules = amqp.Rules(("ada", "monitor", "a*"), ("bob", "monitor", "$management/*"), ("eve", "manage", "b"))
    container = Container(authorise=rules)
    for name in ("a1", "a2", "b"):
        container.add_queue(name)
    of = container.management.on_behalf_of
    ada, bob, eve = (of(Identity(name=name, mechanism="PLAIN")) for name in ("ada", "bob", "eve"))
    assert [each.address async for each in ada.queues()] == ["a1", "a2"]
    assert [each.address async for each in eve.nodes()] == ["b"]
    assert [each async for each in of(None).queues()] == []
    assert isinstance(await ada.queue("a1"), QueueStatus)
    errors: list[str] = []
    for name in ("b", "nowhere"):
        with pytest.raises(ManagementError) as refused:
            await ada.queue(name)
        errors.append(str(refused.value).replace(name, "NAME"))
        assert (refused.value.reason, refused.value.status) == ("forbidden", 403)
    assert errors[0] == errors[1]
    assert [each async for each in bob.connections()] == []
    with pytest.raises(ManagementError, match="ada"):
        await ada.connections().count()
    assert await container.management.queues().count() == 3


@pytest.mark.parametrize("like_rabbitmq", [True, False])
async def test_declared_queue_is_a_queue_in_each_kind_of_broker(like_rabbitmq: bool) -> None:
    container = Container(strict=True)
    container.add_broker(like_rabbitmq=like_rabbitmq).declare_queue("orders")
    assert (await container.management.node("orders")).kind == "queue"
    assert await container.management.delete("orders", kind="queue") == 0


STEPS = ["send", "send for a moment", "accept", "reject", "release", "purge", "declare", "wait", "consume"]


@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=25),
    st.sampled_from([each.name for each in fields(QueueStatus)]),
)
def test_each_field_alone_is_that_of_the_status(steps: list[tuple[str, int]], field: str) -> None:
    async def run() -> None:
        container = Container(strict=True, wall_clock=lambda: 1000.0)
        broker, model = container.add_broker(), container.management
        for number in range(4):
            container.add_queue(f"q{number}", dead_letter="q0" if number == 1 else None)
        async with AsyncExitStack() as stack:
            for step, number in steps:
                address = f"q{number}"
                if step.startswith("send"):
                    await container.send(address, amqp.Message("x", ttl=None if step == "send" else 10))
                elif step in ("accept", "reject", "release"):
                    await model.get(address, 2, outcome=step)  # type: ignore[arg-type]
                elif step == "purge":
                    await model.purge(address)
                elif step == "declare":
                    broker.declare_queue(f"d{number}", durable=number != 2, auto_delete=number == 3)
                elif step == "wait":
                    await trio.sleep(0.02)
                else:  # Without a connection no timer expires messages.
                    conn = await stack.enter_async_context(container.connect())
                    await stack.enter_async_context(conn.open_receiver(address, credit=number))
                    await wait_all_tasks_blocked()
            listing = model.queues()
            things = await listing.collect()
            alone = list(map(listing.reader(field), things))
            assert alone == [getattr(listing.describe(thing), field) for thing in things]

    trio.run(run, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize("field", [each.name for each in fields(QueueStatus)])
async def test_messages_that_have_expired_are_in_no_field(field: str, autojump_clock: MockClock) -> None:
    container = Container(strict=True, wall_clock=lambda: 1000.0)
    container.add_queue("q", dead_letter="dead")
    container.add_queue("dead")
    for _ in range(3):
        await container.send("q", amqp.Message("x", ttl=10))
    listing = container.management.queues()
    thing, _ = await listing.collect()
    await trio.sleep(1)  # There is no connection, so no timer.
    alone = listing.reader(field)(thing)
    assert alone == getattr(listing.describe(thing), field)


def test_readers_are_those_of_fields() -> None:
    assert QUEUE_READERS.keys() <= {each.name for each in fields(QueueStatus)}
    assert CONNECTION_READERS.keys() <= {each.name for each in fields(ConnectionStatus)}


@pytest.mark.parametrize("field", [each.name for each in fields(ConnectionStatus)])
async def test_each_field_of_a_connection_alone_is_that_of_its_status(field: str) -> None:
    container = Container("box")
    async with container.connect(container_id="one"), container.connect(container_id="two"):
        listing = container.management.connections()
        things = await listing.collect()
        alone = list(map(listing.reader(field), things))
        assert alone == [getattr(listing.describe(thing), field) for thing in things]
        assert len(things) == 2
