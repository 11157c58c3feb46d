"""Copying out of a container: at every moment at which a run may be killed, the next one completes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.migrate import from_container
from trio_amqp10.tools.cli.migrate.from_container import OutOfContainer
from trio_amqp10.tools.cli.migrate.marks import marked
from trio_amqp10.tools.cli.migrate.staging import PREFIX, new_staging

from .ends import bodies, emulated, end_of, managed, send

if TYPE_CHECKING:
    from trio.testing import MockClock

    from trio_amqp10.tools.cli.migrate.container_end import ContainerEnd


def staging_queues(container: amqp.Container) -> list[str]:
    return [address for address in container.nodes if address.startswith(PREFIX)]


async def run(copying: OutOfContainer, here: ContainerEnd) -> int:
    moved = await copying.recover(await here.staged())
    while (batch := await copying.step()).moved:
        moved += batch.moved
    return moved


async def test_all_messages_go_in_order_and_no_staging_queue_stays() -> None:
    source, target = managed("q", max_priority=0), managed("q")
    messages = [
        amqp.Message(number, priority=4 + number % 2, footer={"x-n": number}) for number in range(1200)
    ]
    await send(source, "q", messages)
    async with end_of(source) as here, end_of(target) as there:
        assert await run(OutOfContainer(here, there, "q", "q"), here) == 1200
    assert staging_queues(source) == []
    assert [each.body for each in (each.message for each in await target.management.browse("q", 2000))] == [
        *range(1, 1200, 2),
        *range(0, 1200, 2),
    ]
    assert (await target.management.browse("q", 1))[0].message.footer == {"x-n": 1}


@pytest.mark.parametrize("sent", range(6))
async def test_batch_of_which_some_were_sent_is_completed(sent: int) -> None:
    source, target = managed("q"), managed("q")
    await send(source, "q", "aabcd")
    staging = new_staging("out", "q")
    async with end_of(source) as here, end_of(target) as there:
        await here.make_staging(staging)
        await here.move("q", staging.address, 5)
        await send(target, "q", [marked(amqp.Message(body), staging.batch) for body in "aabcd"[:sent]])
        await send(source, "q", "ef")
        assert await run(OutOfContainer(here, there, "q", "q"), here) == 7
    assert "".join(await bodies(target, "q")) == "aabcdef"
    assert staging_queues(source) == []


async def test_message_that_expired_in_between_makes_no_other_one_lost(autojump_clock: MockClock) -> None:
    source, target = managed("q"), managed("q")
    await send(source, "q", ["a", amqp.Message("b", ttl=1000), "c"])
    staging = new_staging("out", "q")
    async with end_of(source) as here, end_of(target) as there:
        await here.make_staging(staging)
        await here.move("q", staging.address, 3)
        await send(
            target, "q", [marked(amqp.Message("a"), staging.batch), marked(amqp.Message("b"), staging.batch)]
        )
        await trio.sleep(2)
        await run(OutOfContainer(here, there, "q", "q"), here)
    assert await bodies(target, "q") == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["container", "rabbitmq"])
@pytest.mark.parametrize("seed", range(12))
async def test_run_that_is_cancelled_anywhere_is_completed_by_the_next(
    seed: int, kind: str, autojump_clock: MockClock
) -> None:
    source, target, emulator = managed("q", max_priority=0), managed("q"), RabbitMQ()
    emulator.declare_queue("q")
    await send(source, "q", [f"{number % 3}" for number in range(40)])

    async def attempt(checkpoints: int | None) -> None:
        other = end_of(target) if kind == "container" else emulated(emulator)
        async with (
            end_of(source) as here,
            other as there,
            here.lock(),
            there.lock(),
            trio.open_nursery() as nursery,
        ):
            if checkpoints is not None:
                nursery.start_soon(_cancel_after, checkpoints, nursery.cancel_scope)
            await run(OutOfContainer(here, there, "q", "q"), here)
            nursery.cancel_scope.cancel()

    for cut in range(4):
        with suppress(amqp.AmqpError, CommandError):
            await attempt(5 + 9 * seed + 23 * cut)
    await attempt(None)
    there = (target, "q") if kind == "container" else (emulator.container, "/queues/q")
    assert await bodies(*there) == [f"{number % 3}" for number in range(40)]
    assert staging_queues(source) == []


async def _cancel_after(checkpoints: int, scope: trio.CancelScope) -> None:
    for _ in range(checkpoints):
        await trio.lowlevel.checkpoint()
    scope.cancel()


async def test_target_with_a_consumer_is_refused_and_nothing_is_moved() -> None:
    source, target = managed("q"), managed("q")
    await send(source, "q", "ab")
    async with end_of(source) as here, end_of(target) as there, target.connect() as conn:
        async with conn.open_receiver("q"):
            with pytest.raises(CommandError, match="'q' has 1 consumers: stop them"):
                await OutOfContainer(here, there, "q", "q").step()
        assert await run(OutOfContainer(here, there, "q", "q"), here) == 2
    assert await bodies(target, "q") == ["a", "b"]


async def test_batch_that_was_completed_after_it_was_listed_is_no_fault() -> None:
    source, target = managed("q"), managed("q")
    staging = new_staging("out", "q")
    async with end_of(source) as here, end_of(target) as there:
        await here.make_staging(staging)
        staged = await here.staged()
        await here.delete_staging(staging)
        assert await OutOfContainer(here, there, "q", "q").recover(staged) == 0
    assert staging_queues(source) == []


async def test_target_that_drops_what_comes_back_too_often_is_looked_at_less_often(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """A kill after each look at a queue of RabbitMQ that takes a message back twice."""
    source, target = managed("q"), RabbitMQ()
    target.declare_queue("q", {"x-queue-type": "quorum", "x-delivery-limit": 2})
    await send(source, "q", "abcd")
    staging = new_staging("out", "q")
    async with end_of(source) as here, emulated(target) as there:
        await here.make_staging(staging)
        await here.move("q", staging.address, 3)
        await send(target.container, "/queues/q", ["z", marked(amqp.Message("a"), staging.batch)])
        copying = OutOfContainer(here, there, "q", "q")
        with monkeypatch.context() as killed:
            killed.setattr(from_container, "send_all", _killed)
            for _ in range(2):
                with pytest.raises(Killed):
                    await run(copying, here)
            with pytest.raises(CommandError) as refused:
                await run(copying, here)
        assert str(refused.value) == (
            "there: 'q' drops messages that come back more than 2 times, and that many runs were interrupted: consume the "
            f"messages of that queue, move {staging.address!r} back to 'q' with amqp10 move, and run the command again; those of its messages that had arrived "
            "then come twice"
        )
        assert await bodies(target.container, "/queues/q") == ["z", "a"]
        # Nothing is there any more that could be dropped, so the count begins again; without marks nothing of the batch is found.
        assert await run(copying, here) == 4
        assert await here.looks("q") == 0
    assert await bodies(target.container, "/queues/q") == ["a", "b", "c", "d"]
    assert staging_queues(source) == []


class Killed(Exception):  # noqa: N818
    """The process was killed."""


async def _killed(*_: object) -> None:
    raise Killed
