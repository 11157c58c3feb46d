"""Transactions with a store: one commit, before the discharge is answered, and nothing of it before that."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of
from trio_amqp10 import Container, Message, StoreFullError
from trio_amqp10.broker.nodes.message_store import MESSAGES, QueueStore

from .nodes.test_message_store import HeldStore, contents, durable, stored


class CountingStore(HeldStore):
    """Remembers its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Any] = []

    def write(self, batch: Any, done: Any) -> None:
        self.batches.append(dict(batch.get(MESSAGES, {})))
        super().write(batch, done)


async def test_transaction_is_one_commit_that_the_discharge_waits_for() -> None:
    store = CountingStore()
    container = Container(store=store)
    async with (
        container.connect() as conn,
        conn.open_sender("in") as sender,
        conn.open_sender("out") as out,
        conn.open_receiver("in") as receiver,
    ):
        await fill(conn, "in", durable("old 1"), durable("old 2"))
        taken = [await receiver.receive(), await receiver.receive()]
        store.batches.clear()
        store.holding = True
        async with trio.open_nursery() as nursery:
            done = trio.Event()

            async def work() -> None:
                async with conn.open_transaction() as txn:
                    await out.send(durable("new 1"), transaction=txn)
                    await out.send("new and not durable", transaction=txn)
                    await sender.send(durable("new 2"), transaction=txn)
                    for delivery in taken:
                        delivery.accept(transaction=txn)
                    assert store.batches == []
                done.set()

            nursery.start_soon(work)
            await wait_all_tasks_blocked()
            assert not done.is_set()
            (batch,) = store.batches
            assert sorted(row is None for row in batch.values()) == [False, False, True, True]
            assert stored(store) == ["old 1", "old 2"]
            assert queue_of(container, "out").available == 0
            await store.write_all()
            assert done.is_set()
        assert stored(store) == ["new 2", "new 1"]
        assert await contents(container, "out") == ["new 1", "new and not durable"]
        assert await bodies(receiver, 1) == ["new 2"]


@pytest.mark.logs_errors
async def test_transaction_is_rolled_back_when_the_store_is_full() -> None:
    store = CountingStore()
    container = Container(store=store)
    async with (
        container.connect() as conn,
        conn.open_sender("out") as sender,
        conn.open_receiver("in") as receiver,
    ):
        await fill(conn, "in", durable("old"))
        delivery = await receiver.receive()
        store.failure = StoreFullError("full")
        with pytest.raises(amqp.TransactionRolledBackError, match="store"):
            async with conn.open_transaction() as txn:
                await sender.send(durable("new"), transaction=txn)
                await sender.send("new and not durable", transaction=txn)
                delivery.accept(transaction=txn)
        store.failure = None
        assert await contents(container, "out") == []
        assert stored(store) == ["old"]
    assert await contents(container, "in") == ["old"]
    assert stored(store) == ["old"]


async def test_transaction_goes_above_the_length_of_a_queue_when_it_is_committed() -> None:
    store = CountingStore()
    container = Container(store=store)
    container.add_queue("q", max_length=1)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        async with conn.open_transaction() as txn:
            for number in range(3):
                await sender.send(durable(number), transaction=txn)
        assert stored(store) == [0, 1, 2]


async def test_transaction_counts_when_its_links_go_while_it_is_committed(autojump_clock: Any) -> None:
    store = CountingStore()
    container = Container(store=store, transaction_timeout=None)
    await container.send("in", durable("old"))
    await container.send("in", durable("acquired and not spoken of"))
    with trio.CancelScope() as scope:
        async with container.connect() as conn:
            sender = await conn.open_sender("out").__aenter__()
            receiver = await conn.open_receiver("in", credit=0).__aenter__()
            txn = await conn.open_transaction().__aenter__()
            receiver.grant(1)
            (await receiver.receive()).accept(transaction=txn)
            await sender.send(durable("new"), transaction=txn)
            store.holding = True
            async with trio.open_nursery() as nursery:
                nursery.start_soon(txn.commit)
                await wait_all_tasks_blocked()
                scope.cancel()
    await store.write_all()
    assert stored(store) == ["acquired and not spoken of", "new"]
    assert await contents(container, "in") == ["acquired and not spoken of"]
    assert await contents(container, "out") == ["new"]


