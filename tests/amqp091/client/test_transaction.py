"""Transactions of the client: commit, roll back, and be in doubt."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10 import amqp091


async def test_transaction_commits_on_leaving_and_rolls_back_after_an_exception(connected: Any) -> None:
    async with connected() as (broker, connection):
        async with connection.open_transaction() as transaction:
            await transaction.declare_queue("q")
            await transaction.publish("", "q", b"1")
            await wait_all_tasks_blocked()
            assert not broker.queues["q"].messages
        assert [each.content.body for each in broker.queues["q"].messages] == [b"1"]
        with pytest.raises(ZeroDivisionError):
            async with connection.open_transaction() as transaction:
                await transaction.publish("", "q", b"2")
                raise ZeroDivisionError
        assert "tx.rollback" in broker.log
        assert len(broker.queues["q"].messages) == 1


async def test_transaction_undoes_acknowledgements_when_it_is_rolled_back(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_transaction() as transaction:
        queue = await transaction.declare_queue("q")
        await transaction.publish("", "q", b"1")
        await transaction.commit()
        got = await queue.get()
        assert got is not None
        got.ack()
        assert got.settled
        await transaction.rollback()
        assert not got.settled
        got.ack()


async def test_transaction_is_in_doubt_when_the_answer_to_its_commit_is_lost(connected: Any) -> None:
    async with connected(reconnect=True) as (broker, connection):
        with pytest.raises(amqp091.TransactionInDoubtError):
            async with connection.open_transaction() as transaction:
                await transaction.publish("", "q", b"1")
                broker.peers[0].mute = True

                async def sever() -> None:
                    while broker.log[-1] != "tx.commit":
                        await trio.lowlevel.checkpoint()
                    broker.sever()

                broker.nursery.start_soon(sever)
