"""Permission for each message on a link to the anonymous terminus, whether the answer is there at once or not."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, queue_of
from tests.container.test_coordinator import gone, post
from trio_amqp10.container import Container
from trio_amqp10.peer.errors import DeliveryRejectedError, LinkDetachedError, TransactionRolledBackError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.container.rights.access import Access


def guarded(seconds: float | None = None, **options: Any) -> Container:
    """Nobody may send to ``secret``; it takes so long to find out."""

    def authorise(access: Access) -> bool:
        return access.address != "secret"

    async def authorise_later(access: Access) -> bool:
        assert seconds is not None
        if access.action == "send":
            await trio.sleep(seconds if access.address == "slow" else 0)
        return authorise(access)

    container = Container(authorise=authorise if seconds is None else authorise_later, **options)
    for name in ("q", "slow", "secret"):
        container.add_queue(name)
    return container


@asynccontextmanager
async def relaying(
    container: Container, **options: Any
) -> AsyncGenerator[tuple[amqp.Connection, amqp.Sender]]:
    """A connection, and a sender on it to the anonymous terminus."""
    async with container.connect() as conn, conn.open_sender(None, **options) as sender:
        yield conn, sender


async def contents(container: Container, address: str) -> list[Any]:
    """What is on a queue, looked at by somebody who may."""
    count = len(queue_of(container, address))
    async with container.connect() as conn, conn.open_receiver(address) as receiver:
        return await bodies(receiver, count, accept=False)


SECONDS = pytest.mark.parametrize("seconds", [None, 5.0], ids=["at once", "later"])


@SECONDS
async def test_relay_rejects_what_its_sender_may_not_send_there(
    seconds: float | None, autojump_clock: MockClock
) -> None:
    container = guarded(seconds)
    async with relaying(container) as (_, sender):
        await sender.send(amqp.Message("1", to="q"))
        with pytest.raises(DeliveryRejectedError, match="may not send to 'secret'") as rejected:
            await sender.send(amqp.Message("2", to="secret"))
        assert rejected.value.condition == "amqp:unauthorized-access"
        await sender.send(amqp.Message("3", to="q"))
        for lost in (amqp.Message("4"), amqp.Message.from_payload(b"?")):
            with pytest.raises(DeliveryRejectedError) as rejected:
                await sender.send(lost)
            assert rejected.value.condition in ("amqp:not-found", "amqp:decode-error")
    assert await contents(container, "q") == ["1", "3"]
    assert len(queue_of(container, "secret")) == 0


@SECONDS
async def test_relay_keeps_the_order_whatever_the_answers_take(
    seconds: float | None, autojump_clock: MockClock
) -> None:
    container = guarded(seconds)
    async with relaying(container) as (_, sender):
        deliveries = [
            await sender.transmit(amqp.Message(number, to=("q", "slow", "secret")[number % 3]))
            for number in range(300)
        ]
        kinds = [type(await each.outcome()).__name__ for each in deliveries]
    assert kinds == ["Accepted", "Accepted", "Rejected"] * 100
    assert await contents(container, "q") == list(range(0, 300, 3))
    assert await contents(container, "slow") == list(range(1, 300, 3))


@SECONDS
async def test_relay_detaches_where_a_settled_message_may_not_go(
    seconds: float | None, autojump_clock: MockClock
) -> None:
    container = guarded(seconds)
    async with relaying(container, guarantee="at-most-once") as (_, sender):
        await sender.send(amqp.Message("1", to="slow"))
        await sender.send(amqp.Message("2", to="secret"))
        await trio.sleep(10)
        with pytest.raises(LinkDetachedError) as detached:
            await sender.send(amqp.Message("3", to="q"))
        assert detached.value.condition == "amqp:unauthorized-access"
    assert await contents(container, "slow") == ["1"]


async def test_relay_hands_on_what_was_sent_settled_before_its_link_was_closed(
    autojump_clock: MockClock,
) -> None:
    container = guarded(5.0)
    async with container.connect() as conn:
        async with conn.open_sender(None, guarantee="at-most-once") as sender:
            for number in range(3):
                await sender.send(amqp.Message(number, to="slow"))
        await trio.sleep(60)
    assert await contents(container, "slow") == [0, 1, 2]


async def test_relay_link_that_is_gone_meanwhile_makes_no_fuss(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    container = guarded(5.0)
    async with container.connect(close_timeout=1) as conn:
        sender = await conn.open_sender(None).__aenter__()
        await sender.transmit(amqp.Message("x", to="slow"))
        await sender.transmit(amqp.Message("x", to="secret"))
        await wait_all_tasks_blocked()
    await trio.sleep(20)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


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
