"""Copying out of RabbitMQ, of its emulator: at every moment at which a run may be killed, the next one completes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.migrate.from_rabbitmq import OutOfRabbitMQ
from trio_amqp10.tools.cli.migrate.staging import PREFIX, new_staging

from .ends import bodies, emulated, end_of, managed, send

if TYPE_CHECKING:
    from trio.testing import MockClock

    from trio_amqp10.tools.cli.migrate.container_end import ContainerEnd


async def run(copying: OutOfRabbitMQ, there: ContainerEnd) -> int:
    moved = await copying.recover(await there.staged())
    while (batch := await copying.step()).moved:
        moved += batch.moved
    return moved


async def filled(messages: str) -> RabbitMQ:
    emulator = RabbitMQ()
    emulator.declare_queue("q")
    await send(emulator.container, "/queues/q", messages)
    return emulator


async def test_all_messages_go_in_order_and_no_staging_queue_stays(autojump_clock: MockClock) -> None:
    source, target = await filled("abcde" * 240), managed("q", max_priority=0)
    async with emulated(source) as here, end_of(target) as there:
        assert await run(OutOfRabbitMQ(here, there, "q"), there) == 1200
    assert "".join(await bodies(target, "q")) == "abcde" * 240
    assert not [address for address in target.nodes if address.startswith(PREFIX)]


@pytest.mark.parametrize("settled", [False, True])
async def test_batch_that_is_at_both_ends_counts_once(settled: bool, autojump_clock: MockClock) -> None:
    source, target = await filled("aabcdef"), managed("q", max_priority=0)
    staging = new_staging("in", "q")
    async with end_of(target) as there, emulated(source) as here:
        await there.make_staging(staging)
        async with source.container.connect() as conn, conn.open_receiver("/queues/q", credit=0) as receiver:
            receiver.grant(5)
            found = await receiver.drain()
            await send(target, staging.address, [each.message for each in found])
            if settled:
                for each in found:
                    each.accept()
        assert await run(OutOfRabbitMQ(here, there, "q"), there) == 7
    assert "".join(await bodies(target, "q")) == "aabcdef"


async def test_batch_among_others_goes_back_and_is_taken_again(autojump_clock: MockClock) -> None:
    source, target = await filled("xab"), managed("q", max_priority=0)
    staging = new_staging("in", "q")
    async with end_of(target) as there, emulated(source) as here:
        await there.make_staging(staging)
        async with source.container.connect() as conn, conn.open_receiver("/queues/q", credit=0) as receiver:
            receiver.grant(3)
            await send(target, staging.address, [each.message for each in (await receiver.drain())[1:]])
        assert await run(OutOfRabbitMQ(here, there, "q"), there) == 3
    assert "".join(await bodies(target, "q")) == "xab"


async def test_batch_of_which_some_were_moved_is_completed(autojump_clock: MockClock) -> None:
    source, target = await filled("ef"), managed("q", max_priority=0)
    staging = new_staging("in", "q")
    async with end_of(target) as there, emulated(source) as here:
        await there.make_staging(staging)
        await send(target, "q", "ab")
        await send(target, staging.address, "cd")
        assert await run(OutOfRabbitMQ(here, there, "q"), there) == 4
    assert "".join(await bodies(target, "q")) == "abcdef"


async def test_equal_messages_that_were_not_delivered_before_are_no_batch(autojump_clock: MockClock) -> None:
    source, target = await filled("aab"), managed("q", max_priority=0)
    staging = new_staging("in", "q")
    async with end_of(target) as there, emulated(source) as here:
        await there.make_staging(staging)
        await send(target, staging.address, "aa")
        await run(OutOfRabbitMQ(here, there, "q"), there)
    assert "".join(await bodies(target, "q")) == "aaaab"


@pytest.mark.parametrize("seed", range(12))
async def test_run_that_is_cancelled_anywhere_is_completed_by_the_next(
    seed: int, autojump_clock: MockClock
) -> None:
    wanted = "".join(f"{number % 3}" for number in range(40))
    source, target = await filled(wanted), managed("q", max_priority=0)

    async def attempt(checkpoints: int | None) -> None:
        async with (
            emulated(source) as here,
            end_of(target) as there,
            here.lock(),
            there.lock(),
            trio.open_nursery() as nursery,
        ):
            copying = OutOfRabbitMQ(here, there, "q")
            moved = await copying.recover(await there.staged())
            if checkpoints is not None:
                nursery.start_soon(_cancel_after, checkpoints, nursery.cancel_scope)
            while (batch := await copying.step()).moved:
                moved += batch.moved
            nursery.cancel_scope.cancel()

    for cut in range(3):
        with suppress(amqp.AmqpError, CommandError):
            await attempt(3 + 11 * seed + 3 * cut)
    await attempt(None)
    assert "".join(await bodies(target, "q")) == wanted


async def _cancel_after(checkpoints: int, scope: trio.CancelScope) -> None:
    for _ in range(checkpoints):
        await trio.lowlevel.checkpoint()
    scope.cancel()


async def test_source_with_a_consumer_is_refused(autojump_clock: MockClock) -> None:
    source, target = await filled("ab"), managed("q")
    async with emulated(source) as here, end_of(target) as there, source.container.connect() as conn:
        async with conn.open_receiver("/queues/q"):
            with pytest.raises(CommandError, match="'q' has 1 consumers: stop them"):
                await OutOfRabbitMQ(here, there, "q").recover(())
        assert await run(OutOfRabbitMQ(here, there, "q"), there) == 2
