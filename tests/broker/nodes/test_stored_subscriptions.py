"""Subscriptions with a store: who subscribed for good is still there after a restart, with what came meanwhile."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies
from trio_amqp10 import Container, MemoryStore, StoreError, StoreFullError
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source, TerminusDurability
from trio_amqp10.amqp10.wire.values import Described, Symbol, UInt
from trio_amqp10.broker.nodes import message_store, stored_rest
from trio_amqp10.broker.nodes.message_store import MESSAGES, SUBSCRIPTIONS
from trio_amqp10.broker.nodes.watermark import OVERHEAD

from .test_message_store import HeldStore, durable, stored

NO_LOCAL = {Symbol("no-local"): Described(Symbol("apache.org:no-local-filter:list"), [])}


def for_good(**fields: Any) -> Source:
    return Source(
        address="news",
        durable=TerminusDurability.UNSETTLED_STATE,
        expiry_policy=ExpiryPolicy.NEVER,
        **fields,
    )


def made(store: MemoryStore, **rules: Any) -> tuple[Container, amqp.Topic]:
    container = Container(store=store)
    return container, container.add_topic("news", **rules)


async def subscribe(container: Container, source: Source, *, leave: bool = True) -> None:
    """Attach once; and detach, or close."""
    async with container.connect(container_id="ada") as conn:
        receiver = await conn.open_receiver("news", name="mine", source=source).__aenter__()
        if leave:
            await receiver.detach()
        else:
            await receiver.aclose()
        await wait_all_tasks_blocked()


async def received(container: Container, source: Source, count: int) -> list[Any]:
    async with (
        container.connect(container_id="ada") as conn,
        conn.open_receiver("news", name="mine", source=source) as receiver,
    ):
        return await bodies(receiver, count)


async def test_durable_subscription_gathers_on_when_the_container_starts_again() -> None:
    store = MemoryStore()
    container, _ = made(store)
    await subscribe(container, for_good())
    await container.send("news", durable("a"))
    await container.send("news", "gone with the process")
    container, topic = made(store)
    await container.send("news", durable("b"))
    (subscription,) = topic.subscriptions.values()
    assert subscription.subscription_terms.lasting == math.inf
    assert stored(store) == ["a", "b"]
    assert await received(container, for_good(), 2) == ["a", "b"]
    assert stored(store) == []


async def test_subscription_that_is_attached_again_durable_keeps_what_it_has() -> None:
    store = MemoryStore()
    container, topic = made(store)
    await subscribe(container, Source(address="news", expiry_policy=ExpiryPolicy.NEVER))
    await container.send("news", durable("a"))
    await container.send("news", "gone with the process")
    assert stored(store) == []
    await subscribe(container, for_good())
    await container.send("news", durable("b"))
    assert stored(store) == ["a", "b"]
    assert topic.stores_messages
    container, _ = made(store)
    assert await received(container, for_good(), 2) == ["a", "b"]
    assert stored(store) == []


@pytest.mark.logs_errors
async def test_subscription_that_cannot_become_durable_is_ended() -> None:
    store = MemoryStore()
    container, topic = made(store)
    await subscribe(container, Source(address="news", expiry_policy=ExpiryPolicy.NEVER))
    await container.send("news", durable("a"))
    store.failure = StoreFullError("no room")
    with pytest.raises(amqp.LinkDetachedError, match="the store is full"):
        async with (
            container.connect(container_id="ada") as conn,
            conn.open_receiver("news", name="mine", source=for_good(), credit=0) as receiver,
        ):
            await receiver.receive()
    assert not topic.subscriptions


async def test_lifetime_that_a_later_attach_gives_is_that_after_a_restart() -> None:
    store = MemoryStore()
    container, _ = made(store)
    for seconds in (60, 6000):
        source = for_good()
        source.expiry_policy, source.timeout = ExpiryPolicy.LINK_DETACH, UInt(seconds)
        await subscribe(container, source)
    container, topic = made(store)
    await container.send("news", "after the restart")
    (subscription,) = topic.subscriptions.values()
    assert subscription.subscription_terms.lasting == 6000


async def test_topic_that_is_added_late_takes_its_subscriptions_back() -> None:
    store = MemoryStore()
    container, _ = made(store)
    await subscribe(container, for_good())
    await container.send("news", durable("a"))
    container = Container(store=store)
    async with container.connect():
        container.add_topic("news")
        assert await received(container, for_good(), 1) == ["a"]


async def test_message_that_is_read_to_make_room_weighs_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_rest, "PAGE", 2)
    monkeypatch.setattr(message_store, "HEADS", 0)
    store = MemoryStore()
    container, _ = made(store, max_backlog=6, overflow="drop-oldest")
    await subscribe(container, for_good())
    for number in range(6):
        await container.send("news", durable(f"{number}"))
    container, topic = made(store, max_backlog=6, overflow="drop-oldest")
    await container.send("news", "6")  # It is not stored, so it stays in memory.
    (subscription,) = topic.subscriptions.values()
    while subscription.page_in_now():
        pass
    assert container.watermark.octets == subscription.octets + 6 * OVERHEAD
    assert await received(container, for_good(), 6) == [*"123456"]


async def test_topic_that_drops_keeps_the_latest_of_those_that_go_to_the_disk_together() -> None:
    store = MemoryStore()
    container, topic = made(store, max_backlog=3, overflow="drop-oldest")
    await subscribe(container, for_good())
    async with container.connect() as conn, conn.open_sender("news") as sender:
        await wait_all_tasks_blocked()
        for each in [sender.send_nowait(durable(f"{number}")) for number in range(8)]:
            assert await each.outcome() == amqp.Accepted()
    (subscription,) = topic.subscriptions.values()
    assert len(subscription) == 3
    assert await received(container, for_good(), 3) == [*"567"]


async def test_durable_subscription_keeps_its_filter_when_the_container_starts_again() -> None:
    store = MemoryStore()
    container, _ = made(store)
    await subscribe(container, for_good(filter=NO_LOCAL))
    container, topic = made(store)
    async with container.connect(container_id="ada") as conn, conn.open_sender("news") as sender:
        await sender.send(durable("my own"))
    await container.send("news", durable("another's"))
    before = list(topic.subscriptions.values())
    async with (
        container.connect(container_id="ada") as conn,
        conn.open_receiver("news", name="mine", source=for_good(filter=NO_LOCAL)) as receiver,
    ):
        assert await bodies(receiver, 1) == ["another's"]
        assert list(topic.subscriptions.values()) == before


async def test_durable_subscription_is_forgotten_when_its_link_is_closed() -> None:
    store = MemoryStore()
    container, _ = made(store)
    await subscribe(container, for_good())
    await container.send("news", durable("a"))
    await subscribe(container, for_good(), leave=False)
    assert store.rows(SUBSCRIPTIONS) == []
    assert store.rows(MESSAGES) == []


async def test_durable_subscriptions_are_forgotten_when_their_topic_is_removed() -> None:
    store = MemoryStore()
    container, _ = made(store)
    await subscribe(container, for_good())
    await container.send("news", durable("a"))
    container.remove_node("news")
    await wait_all_tasks_blocked()
    assert store.rows(SUBSCRIPTIONS) == []
    assert store.rows(MESSAGES) == []


async def test_subscription_is_not_stored_when_it_does_not_ask_for_it() -> None:
    store = MemoryStore()
    container, _ = made(store)
    await subscribe(container, Source(address="news", expiry_policy=ExpiryPolicy.NEVER))
    await container.send("news", durable("a"))
    assert store.rows(SUBSCRIPTIONS) == []
    assert store.rows(MESSAGES) == []


async def test_subscription_waits_anew_when_the_container_starts_again(autojump_clock: Any) -> None:
    store = MemoryStore()
    source = Source(
        address="news",
        durable=TerminusDurability.CONFIGURATION,
        timeout=5,
        expiry_policy=ExpiryPolicy.LINK_DETACH,
    )
    container, _ = made(store)
    await subscribe(container, source)
    await trio.sleep(3)
    container, topic = made(store)
    await container.send("news", durable("a"))
    await trio.sleep(4)
    await container.send("news", durable("b"))
    assert len(topic.subscriptions) == 1
    await trio.sleep(2)
    await container.send("news", durable("c"))
    assert len(topic.subscriptions) == 0
    await wait_all_tasks_blocked()
    assert store.rows(SUBSCRIPTIONS) == []


@pytest.mark.logs_errors
async def test_topic_accepts_a_durable_message_when_it_is_stored_for_all() -> None:
    store = HeldStore()
    container, _ = made(store)
    await subscribe(container, for_good())
    store.holding = True
    async with container.connect() as conn, conn.open_sender("news") as sender:
        delivery = await sender.transmit(durable("a"))
        await sender.send("not durable")
        await wait_all_tasks_blocked()
        assert delivery.state is None
        await store.write_all()
        assert isinstance(await delivery.outcome(), amqp.Accepted)
        store.failure = StoreFullError("full")
        with pytest.raises(amqp.DeliveryRejectedError, match="resource-limit-exceeded"):
            await sender.send(durable("b"))
        store.failure = None
    assert await received(container, for_good(), 2) == ["a", "not durable"]


async def test_transaction_reaches_every_subscription_when_it_is_committed() -> None:
    store = HeldStore()
    container, _ = made(store)
    await subscribe(container, for_good())
    async with (
        container.connect() as conn,
        conn.open_receiver("news") as reader,
        conn.open_sender("news") as sender,
        trio.open_nursery() as nursery,
    ):
        done = trio.Event()

        async def work() -> None:
            async with conn.open_transaction() as txn:
                await sender.send(durable("a"), transaction=txn)
            done.set()

        store.holding = True
        nursery.start_soon(work)
        await wait_all_tasks_blocked()
        assert not done.is_set()
        assert len(store.held) == 1
        await store.write_all()
        assert done.is_set()
        assert await bodies(reader, 1) == ["a"]
    assert stored(store) == ["a"]
    assert await received(container, for_good(), 1) == ["a"]


@pytest.mark.logs_errors
async def test_container_leaves_a_subscription_alone_when_its_filter_cannot_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    container, _ = made(store)
    await subscribe(container, for_good())
    (row,) = store.rows(SUBSCRIPTIONS)
    store._tables[SUBSCRIPTIONS][row[0]] = (*row[:-1], b"\xc1")
    container, topic = made(store)
    async with container.connect():
        assert not topic.subscriptions
    assert "of the table subscriptions cannot be read, and is set aside" in caplog.text
    assert len(store.rows(SUBSCRIPTIONS)) == 1


@pytest.mark.logs_errors
@pytest.mark.parametrize(
    ("failure", "condition"),
    [(StoreFullError("full"), "resource-limit-exceeded"), (StoreError("broken"), "internal-error")],
)
async def test_subscription_that_cannot_be_stored_is_ended(
    failure: StoreError, condition: str, autojump_clock: MockClock
) -> None:
    store = MemoryStore()
    container, topic = made(store)
    store.failure = failure
    async with container.connect(container_id="ada") as conn:
        with pytest.raises((LinkRefusedError, amqp.LinkDetachedError), match=condition):
            async with conn.open_receiver("news", name="mine", source=for_good()) as receiver:
                with trio.fail_after(5):
                    await receiver.receive()
        assert not topic.subscriptions
        store.failure = None
        async with conn.open_receiver("news", name="mine", source=for_good()) as receiver:
            await container.send("news", durable("a"))
            await receiver.detach()
    container, _ = made(store)
    assert await received(container, for_good(), 1) == ["a"]
