"""Work of a transaction: what is posted, retired and acquired, at its commit and its rollback (4.4)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of, two
from trio_amqp10.amqp10.spec.messaging import ACCEPTED
from trio_amqp10.testing import open_container

from .controllers import control_of, gone, post, retire


async def test_message_for_no_transaction_is_rejected_or_ends_its_link() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with conn.open_sender("q") as sender:
            outcome = await post(sender, "x", b"none").outcome()
            assert str(outcome.error.condition) == "amqp:transaction:unknown-id"
        async with conn.open_sender("q", guarantee="at-most-once") as sender:
            post(sender, "x", b"none", settled=True)
            assert await gone(sender) == "amqp:transaction:unknown-id"
        assert not len(queue_of(container))


async def test_message_on_a_link_that_settles_second_is_settled_by_its_sender() -> None:
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        control_of(conn) as control,
        conn.open_sender("q", guarantee="exactly-once") as sender,
    ):
        txn = await control.declare()
        delivery = post(sender, "x", txn)
        assert await delivery.outcome() == ACCEPTED
        assert not delivery.settled
        assert await control.discharge(txn) is None
        await wait_all_tasks_blocked()
        assert delivery.settled  # the coordinator has said the outcome once more, without the transaction


async def test_outcome_for_no_transaction_ends_the_link_and_the_message_goes_back() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a", "b")
        for settle in (False, True):
            async with conn.open_receiver("q", credit=0) as receiver:
                delivery = await receiver.receive()
                retire(delivery, b"none", settle=settle)
                assert await gone(receiver) == "amqp:transaction:unknown-id"
        await wait_all_tasks_blocked()
        assert queue_of(container).available == 2


@pytest.mark.parametrize("settle", [False, True])
async def test_rollback_leaves_a_delivery_live_unless_it_was_settled(settle: bool) -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        async with control_of(conn) as control, conn.open_receiver("q", credit=0) as receiver:
            txn = await control.declare()
            delivery = await receiver.receive()
            retire(delivery, txn, settle=settle)
            assert await control.discharge(txn, fail=True) is None
            assert queue_of(container).available == settle  # the default outcome, which is released
            if not settle:
                delivery.state = None
                delivery.accept()
                await wait_all_tasks_blocked()
                assert not container.nodes["q"].inlets
                assert not len(queue_of(container))


async def test_outcome_can_be_changed_until_the_commit_within_the_transaction() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        async with control_of(conn) as control, conn.open_receiver("q", credit=0) as receiver:
            txn = await control.declare()
            delivery = await receiver.receive()
            for outcome in (ACCEPTED, amqp.Released()):
                delivery.state = None
                retire(delivery, txn, outcome)
                await wait_all_tasks_blocked()
            delivery.state = None
            retire(delivery, txn, None)
            assert await control.discharge(txn) is None
            assert queue_of(container).available == 1


async def test_outcome_in_a_transaction_that_timed_out_is_as_never_said(autojump_clock: Any) -> None:
    container = amqp.Container(transaction_timeout=1)
    async with two(container) as (conn, other):
        await fill(other, "q", "a", "b")
        async with control_of(conn) as control, conn.open_receiver("q", credit=0) as receiver:
            txn = await control.declare()
            live, settled = await receiver.receive(), await receiver.receive()
            await trio.sleep(2)
            retire(live, txn)
            retire(settled, txn, settle=True)
            await wait_all_tasks_blocked()
            assert queue_of(container).available == 1
            assert await control.discharge(txn) == "amqp:transaction:timeout"
            again = await control.declare()
            live.state = None
            retire(live, again)
            assert await control.discharge(again) is None
            assert len(queue_of(container)) == 1


async def test_acquired_delivery_follows_the_discharge_when_its_link_goes() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        for fail in (True, False):
            async with control_of(conn) as control:
                txn = await control.declare()
                async with conn.open_receiver("q", credit=0) as receiver:
                    receiver.acquire_in(txn)
                    await receiver.receive()
                await wait_all_tasks_blocked()
                assert queue_of(container).available == 0
                assert await control.discharge(txn, fail=fail) is None
                assert queue_of(container).available == 1


@pytest.mark.parametrize("fail", [False, True])
async def test_acquired_delivery_partly_sent_is_completed_or_aborted_as_the_discharge_says(
    fail: bool,
) -> None:
    octets = 3_000_000
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", bytes(octets))
        async with (
            control_of(conn) as control,
            conn.open_session() as session,
            session.open_receiver("q", credit=0, streaming=True) as receiver,
        ):
            txn = await control.declare()
            receiver.acquire_in(txn)
            delivery = await receiver.receive()
            await wait_all_tasks_blocked()
            assert receiver._link.incoming is not None  # its window is shut: nobody has read any of it
            assert await control.discharge(txn, fail=fail) is None
            if fail:
                assert queue_of(container).available == 1
                with pytest.raises(amqp.DeliveryAbortedError):
                    async for _ in delivery.chunks():
                        pass
                assert delivery.settled
            else:
                assert sum([len(chunk) async for chunk in delivery.chunks()]) == octets
                assert not delivery.settled
                delivery.accept()
                await wait_all_tasks_blocked()
                assert not len(queue_of(container))


async def test_browser_copies_what_it_likes_in_a_transaction() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        source = amqp.Source(address="q", distribution_mode="copy")
        async with (
            control_of(conn) as control,
            conn.open_receiver("q", source=source, credit=0) as receiver,
        ):
            receiver.acquire_in(await control.declare())
            assert await bodies(receiver, 1) == ["a"]
        assert queue_of(container).available == 1
