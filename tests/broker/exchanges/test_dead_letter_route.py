"""Dead letters that go through an exchange, and stay where they were if they cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of
from trio_amqp10.broker.stores.base import StoreFullError
from trio_amqp10.broker.stores.memory_store import MemoryStore
from trio_amqp10.container import Container

from .helpers import bounded
from .stalled import fanned

if TYPE_CHECKING:
    from pathlib import Path


async def test_dead_letter_goes_through_an_exchange() -> None:
    container = fanned(None, "dead")
    assert container.broker is not None
    container.broker.declare_queue("q", {"x-dead-letter-exchange": "amq.fanout"})
    async with container.connect() as conn:
        await fill(conn, "q", "x")
        async with conn.open_receiver("q") as receiver:
            (await receiver.receive()).reject()
        async with conn.open_receiver("dead") as receiver:
            assert await bodies(receiver, 1) == ["x"]


@pytest.mark.logs_errors
async def test_dead_letter_that_cannot_be_stored_stays_where_it_was(tmp_path: Path) -> None:
    store = MemoryStore()
    container = fanned(store, "dead")
    assert container.broker is not None
    container.broker.declare_queue("q", {"x-dead-letter-exchange": "amq.fanout"})
    async with container.connect() as conn:
        await fill(conn, "q", amqp.Message("x", durable=True))
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            store.failure = StoreFullError("full")
            delivery.reject()
            await wait_all_tasks_blocked()
    store.failure = None
    assert [len(queue) for queue in container.broker.queues.values()] == [0, 1]
    again = Container("c", strict=True, store=store)
    again.add_broker()
    async with again.connect() as conn, conn.open_receiver("q") as receiver:
        assert await bodies(receiver, 1) == ["x"]


async def test_queue_keeps_its_bound_while_its_dead_letters_go_to_the_disk() -> None:
    container = fanned(MemoryStore(), "dead")
    assert container.broker is not None
    rules = {"x-dead-letter-exchange": "amq.fanout", "x-max-length": 3, "x-overflow": "drop-head"}
    queue, _ = container.broker.declare_queue("q", rules)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await wait_all_tasks_blocked()
        for _ in range(2):
            sent = [sender.send_nowait(amqp.Message("x", durable=True)) for _ in range(6)]
            assert [await each.outcome() for each in sent] == [amqp.Accepted()] * 6
            await wait_all_tasks_blocked()
            assert len(queue) == 3
        assert len(queue_of(container, "dead")) == 9


async def test_dead_letters_wait_for_room_behind_their_exchange() -> None:
    container, them = bounded("dead")
    source, _ = them.declare_queue("q", {"x-dead-letter-exchange": "amq.fanout"})
    async with container.connect() as conn:
        await fill(conn, "q", "one", "two")
        async with conn.open_receiver("q") as receiver:
            for _ in range(2):
                (await receiver.receive()).reject()
            await wait_all_tasks_blocked()
            assert (len(source), len(queue_of(container, "dead"))) == (1, 1)
        async with conn.open_receiver("dead") as receiver:
            assert await bodies(receiver, 2) == ["one", "two"]
    await wait_all_tasks_blocked()
    assert (len(source), len(them.publisher._waiting)) == (0, 0)
