"""Transactions whose connection is lost: whatever waits in one says that it is rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp

from .helpers import dialled
from .test_controller import coordinated
from .town import visiting

if TYPE_CHECKING:
    from trio.testing import MockClock

    from .test_controller import Desk

ENDED = r"its link is gone: .*'orders' is deleted"


async def by_send(sender: amqp.Sender, transaction: amqp.Transaction) -> None:
    await sender.send("x", transaction=transaction)


async def by_outcome(sender: amqp.Sender, transaction: amqp.Transaction) -> None:
    await (await sender.transmit("x", transaction=transaction)).outcome()


async def by_wait_settled(sender: amqp.Sender, transaction: amqp.Transaction) -> None:
    await (await sender.transmit("x", transaction=transaction)).wait_settled()


async def by_stream(sender: amqp.Sender, transaction: amqp.Transaction) -> None:
    async with sender.stream(transaction=transaction) as body:
        while True:
            await body.send_all(b"x" * 100_000)


WAYS = [by_send, by_outcome, by_wait_settled, by_stream]


@pytest.mark.parametrize("credit", [0, 1])
@pytest.mark.parametrize("way", WAYS)
async def test_call_that_waits_says_that_the_transaction_is_rolled_back(
    way: Any, credit: int, autojump_clock: MockClock
) -> None:
    async def script(desk: Desk) -> None:
        await desk.peer.accept_attach(credit=credit)
        await desk.peer.accept_attach(credit=10)
        await desk.declare()
        await trio.sleep(1)  # the call waits for credit, room or an outcome
        await desk.peer.aclose()

    async with coordinated(script) as (conn, _):
        sender = await conn.open_sender("q").__aenter__()
        with pytest.raises(amqp.TransactionRolledBackError, match="the connection was lost"):
            async with conn.open_transaction() as transaction:
                with pytest.raises(amqp.TransactionRolledBackError, match="the connection was lost"):
                    await way(sender, transaction)
    assert transaction.state == "rolled back"


async def test_outcome_of_a_message_in_no_transaction_is_not_known(autojump_clock: MockClock) -> None:
    async with dialled(begin=False) as (conn, peer):

        async def script() -> None:
            await peer.accept_begin()
            await peer.accept_attach(credit=1)
            await trio.sleep(1)
            await peer.aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            sender = await conn.open_sender("q").__aenter__()
            with pytest.raises(amqp.ConnectionClosedError):
                await sender.send("x")


async def test_settling_what_was_lost_rolls_back(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    container = amqp.Container("town")
    orders, results = container.add_queue("orders"), container.add_queue("results")
    await container.send("orders", "order")
    async with (
        visiting(monkeypatch, container.handle) as (town, conn),
        conn.open_receiver("orders", prefetch=10) as receiver,
        conn.open_sender("results") as sender,
    ):
        lost = await receiver.receive()
        await town.lose()
        await trio.sleep(5)
        for caught in (False, True):  # whether the program catches it within the block
            with pytest.raises(amqp.TransactionRolledBackError, match="its message comes again"):
                async with conn.open_transaction() as transaction:
                    await sender.send("result", transaction=transaction)
                    try:
                        lost.accept(transaction=transaction)
                    except amqp.TransactionRolledBackError:
                        if not caught:
                            raise
                    with pytest.raises(amqp.TransactionRolledBackError, match="its message comes again"):
                        await sender.send("result", transaction=transaction)
            assert transaction.state == "rolled back"
        assert not lost.settled
        again = await receiver.receive()
        async with conn.open_transaction() as transaction:
            await sender.send("result", transaction=transaction)
            again.accept(transaction=transaction)
        assert (len(results), len(orders)) == (1, 0)


async def test_settling_after_the_end_of_its_link_says_why_it_ended(autojump_clock: MockClock) -> None:
    container = amqp.Container("box")
    container.add_queue("orders")
    await container.send("orders", "order")
    async with container.connect() as conn, conn.open_receiver("orders") as receiver:
        delivery = await receiver.receive()
        container.remove_node("orders")
        await trio.sleep(1)
        async with conn.open_transaction() as transaction:
            for settle in (delivery.accept, delivery.reject, delivery.release, delivery.modify):
                for options in ({}, {"transaction": transaction}):
                    with pytest.raises(amqp.LocalProtocolError, match=ENDED) as told:
                        settle(**options)
                    assert isinstance(told.value.__cause__, amqp.LinkDetachedError)
    with pytest.raises(
        amqp.LocalProtocolError, match=r"its link is gone: the link to 'orders' .* was closed here"
    ):
        delivery.accept()
