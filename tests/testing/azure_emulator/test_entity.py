"""An entity and its receivers: turns, receivers without room, and peeking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.amqp10.spec.messaging import Source

from .helpers import bus_of, locking, open_client, put, settle

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_message_taken_at_most_once_is_gone(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn:
        await put(conn, "q", "tea")
        async with conn.open_receiver("q", guarantee="at-most-once", credit=1) as receiver:
            assert (await receiver.receive()).settled
        assert bus.entities["q"].statistics() == {"senders": 0, "receivers": 0, "messages": 0, "locked": 0}


async def test_receivers_take_turns_and_a_busy_one_is_passed_over(autojump_clock: MockClock) -> None:
    async with (
        open_client(bus_of(q=None)) as conn,
        conn.open_receiver("q", credit=5) as one,
        conn.open_receiver("q", credit=1) as other,
    ):
        await wait_all_tasks_blocked()
        await put(conn, "q", *range(5))
        await wait_all_tasks_blocked()
        assert [(await other.receive()).message.body] == [1]
        assert [(await one.receive()).message.body for _ in range(4)] == [0, 2, 3, 4]


async def test_link_that_copies_is_refused_with_a_hint_to_peek(autojump_clock: MockClock) -> None:
    async with open_client(bus_of(q=None)) as conn:
        with pytest.raises(LinkRefusedError, match="peek"):
            async with conn.open_receiver(None, source=Source(address="q", distribution_mode="copy")):
                pass


async def test_message_that_is_too_large_for_a_receiver_stays_for_others(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn, conn.open_sender("q") as sender:
        for body in (bytes(5000), "a", bytes(5000), "b"):
            await sender.send(body)
        async with locking(conn, "q", max_message_size=1000) as receiver:
            deliveries = [await receiver.receive() for _ in range(2)]
            assert [each.message.body for each in deliveries] == ["a", "b"]
            deliveries[0].release()
            await settle(deliveries[0])
            again = await receiver.receive()
            assert again.message.body == "a"
            await sender.send(bytes(5000))  # while the receiver waits
            for each in (again, deliveries[1]):
                each.accept()
            with pytest.raises(amqp.LinkDetachedError) as detached:
                await receiver.receive()
            assert detached.value.condition == "amqp:link:message-size-exceeded"
        async with locking(conn, "q") as receiver:
            for _ in range(3):
                delivery = await receiver.receive()
                assert (delivery.message.body, delivery.message.delivery_count) == (bytes(5000), 0)
                delivery.accept()
                await settle(delivery)
        assert len(bus.entities["q"]) == 0
