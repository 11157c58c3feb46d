"""Publishing through an exchange: the answer, and the messages in each queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.broker.nodes.test_consumers import NO_LOCAL
from tests.container.helpers import bodies, fill
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.broker.stores import group_commit as journal_module
from trio_amqp10.broker.stores.base import StoreFullError
from trio_amqp10.broker.stores.memory_store import MemoryStore
from trio_amqp10.broker.stores.sqlite_store import SqliteStore

from .stalled import fanned

if TYPE_CHECKING:
    from pathlib import Path


class Stalled(MemoryStore):
    """A store whose writes wait for ``go_on`` while it ``stalls``."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Any] = []
        self.stalls = False

    def write(self, batch: Any, done: Any) -> None:
        if self.stalls:
            self.waiting.append((batch, done))
        else:
            super().write(batch, done)

    def go_on(self) -> None:
        self.stalls = False
        for batch, done in self.waiting:
            super().write(batch, done)
        self.waiting.clear()


async def test_no_local_filters_messages_that_its_own_container_published_through_an_exchange() -> None:
    container = fanned(None, "a")
    source = Source(address="a", filter=NO_LOCAL)
    async with (
        container.connect(container_id="one") as one,
        container.connect(container_id="two") as other,
        one.open_receiver("a", source=source) as receiver,
    ):
        await fill(one, "/exchanges/amq.fanout/k", "mine")
        await fill(other, "/exchanges/amq.fanout/k", "theirs")
        assert await bodies(receiver, 1) == ["theirs"]


