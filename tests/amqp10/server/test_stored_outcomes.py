"""A receiver that settles second is told only what the store has (2.6.12, 2.8.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.broker.nodes.test_message_store import HeldStore, durable, stored
from tests.container.helpers import fill
from trio_amqp10.broker.stores import StoreFullError

from .kept_links import lasting

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT: dict[str, dict[str, Any]] = {
    "for as long as the link": {"guarantee": "exactly-once"},
    "in memory": lasting(durable=False),
    "in the store": lasting(),
}
ENDS: dict[str, Callable[[amqp.Delivery], object]] = {
    "accepted": lambda delivery: delivery.accept(),
    "rejected": lambda delivery: delivery.reject("tests:no", "no"),
    "released": lambda delivery: delivery.release(),
    "modified": lambda delivery: delivery.modify(delivery_failed=True),
}


async def house(store: HeldStore, *messages: amqp.Message) -> amqp.Container:
    container = amqp.Container("house", store=store)
    container.add_queue("q", dead_letter="dead")
    container.add_queue("dead")
    async with container.connect() as conn:
        await fill(conn, "q", *messages)
    return container


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("end", ENDS)
async def test_outcome_is_settled_when_the_store_has_its_effect(kept: str, end: str) -> None:
    store = HeldStore()
    container = await house(store, *map(durable, "abc"))
    async with (
        container.connect() as conn,
        conn.open_receiver("q", prefetch=3, **KEPT[kept]) as receiver,
    ):
        deliveries = [await receiver.receive() for _ in range(3)]
        await wait_all_tasks_blocked()
        store.holding = True
        for delivery in deliveries:
            ENDS[end](delivery)
        await wait_all_tasks_blocked()
        assert store.held or end == "released"
        assert [delivery.settled for delivery in deliveries] == [not store.held] * 3
        await store.write_all()
        with trio.fail_after(1):
            for delivery in deliveries:
                await delivery.wait_settled()
        assert stored(store) == ([] if end == "accepted" else list("abc"))


@pytest.mark.logs_errors
@pytest.mark.parametrize("kept", KEPT)
async def test_outcome_that_could_not_be_stored_is_not_settled(kept: str) -> None:
    store = HeldStore()
    container = await house(store, durable("a"))
    async with container.connect() as conn:
        receiver = await conn.open_receiver("q", **KEPT[kept]).__aenter__()
        delivery = await receiver.receive()
        await wait_all_tasks_blocked()
        store.failure = StoreFullError("full")
        delivery.accept()
        with trio.fail_after(1), pytest.raises(amqp.LinkDetachedError) as detached:
            await delivery.wait_settled()
        assert detached.value.condition == "amqp:resource-limit-exceeded"


@pytest.mark.parametrize("kept", KEPT)
async def test_message_that_the_store_never_had_is_settled_at_once(kept: str) -> None:
    store = HeldStore()
    container = await house(store, amqp.Message("a"))
    async with container.connect() as conn, conn.open_receiver("q", **KEPT[kept]) as receiver:
        delivery = await receiver.receive()
        await wait_all_tasks_blocked()
        store.holding = True
        delivery.accept()
        with trio.fail_after(1):
            await delivery.wait_settled()
        await store.write_all()


async def test_link_that_resumes_is_told_only_what_the_store_has(autojump_clock: MockClock) -> None:
    store = HeldStore()
    container = await house(store, durable("a"))
    options = lasting(durable=False, store=amqp.MemoryTerminusStore())
    async with container.connect(container_id="program") as conn:
        receiver = await conn.open_receiver("q", **options).__aenter__()
        delivery = await receiver.receive()
        await conn.pump.abort()
    delivery.accept()
    store.holding = True
    async with container.connect(container_id="program") as conn, conn.open_receiver("q", **options):
        await trio.sleep(1)
        assert store.held
        assert not delivery.settled
        await store.write_all()
        with trio.fail_after(1):
            await delivery.wait_settled()
    assert stored(store) == []
