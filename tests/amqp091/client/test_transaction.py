"""Transactions of the client: commit, roll back, and be in doubt."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10 import amqp091
from trio_amqp10.amqp091 import spec


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


async def test_loss_after_a_commit_that_nothing_followed_is_no_failure(connected: Any) -> None:
    async with connected() as (broker, connection):
        with pytest.raises(amqp091.ConnectionClosedError):
            async with connection.open_transaction() as transaction:
                await transaction.declare_queue("q")
                await transaction.publish("", "q", b"1")
                broker.sever()
                await wait_all_tasks_blocked()
    async with connected() as (broker, connection), connection.open_transaction() as transaction:
        queue = await transaction.declare_queue("q")
        await transaction.publish("", "q", b"1")
        await transaction.commit()
        broker.sever()
        await wait_all_tasks_blocked()
        assert broker.log.count("tx.commit") == 1
        assert [each.content.body for each in broker.queues[queue.name].messages] == [b"1"]


@pytest.mark.parametrize("how", ["publish", "ack", "reject"])
async def test_leaving_commits_whatever_was_done_since_the_last_commit(connected: Any, how: str) -> None:
    async with connected() as (broker, connection):
        async with connection.open_transaction() as transaction:
            queue = await transaction.declare_queue("q")
            await transaction.publish("", "q", b"1")
            await transaction.commit()
            got = await queue.get()
            assert got is not None
            await transaction.rollback()
            if how == "publish":
                await transaction.publish("", "q", b"2")
            elif how == "ack":
                got.ack()
            else:
                got.reject(requeue=False)
        assert broker.log.count("tx.commit") == 2


async def test_leaving_reports_a_channel_that_the_server_closed_with_nothing_to_commit(
    connected: Any,
) -> None:
    async with connected() as (broker, connection):
        with pytest.raises(amqp091.ChannelClosedError):
            async with connection.open_transaction():
                broker.peers[0].channels[-1].refuse(406, "consumed too slowly", spec.BasicAck())
                await wait_all_tasks_blocked()