async def test_message_that_a_full_queue_rejects_goes_from_an_exchange_to_its_dead_letters() -> None:
    rules = {
        "x-max-length": 1,
        "x-overflow": "reject-publish-dlx",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    container = fanned(None, "a", arguments=rules)
    container.add_queue("dead")
    async with container.connect() as conn, conn.open_receiver("dead") as dead:
        await fill(conn, "/exchanges/amq.fanout/k", "kept")
        with pytest.raises(amqp.DeliveryRejectedError):
            await fill(conn, "/exchanges/amq.fanout/k", "rejected")
        assert await bodies(dead, 1) == ["rejected"]


async def test_publisher_is_answered_when_all_queues_have_the_message_stored() -> None:
    store = Stalled()
    container = fanned(store, "a", "b")
    async with container.connect() as conn, conn.open_sender("/exchanges/amq.fanout/k") as sender:
        await wait_all_tasks_blocked()
        store.stalls = True
        answered = False

        async def send() -> None:
            nonlocal answered
            await sender.send(amqp.Message("x", durable=True))
            answered = True

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await wait_all_tasks_blocked()
            assert not answered
            assert len(store.waiting) == 1, "both queues share a commit"
            store.go_on()
        assert answered
        for name in ("a", "b"):
            async with conn.open_receiver(name) as receiver:
                assert await bodies(receiver, 1) == ["x"]


@pytest.mark.logs_errors
async def test_publisher_is_rejected_when_the_store_is_full_and_no_queue_has_the_message() -> None:
    store = Stalled()
    container = fanned(store, "a", "b")
    async with container.connect() as conn, conn.open_sender("/exchanges/amq.fanout") as sender:
        await wait_all_tasks_blocked()
        store.failure = StoreFullError("full")
        with pytest.raises(amqp.DeliveryRejectedError, match="the store is full"):
            await sender.send(amqp.Message("x", durable=True))
        await sender.send("not to be stored")
        store.failure = None
        await sender.send(amqp.Message("y", durable=True))
    assert container.broker is not None
    assert [len(queue) for queue in container.broker.queues.values()] == [2, 2]


async def test_publisher_is_rejected_when_one_queue_refuses_though_another_has_the_message() -> None:
    container = fanned(None, "a")
    broker = container.broker
    assert broker is not None
    broker.declare_queue("full", {"x-max-length": 1, "x-overflow": "reject-publish"})
    broker.bind("amq.fanout", "queue", "full")
    async with container.connect() as conn, conn.open_sender("/exchanges/amq.fanout") as sender:
        await sender.send("x")
        with pytest.raises(amqp.DeliveryRejectedError, match="'full' is full"):
            await sender.send("y")
    assert {name: len(queue) for name, queue in broker.queues.items()} == {"a": 2, "full": 1}


async def test_publisher_waits_while_the_store_has_too_much_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_MOST_ROWS", 3)
    store = Stalled()
    container = fanned(store, "a")
    async with container.connect() as conn:
        await wait_all_tasks_blocked()
        store.stalls = True
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(
                    fill, conn, "/exchanges/amq.fanout/k", *(amqp.Message(n, durable=True) for n in range(1))
                )
            await wait_all_tasks_blocked()
            for number in range(6):
                nursery.start_soon(fill, conn, "/exchanges/amq.fanout", amqp.Message(number, durable=True))
            await wait_all_tasks_blocked()
            queue = container.nodes["a"]
            assert queue.statistics()["arrived"] < 8
            store.go_on()
        assert queue.statistics()["arrived"] == 8


@pytest.mark.logs_errors
async def test_transaction_through_an_exchange_is_one_commit_and_rolls_back() -> None:
    store = MemoryStore()
    container = fanned(store, "a")
    broker = container.broker
    assert broker is not None
    broker.declare_queue("brief", durable=False)
    broker.bind("amq.fanout", "queue", "brief")
    async with container.connect() as conn:
        async with (
            conn.open_sender("/exchanges/amq.fanout/k") as sender,
            conn.open_transaction() as transaction,
        ):
            await sender.send(amqp.Message("x", durable=True), transaction=transaction)
            assert [len(queue) for queue in broker.queues.values()] == [0, 0]
        assert [len(queue) for queue in broker.queues.values()] == [1, 1]
        store.failure = StoreFullError("full")
        with pytest.raises(amqp.TransactionError):
            async with (
                conn.open_sender("/exchanges/amq.fanout/k") as sender,
                conn.open_transaction() as transaction,
            ):
                await sender.send(amqp.Message("y", durable=True), transaction=transaction)
        await wait_all_tasks_blocked()
        assert [len(queue) for queue in broker.queues.values()] == [1, 1]
        store.failure = None


async def test_message_is_routed_to_the_queues_whose_headers_match() -> None:
    container = fanned(None)
    broker = container.broker
    assert broker is not None
    for name, arguments in (("all", {"a": 1, "b": "x"}), ("any", {"a": 1, "b": "x", "x-match": "any"})):
        broker.declare_queue(name)
        broker.bind("amq.headers", "queue", name, "", arguments)
    async with container.connect() as conn, conn.open_sender("/exchanges/amq.headers") as sender:
        await sender.send(amqp.Message("one", application_properties={"b": "x"}))
        await sender.send(amqp.Message("both", application_properties={"a": 1, "b": "x"}))
        with pytest.raises(amqp.DeliveryReleasedError):
            await sender.send(amqp.Message("none", application_properties={"a": 2}))
        with pytest.raises(amqp.DeliveryReleasedError):
            await sender.send(amqp.Message.from_payload(b"no sections", 7))
    assert {name: len(queue) for name, queue in broker.queues.items()} == {"all": 1, "any": 2}


async def test_container_has_one_broker_and_its_exchanges_have_addresses(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        container = fanned(store, "a")
        with pytest.raises(amqp.LocalProtocolError, match="has a broker"):
            container.add_broker()
        async with container.connect() as conn:
            await fill(conn, "/exchanges/amq.fanout/some%2Fkey", "x")
            for address in ("/exchanges/none/k", "/exchanges/amq.fanout/a/b", "/exchanges/", "/exchanges//a"):
                with pytest.raises(amqp.LinkRefusedError, match="not-found"):
                    async with conn.open_sender(address):
                        pass
