"""A full queue that makes its senders wait, behind an exchange: the publisher waits, and nothing is lost."""

from __future__ import annotations

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, queue_of
from trio_amqp10.broker.stores.memory_store import MemoryStore
from trio_amqp10.container.container import Container

from .helpers import FANOUT, bounded


@pytest.mark.parametrize("address", [FANOUT, f"{FANOUT}/key"])
async def test_publisher_waits_while_a_queue_is_full_and_goes_on_in_order(address: str) -> None:
    container, _ = bounded("a", "b")
    async with container.connect() as conn, conn.open_sender(address) as sender:
        deliveries = [await sender.transmit(n) for n in range(4)]
        await wait_all_tasks_blocked()
        assert [each.state is not None for each in deliveries] == [True, False, False, False]
        async with conn.open_receiver("a") as one:
            assert await bodies(one, 1) == [0]
            await wait_all_tasks_blocked()
            assert deliveries[1].state is None, "the other queue is full still"
            async with conn.open_receiver("b") as other:
                assert await bodies(other, 1) == [0]
                for n in (1, 2, 3):
                    assert await bodies(one, 1) == await bodies(other, 1) == [n]
        await wait_all_tasks_blocked()
        assert [each.state for each in deliveries] == [amqp.Accepted()] * 4
    figures = container.nodes[FANOUT].statistics()
    assert (figures["arrived"], figures["unroutable"]) == (4, 0)


async def test_messages_of_a_transaction_wait_too_where_there_is_no_store() -> None:
    container, them = bounded("a")
    async with container.connect() as conn, conn.open_sender(FANOUT) as sender:
        async with conn.open_transaction() as txn:
            for body in ("one", "two", "three"):
                await sender.send(body, transaction=txn)
        assert len(queue_of(container, "a")) == 1
        async with conn.open_receiver("a") as receiver:
            assert await bodies(receiver, 3) == ["one", "two", "three"]
    await wait_all_tasks_blocked()
    assert not them.publisher._waiting


async def test_transaction_that_is_committed_in_a_store_does_not_wait() -> None:
    container = Container("c", strict=True, store=MemoryStore())
    them = container.add_broker()
    for name in ("a", "b"):
        container.add_queue(name, max_length=1, durable=name == "a")
        them.bind("amq.fanout", "queue", name)
    async with container.connect() as conn, conn.open_sender(FANOUT) as sender:
        async with conn.open_transaction() as txn:
            for body in ("one", "two"):
                await sender.send(body, transaction=txn)
        await wait_all_tasks_blocked()
    assert [len(queue_of(container, name)) for name in ("a", "b")] == [2, 2]
