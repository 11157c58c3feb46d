"""The way of a message through an exchange, while one of its queues is full."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of

from .helpers import FANOUT, bounded


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
