"""Producers, through real links."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.container.helpers import bodies, fill
from trio_amqp10.amqp10.peer.errors import LinkDetachedError
from trio_amqp10.container import Container

if TYPE_CHECKING:
    import trio_amqp10 as amqp

SECRET = "the password is swordfish"


async def test_producer_runs_for_each_link_and_closes_it_on_returning() -> None:
    container = Container()

    @container.producer("ticks")
    async def ticks(link: amqp.Sender) -> None:
        for number in range(3):
            await link.send(number)
        await link.transmit(bytes(200_000))

    async with container.connect() as conn:
        for _ in range(2):
            async with conn.open_receiver("ticks") as receiver:
                got = []
                async for delivery in receiver:
                    got.append(delivery.message.body)
                    delivery.accept()
                assert got == [0, 1, 2, bytes(200_000)]


@pytest.mark.logs_errors
async def test_row_67_producer_that_raises_detaches_its_link_and_no_other() -> None:
    container = Container()

    @container.producer("ticks")
    async def ticks(link: amqp.Sender) -> None:
        raise ValueError(SECRET)

    async with container.connect() as conn, conn.open_receiver("quiet", credit=1) as quiet:
        with pytest.raises(LinkDetachedError) as detached:
            async with conn.open_receiver("ticks") as receiver:
                await receiver.receive()
        assert detached.value.condition == "amqp:internal-error"
        assert SECRET not in str(detached.value)
        await fill(conn, "quiet", "still here")
        assert await bodies(quiet, 1) == ["still here"]


async def test_producer_is_cancelled_when_its_link_goes() -> None:
    container = Container()
    ended: list[str] = []

    @container.producer("ticks")
    async def ticks(link: amqp.Sender) -> None:
        try:
            await link.send("one")
            await trio.sleep_forever()
        finally:
            ended.append("cancelled")

    async with container.connect() as conn:
        async with conn.open_receiver("ticks") as receiver:
            assert await bodies(receiver, 1) == ["one"]
        await wait_all_tasks_blocked()
        assert ended == ["cancelled"]


@pytest.mark.parametrize("grouped", [True, False])
async def test_producer_may_raise_what_a_lost_link_raises_without_a_fuss(
    grouped: bool, caplog: pytest.LogCaptureFixture
) -> None:
    container = Container()
    failed = trio.Event()

    @container.producer("ticks")
    async def ticks(link: amqp.Sender) -> None:
        with trio.CancelScope(shield=True):
            await link.wait_sendable()
            try:
                await link.send("one")
            except trio.BrokenResourceError as loss:
                failed.set()
                if grouped:
                    raise ExceptionGroup("several", [loss]) from None
                raise

    async with container.connect() as conn:
        receiver = await conn.open_receiver("ticks").__aenter__()
        await receiver.receive()
        conn.pump.cancel()
        await failed.wait()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_producer_may_close_its_link_itself_and_answers_a_drain() -> None:
    container = Container()
    drained = trio.Event()

    @container.producer("ticks")
    async def ticks(link: amqp.Sender) -> None:
        await link.transmit("one")
        await drained.wait()
        await link.aclose()

    async with container.connect() as conn, conn.open_receiver("ticks", credit=0) as receiver:
        receiver.grant(5)
        await trio.testing.wait_all_tasks_blocked()
        assert [each.message.body for each in await receiver.drain()] == ["one"]
        drained.set()
        with pytest.raises(LinkDetachedError):
            await receiver.receive()