async def test_handler_of_the_container_gets_its_messages_when_the_commit_is_done() -> None:
    store = CountingStore()
    container = Container(store=store)
    got: list[Any] = []

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        got.append(delivery.message.body)

    async with (
        container.connect() as conn,
        conn.open_sender("q") as sender,
        conn.open_sender("audit") as auditor,
    ):
        async with trio.open_nursery() as nursery:

            async def work() -> None:
                async with conn.open_transaction() as txn:
                    await sender.send(durable("a"), transaction=txn)
                    await auditor.send("b", transaction=txn)

            store.holding = True
            nursery.start_soon(work)
            await wait_all_tasks_blocked()
            assert got == []
            await store.write_all()
        assert got == ["b"]
        assert stored(store) == ["a"]


async def test_what_a_receiver_releases_in_a_transaction_is_available_when_it_is_committed() -> None:
    store = CountingStore()
    container = Container(store=store)
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "q", durable("a"), durable("b"))
        first, second = await receiver.receive(), await receiver.receive()
        async with conn.open_transaction() as txn:
            first.modify(delivery_failed=True, undeliverable_here=True, transaction=txn)
            second.reject(transaction=txn)
        await wait_all_tasks_blocked()
        (row,) = store.rows(MESSAGES)
        assert Message.from_payload(row[4]).delivery_count == 1
    assert await contents(container) == ["a"]


@pytest.mark.logs_errors
async def test_transaction_shows_nothing_of_itself_when_the_store_fails_whatever_it_sends_first() -> None:
    store = CountingStore()
    container = Container(store=store)
    async with (
        container.connect() as conn,
        conn.open_sender("first") as first,
        conn.open_sender("second") as second,
    ):
        store.failure = StoreFullError("full")
        with pytest.raises(amqp.TransactionRolledBackError, match="store"):
            async with conn.open_transaction() as txn:
                await first.send("not durable, and the store is idle", transaction=txn)
                await second.send(durable("new"), transaction=txn)
        store.failure = None
        assert await contents(container, "first") == await contents(container, "second") == []


@pytest.mark.logs_errors
async def test_transaction_is_rolled_back_when_a_node_that_stores_fails_on_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Fragile(amqp.Queue):
        fails = False

        def on_arrivals(self, inlet: Any) -> None:
            if self.fails:
                raise ZeroDivisionError
            super().on_arrivals(inlet)

    store = CountingStore()
    container = Container(store=store)
    await container.send("in", durable("old"))
    fragile = Fragile("fragile", queue_store=QueueStore(container._message_store, "fragile"))  # type: ignore[arg-type]
    container.add_node(fragile)
    async with (
        container.connect() as conn,
        conn.open_sender("out") as out,
        conn.open_sender("fragile") as sender,
        conn.open_receiver("in") as receiver,
    ):
        delivery = await receiver.receive()
        with pytest.raises(amqp.TransactionRolledBackError, match="failed"):
            async with conn.open_transaction() as txn:
                await out.send(durable("new"), transaction=txn)
                await sender.send(durable("lost?"), transaction=txn)
                delivery.accept(transaction=txn)
                fragile.fails = True
        assert stored(store) == ["old"]
        assert await contents(container, "out") == []
        fragile.fails = False
        delivery = await receiver.receive()
        async with conn.open_transaction() as txn:
            await out.send(durable("new"), transaction=txn)
            await sender.send(durable("lost?"), transaction=txn)
            delivery.accept(transaction=txn)
        assert stored(store) == ["lost?", "new"]
    caplog.clear()
