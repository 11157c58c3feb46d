"""A full queue that makes its senders wait, behind an exchange: the publisher waits, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of
from trio_amqp10.container.container import Container
from trio_amqp10.container.stores.memory_store import MemoryStore

if TYPE_CHECKING:
    from trio_amqp10.container.broker.topology import Topology

FANOUT = "/exchanges/amq.fanout"


def bounded(*names: str) -> tuple[Container, Topology]:
    """A container whose exchange ``amq.fanout`` leads to queues for one message each."""
    container = Container("c", strict=True)
    them = container.add_broker()
    for name in names:
        container.add_queue(name, max_length=1)
        them.bind("amq.fanout", "queue", name)
    return container, them


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


async def test_message_that_waits_is_routed_anew_when_the_queue_is_deleted() -> None:
    container, _ = bounded("a", "b")
    async with container.connect() as conn, conn.open_sender(FANOUT) as sender:
        await fill(conn, "a", "full")
        delivery = await sender.transmit("x")
        await wait_all_tasks_blocked()
        assert (delivery.state, len(queue_of(container, "b"))) == (None, 0)
        container.remove_node("a")
        await wait_all_tasks_blocked()
        assert delivery.state == amqp.Accepted()
        assert len(queue_of(container, "b")) == 1


@pytest.mark.parametrize("address", [FANOUT, f"{FANOUT}/key"])
async def test_message_that_waits_is_forgotten_with_its_link(address: str) -> None:
    container, them = bounded("a")
    queue = queue_of(container, "a")
    async with container.connect() as conn:
        await fill(conn, "a", "full")
        with trio.CancelScope() as scope:
            async with conn.open_sender(address) as sender:
                await sender.transmit("x")
                await wait_all_tasks_blocked()
                assert len(queue._blocked) == 1
                scope.cancel()
                await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()
    assert not queue._blocked
    assert not them.publisher._waiting


@pytest.mark.parametrize("address", ["/exchanges/e", "/exchanges/e/key"])
async def test_message_that_waits_is_not_taken_when_the_exchange_is_deleted(address: str) -> None:
    container, them = bounded("a")
    them.declare_exchange("e", "fanout")
    them.bind("e", "queue", "a")
    queue = queue_of(container, "a")
    async with container.connect() as conn:
        await fill(conn, "a", "full")
        async with conn.open_sender(address) as sender:
            delivery = await sender.transmit("x")
            await wait_all_tasks_blocked()
            them.delete_exchange("e")
            await wait_all_tasks_blocked()
            assert delivery.state == amqp.Released()
        async with conn.open_receiver("a") as receiver:
            assert await bodies(receiver, 1) == ["full"]
        await wait_all_tasks_blocked()
    assert (len(queue), len(queue._blocked), len(them.publisher._waiting)) == (0, 0, 0)


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
