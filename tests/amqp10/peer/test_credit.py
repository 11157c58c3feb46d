"""Receivers that bound what is unsettled, waiting here and in the program's hands, by the name that it has elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp

from .helpers import Node, served
from .test_receiver import receiving, transfer
from .town import EVEN, URL, Town

if TYPE_CHECKING:
    from trio.testing import MockClock


@pytest.mark.parametrize("prefetch", [1, 2, 3, 10, 100])
async def test_no_more_than_the_prefetch_is_unsettled_with_a_task_for_each_delivery(prefetch: int) -> None:
    node = Node(bodies=tuple(range(400)))
    most = done = 0
    full = trio.Event()  # nothing is settled before
    async with served(node.handle) as conn, conn.open_receiver("q", prefetch=prefetch) as receiver:

        async def work(delivery: amqp.Delivery) -> None:
            nonlocal most, done
            most = max(most, receiver.unsettled)
            if most == prefetch:
                full.set()
            await full.wait()
            await trio.lowlevel.checkpoint()
            delivery.accept()
            done += 1

        async with trio.open_nursery() as nursery:
            for _ in range(400):
                nursery.start_soon(work, await receiver.receive())
                assert receiver.unsettled + receiver.credit <= prefetch
    assert done == 400
    assert most == prefetch


async def test_nothing_comes_until_something_is_settled() -> None:
    node = Node(bodies=tuple(range(30)))
    async with served(node.handle) as conn, conn.open_receiver("q", prefetch=5) as receiver:
        held = [await receiver.receive() for _ in range(5)]
        await wait_all_tasks_blocked()
        assert (receiver.buffered, receiver.credit) == (0, 0)
        held[3].release()
        await wait_all_tasks_blocked()
        assert receiver.buffered == 1
        held[0].reject()
        held[1].modify(delivery_failed=True)
        await wait_all_tasks_blocked()
        assert receiver.buffered == 3
        assert receiver.unsettled == 5


async def test_credit_follows_in_the_write_of_the_disposition(autojump_clock: MockClock) -> None:
    async with receiving(prefetch=2) as (receiver, peer):
        await peer.expect("flow", link_credit=2)
        await peer.send(transfer(0), transfer(1))
        first = await receiver.receive()
        await receiver.receive()
        await peer.expect_nothing(1)
        first.accept()
        await peer.expect("disposition", first=0)
        await peer.expect("flow", link_credit=1, delivery_count=2)


async def test_exactly_once_counts_until_the_sender_has_settled(autojump_clock: MockClock) -> None:
    node = Node(bodies=tuple(range(50)))
    async with (
        served(node.handle) as conn,
        conn.open_receiver("q", prefetch=3, guarantee="exactly-once") as receiver,
    ):
        for number in range(50):
            delivery = await receiver.receive()
            assert delivery.message.body == number
            assert receiver.unsettled + receiver.credit <= 3
            delivery.accept()
            assert not delivery.settled


async def test_what_was_sent_settled_counts_while_it_waits(autojump_clock: MockClock) -> None:
    node = Node(bodies=tuple(range(50)))
    async with (
        served(node.handle) as conn,
        conn.open_receiver("q", prefetch=4, guarantee="at-most-once") as receiver,
    ):
        for number in range(50):
            await wait_all_tasks_blocked()
            assert receiver.buffered + receiver.credit <= 4
            assert (await receiver.receive()).message.body == number


async def test_outcome_in_a_transaction_makes_room_when_it_is_discharged(autojump_clock: MockClock) -> None:
    container = amqp.Container()
    container.add_queue("q")
    async with container.connect() as conn:
        async with conn.open_sender("q") as sender:
            for number in range(10):
                await sender.send(number)
        async with conn.open_receiver("q", prefetch=2) as receiver:
            for number in range(0, 10, 2):
                async with conn.open_transaction() as txn:
                    for offset in range(2):
                        delivery = await receiver.receive()
                        assert delivery.message.body == number + offset
                        delivery.accept(transaction=txn)
                    with trio.move_on_after(1) as patience:
                        await receiver.receive()
                    assert patience.cancelled_caught


async def test_bound_holds_when_the_connection_has_come_back(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    town = Town(monkeypatch)
    container = amqp.Container("town")
    town.handle = container.handle
    async with (
        town.open(),
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        conn.open_receiver("q", prefetch=3) as receiver,
        conn.open_sender("q") as sender,
    ):
        for number in range(20):
            await sender.send(number)
        (await receiver.receive()).accept()
        await town.lose()
        seen = []
        for _ in range(19):
            await wait_all_tasks_blocked()
            assert receiver.unsettled + receiver.credit <= 3
            delivery = await receiver.receive()
            seen.append(delivery.message.body)
            delivery.accept()
        assert seen == list(range(1, 20))


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_what_is_in_hand_counts_on_a_link_that_is_taken_up_again(
    elsewhere: bool, autojump_clock: MockClock
) -> None:
    container = amqp.Container()
    container.add_queue("q")
    store = amqp.MemoryTerminusStore()
    async with container.connect() as conn, container.connect(container_id=conn.container_id) as other:
        async with conn.open_sender("q") as sender:
            for number in range(20):
                await sender.send(number)
        async with conn.open_receiver(
            "q", prefetch=4, name="r", store=store, expiry_policy="never"
        ) as receiver:
            held = [await receiver.receive() for _ in range(3)]
            await receiver.detach()
            await receiver.resume(other if elsewhere else None)
            await wait_all_tasks_blocked()
            assert receiver.unsettled + receiver.credit <= 4
            for delivery in held:
                delivery.accept()
            seen = []
            for _ in range(17):
                delivery = await receiver.receive()
                assert receiver.unsettled + receiver.credit <= 4
                seen.append(delivery.message.body)
                delivery.accept()
            assert seen == list(range(3, 20))


@given(
    prefetch=st.integers(1, 8),
    steps=st.lists(st.tuples(st.sampled_from(["take", "settle", "wait"]), st.integers(0, 7)), max_size=60),
)
def test_bound_holds_in_any_order(prefetch: int, steps: list[tuple[str, int]]) -> None:
    async def main() -> None:
        node = Node(bodies=tuple(range(100)))
        async with served(node.handle) as conn, conn.open_receiver("q", prefetch=prefetch) as receiver:
            held: list[amqp.Delivery] = []
            for step, which in steps:
                if step == "take" and receiver.buffered:
                    held.append(receiver.receive_nowait())
                elif step == "settle" and held:
                    held.pop(which % len(held)).accept()
                else:
                    await wait_all_tasks_blocked()
                assert receiver.unsettled + receiver.credit <= prefetch
            while held:
                held.pop().accept()
            await wait_all_tasks_blocked()
            assert receiver.buffered > prefetch // 2  # it goes on

    trio.run(main)


async def test_peer_that_sends_gets_no_more_credit_than_the_prefetch(autojump_clock: MockClock) -> None:
    most = 0

    async def handle(conn: amqp.Connection) -> None:
        nonlocal most
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept(prefetch=3) as receiver:
                held: list[amqp.Delivery] = []
                async for delivery in receiver:
                    held.append(delivery)
                    most = max(most, receiver.unsettled)
                    if len(held) == 3:
                        for one in held:
                            one.accept()
                        held.clear()

    async with served(handle) as conn, conn.open_sender("q") as sender:
        for number in range(30):
            await sender.transmit(number)
        await sender.flush()
    assert most == 3


@pytest.mark.parametrize(
    "options", [{"prefetch": 0}, {"prefetch": -1}, {"credit": 5}, {"credit": 0}, {"credit_octets": 1000}]
)
async def test_prefetch_refuses_what_makes_no_sense(options: Any) -> None:
    async with served(Node().handle) as conn:
        with pytest.raises(amqp.LocalProtocolError, match="prefetch"):
            conn.open_receiver("q", **({"prefetch": 10} | options))
