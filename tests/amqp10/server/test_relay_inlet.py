"""Links to the anonymous terminus, whose messages need permission one by one."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import queue_of
from tests.container.relaying import SECONDS, contents, guarded, relaying
from trio_amqp10.amqp10.peer.errors import DeliveryRejectedError, LinkDetachedError
from trio_amqp10.amqp10.spec.messaging import Accepted, Source
from trio_amqp10.container import Container


def no_errors(caplog: pytest.LogCaptureFixture) -> bool:
    """Whether no engine, node or link has logged an error."""
    return not [each for each in caplog.records if each.levelno >= logging.ERROR]


ACCEPTED_ONLY = Source(outcomes=("amqp:accepted:list",), default_outcome=Accepted())


def info_of(failure: LinkDetachedError) -> Any:
    assert failure.error is not None
    return failure.error.info


async def test_relay_refuses_what_came_just_before_its_link_went(caplog: pytest.LogCaptureFixture) -> None:
    async with Container(strict=True).connect() as conn, conn.open_sender(None) as sender:
        await sender.wait_sendable()
        sender.send_nowait(amqp.Message("x", to="unknown"))
        sender._link.detach()
        await wait_all_tasks_blocked()
    assert no_errors(caplog)


async def test_relay_under_rules_detaches_with_the_tag_where_it_may_not_reject() -> None:
    container = Container(authorise=lambda access: access.address != "secret")
    async with container.connect() as conn, conn.open_sender(None, source=ACCEPTED_ONLY) as sender:
        await sender.send(amqp.Message("x", to="q"))
        with pytest.raises(LinkDetachedError) as detached:
            await sender.send(amqp.Message("x", to="secret"), tag=b"the tag")
        assert detached.value.condition == "amqp:unauthorized-access"
        assert info_of(detached.value) == {"delivery-tag": b"the tag"}


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
