"""A scripted controller of transactions, and what becomes of its work."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.spec.messaging import ACCEPTED
from trio_amqp10.amqp10.spec.transactions import Coordinator, Declare, Declared, Discharge, TransactionalState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class Control:
    """A control link, asked by hand."""

    def __init__(self, link: amqp.Sender) -> None:
        self.link = link

    async def ask(self, body: Any) -> Any:
        delivery = await self.link.transmit(amqp.Message(amqp.Value(body)))
        return await delivery.outcome()

    async def declare(self) -> bytes:
        outcome = await self.ask(Declare())
        assert isinstance(outcome, Declared)
        assert isinstance(outcome.txn_id, bytes)
        assert len(outcome.txn_id) <= 32
        return outcome.txn_id

    async def discharge(self, txn_id: Any, *, fail: bool | None = None) -> str | None:
        """The condition against it, None where it is accepted."""
        outcome = await self.ask(Discharge(txn_id=txn_id, fail=fail))
        if outcome == ACCEPTED:
            return None
        return str(outcome.error.condition)


@asynccontextmanager
async def control_of(conn: amqp.Connection, **options: Any) -> AsyncGenerator[Control, None]:
    async with conn.open_sender(None, target=Coordinator(), **options) as link:
        yield Control(link)


def post(sender: amqp.Sender, body: Any, txn_id: Any, *, settled: bool = False) -> Any:
    message = body if isinstance(body, amqp.Message) else amqp.Message(body)
    payload = message.to_payload()
    return sender._link.send(payload, settled, None, 0, TransactionalState(txn_id=txn_id))


def retire(delivery: amqp.Delivery, txn_id: bytes, outcome: Any = ACCEPTED, *, settle: bool = False) -> None:
    state = TransactionalState(txn_id=txn_id, outcome=outcome)
    delivery.link.session.settlement.dispose(delivery, state, settle=settle)


async def gone(link: amqp.Sender | amqp.Receiver) -> str:
    """The condition that the link was detached with."""
    await wait_all_tasks_blocked()
    with pytest.raises(amqp.LinkDetachedError) as lost:
        link.check_alive()
    assert lost.value.condition is not None
    return lost.value.condition
