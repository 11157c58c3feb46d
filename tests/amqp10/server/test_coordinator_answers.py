"""The exact answers of a coordinator to work and requests (4.2 to 4.4)."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import fill, queue_of, two
from trio_amqp10.amqp10.spec.messaging import ACCEPTED
from trio_amqp10.amqp10.spec.transactions import Coordinator, Discharge, TransactionalState
from trio_amqp10.testing import open_container

from .controllers import control_of, post


async def test_outcome_of_posted_work_names_its_transaction() -> None:
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        control_of(conn) as control,
        conn.open_sender("q") as sender,
    ):
        txn = await control.declare()
        delivery = post(sender, "x", txn)
        await wait_all_tasks_blocked()
        assert delivery.state == TransactionalState(txn_id=txn, outcome=ACCEPTED)
        assert await control.discharge(txn) is None


async def test_posted_message_has_no_outcome_after_a_rollback(autojump_clock: MockClock) -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with control_of(conn) as control, conn.open_sender("q", guarantee="exactly-once") as sender:
            txn = await control.declare()
            delivery = post(sender, "x", txn)
            assert await control.discharge(txn, fail=True) is None
            await wait_all_tasks_blocked()
            assert delivery.state == TransactionalState(txn_id=txn, outcome=ACCEPTED)
            assert not delivery.settled  # nothing was said beside what the transaction took with it
        assert not len(queue_of(container))


async def test_transaction_that_has_failed_is_rolled_back_when_asked_to() -> None:
    mixed = amqp.SenderSettleMode.MIXED
    async with (
        open_container(strict=True) as container,
        container.connect() as conn,
        control_of(conn) as control,
        conn.open_sender(None, snd_settle_mode=mixed) as sender,
    ):
        txn = await control.declare()
        payload = amqp.Message("x", to="nowhere").to_payload()
        sender._link.send(payload, True, None, 0, TransactionalState(txn_id=txn))
        assert await control.discharge(txn, fail=True) is None


async def test_flow_of_the_resource_names_the_transaction_of_what_follows() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        async with control_of(conn) as control, conn.open_receiver("q", credit=0) as receiver:
            txn = await control.declare()
            receiver.acquire_in(txn)
            delivery = await receiver.receive()
            assert delivery.remote_state == TransactionalState(txn_id=txn)
            [outlet] = container.nodes["q"].outlets
            link: Any = outlet
            assert link._link.flow_properties == {"txn-id": txn}
            receiver.acquire_in(None)
            assert await control.discharge(txn, fail=True) is None
            await wait_all_tasks_blocked()
            assert link._link.flow_properties is None


async def test_control_link_with_an_unsettled_map_is_attached_without_its_deliveries() -> None:
    async with open_container() as container, container.connect() as conn:
        link = conn.open_sender(
            None,
            name="control",
            target=Coordinator(),
        )
        async with link as control:
            delivery = await control.transmit(amqp.Message(amqp.Value(Discharge(txn_id=b"none"))))
            assert isinstance(await delivery.outcome(), amqp.Rejected)
            assert control.remote.unsettled in (None, {})
            assert control.remote.target.capabilities


@pytest.mark.parametrize("settled", [True, False])
async def test_delivery_retired_in_a_transaction_that_is_rolled_back_has_the_default_outcome(
    settled: bool,
) -> None:
    source = amqp.Source(address="q", default_outcome=amqp.Modified(undeliverable_here=True))
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        async with control_of(conn) as control, conn.open_receiver("q", credit=0, source=source) as receiver:
            txn = await control.declare()
            delivery = await receiver.receive()
            state = TransactionalState(txn_id=txn, outcome=ACCEPTED)
            delivery.link.session.settlement.dispose(delivery, state, settle=settled)
            assert await control.discharge(txn, fail=True) is None
            await wait_all_tasks_blocked()
            assert queue_of(container).available == int(settled)
