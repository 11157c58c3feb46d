"""Permission for each message on a link to the anonymous terminus, whether the answer is there at once or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.server.controllers import gone, post
from tests.container.helpers import queue_of
from tests.container.relaying import SECONDS, contents, guarded, relaying
from trio_amqp10.amqp10.peer.errors import DeliveryRejectedError, TransactionRolledBackError
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from trio.testing import MockClock

    from trio_amqp10.broker.rights.access import Access


# -- in transactions


@SECONDS
async def test_transaction_is_rolled_back_when_one_of_its_messages_is_not_permitted(
    seconds: float | None, autojump_clock: MockClock
) -> None:
    container = guarded(seconds)
    async with relaying(container) as (conn, sender):
        with pytest.raises(amqp.TransactionRolledBackError, match="may not send to 'secret'"):
            async with conn.open_transaction() as txn:
                await sender.transmit(amqp.Message("1", to="slow"), transaction=txn)
                await sender.transmit(amqp.Message("2", to="secret"), transaction=txn)
                await sender.send(amqp.Message("3", to="q"))
    assert await contents(container, "slow") == []
    assert await contents(container, "q") == ["3"]
    assert len(queue_of(container, "secret")) == 0


@SECONDS
async def test_transaction_waits_with_its_commit_for_what_is_being_decided(
    seconds: float | None, autojump_clock: MockClock
) -> None:
    container = guarded(seconds)
    async with (
        relaying(container, guarantee="at-most-once") as (conn, sender),
        conn.open_transaction() as txn,
    ):
        await sender.transmit(amqp.Message("1", to="slow"), transaction=txn)
        await sender.transmit(amqp.Message("2", to="slow"), transaction=txn)
    assert await contents(container, "slow") == ["1", "2"]


async def test_transaction_waits_for_what_is_being_decided_on_all_links(autojump_clock: MockClock) -> None:
    container = guarded(5.0)
    async with (
        relaying(container, guarantee="at-most-once") as (conn, sender),
        conn.open_sender(None, guarantee="at-most-once") as other,
        conn.open_transaction() as txn,
    ):
        await sender.transmit(amqp.Message("1", to="slow"), transaction=txn)
        await other.transmit(amqp.Message("2", to="q"), transaction=txn)
        await trio.sleep(1)
        await other.transmit(amqp.Message("3", to="slow"), transaction=txn)
    assert await contents(container, "slow") == ["1", "3"]
    assert await contents(container, "q") == ["2"]


@SECONDS
async def test_relay_refuses_a_message_for_no_transaction(
    seconds: float | None, autojump_clock: MockClock
) -> None:
    container = guarded(seconds)
    async with relaying(container) as (conn, sender):
        outcome = await post(sender, amqp.Message("x", to="q"), b"none").outcome()
        assert str(outcome.error.condition) == "amqp:transaction:unknown-id"
        async with conn.open_sender(None, guarantee="at-most-once") as settled:
            post(settled, amqp.Message("x", to="q"), b"none", settled=True)
            await trio.sleep(10)
            assert await gone(settled) == "amqp:transaction:unknown-id"
    assert len(queue_of(container)) == 0


async def test_message_that_goes_nowhere_is_not_asked_for() -> None:
    asked: list[tuple[str, str | None]] = []

    def authorise(access: Access) -> bool:
        asked.append((access.action, access.address))
        return True

    async with relaying(Container(authorise=authorise)) as (_, sender):
        with pytest.raises(DeliveryRejectedError):
            await sender.send(amqp.Message("x"))
    assert asked == [("open", None)]


@SECONDS
async def test_transaction_is_rolled_back_where_a_settled_message_may_not_go(
    seconds: float | None, autojump_clock: MockClock
) -> None:
    container = guarded(seconds)
    async with relaying(container, guarantee="at-most-once") as (conn, sender):
        with pytest.raises(TransactionRolledBackError, match="may not send to 'secret'"):
            async with conn.open_transaction() as txn:
                await sender.transmit(amqp.Message("1", to="slow"), transaction=txn)
                await sender.transmit(amqp.Message("2", to="secret"), transaction=txn)
    assert len(queue_of(container, "slow")) == 0


@SECONDS
async def test_messages_outside_of_the_transaction_do_not_wait_for_it(
    seconds: float | None, autojump_clock: MockClock
) -> None:
    container = guarded(seconds)
    async with relaying(container) as (conn, sender):
        with pytest.raises(KeyError):
            async with conn.open_transaction() as txn:
                await sender.transmit(amqp.Message("1", to="slow"), transaction=txn)
                free = await sender.transmit(amqp.Message("2", to="q"))
                lost = await sender.transmit(amqp.Message("3", to="secret"))
                await sender.transmit(amqp.Message("4", to="q"), transaction=txn)
                assert type(await free.outcome()).__name__ == "Accepted"
                assert type(await lost.outcome()).__name__ == "Rejected"
                raise KeyError
    assert await contents(container, "q") == ["2"]
    assert len(queue_of(container, "slow")) == 0
