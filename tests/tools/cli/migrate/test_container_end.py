"""A container as an end: its lock, its definitions, and what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from trio_amqp10.broker.exchanges.addresses import TEMPORARY
from trio_amqp10.container.management import OperationRefusedError
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.migrate.figures import Figures
from trio_amqp10.tools.cli.migrate.marks import digest_of, marked
from trio_amqp10.tools.cli.migrate.staging import LOCK, Staging

from .ends import bodies, end_of, managed, send

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


async def test_one_run_at_a_time_has_the_lock(autojump_clock: MockClock) -> None:
    container = managed()
    async with end_of(container) as one, end_of(container, "there") as other:
        async with one.lock():
            with pytest.raises(CommandError, match="there: another amqp10 migrate is at work there"):
                async with other.lock():
                    pytest.fail("both have it")
        async with other.lock():
            assert LOCK in container.nodes
    assert LOCK not in container.nodes


async def test_queues_of_the_command_are_not_shown() -> None:
    container = managed("q", dead_letter="dead", max_priority=0)
    staging = Staging("out", "q", "b")
    async with end_of(container) as end:
        await end.make_staging(staging)
        assert [each["name"] for each in await end.queues() if not each["name"].startswith(TEMPORARY)] == [
            "q"
        ]
        assert [each["name"] for each in (await end.definitions())["queues"]] == ["q"]
        assert await end.staged() == [staging]
        rules = (await container.management.queue(staging.address)).rules
        assert (rules.dead_letter, rules.max_priority) == ("dead", 0)
        await send(container, "q", "ab")
        assert await end.move("q", staging.address, 5) == 2
        with pytest.raises(OperationRefusedError, match="not empty"):
            await end.delete_staging(staging)
        await end.drop_staging(staging)
        assert await end.staged() == []
        with pytest.raises(CommandError, match="no queue 'x'"):
            await end.make_staging(Staging("out", "x", "b"))


async def test_figures_are_those_of_the_queue(autojump_clock: MockClock) -> None:
    container = managed("q")
    await send(container, "q", "ab")
    async with end_of(container, "here") as end, container.connect() as conn:
        async with conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(1)
            await receiver.receive()
            found = await end.figures("q")
            assert found is not None
            assert (found.ready, found.busy, found.consumers) == (1, 1, 1)
            with pytest.raises(CommandError, match="here: 1 messages of 'q' are with a consumer"):
                await end.until_idle("q")
        await end.until_idle("q")
        assert await end.figures("nothing") is None
        assert await end.figures("q") != Figures(ready=0)


async def test_marks_are_found_behind_many_messages() -> None:
    container = managed("q")
    message = amqp.Message("tea")
    await send(container, "q", [*range(700), marked(message, "b"), marked(message, "c")])
    async with end_of(container) as end:
        assert await end.find_marked("q", "b") == {digest_of(message): 1}
        assert len(await bodies(container, "q")) == 702


async def test_declared_queue_with_other_rules_is_kept_if_that_is_accepted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    container = managed("q", max_length=5)
    declared = {"name": "q", "durable": True, "auto-delete": False, "arguments": {"x-max-length": 3}}
    async with end_of(container, "here") as end:
        with pytest.raises(
            CommandError, match="here refuses definitions, so no message was moved: 'q' of decl"
        ):
            await end.define({"declared-queues": [declared]}, keep=False)
        await end.define({"declared-queues": [declared]}, keep=True)
        assert "queue q: it exists at here, and keeps its rules" in capsys.readouterr().err
        with pytest.raises(CommandError, match="'x' of exchanges"):
            await end.define({"exchanges": [{"name": "x"}]}, keep=True)


async def test_looks_are_counted_also_after_a_restart_of_the_container(tmp_path: Path) -> None:
    """A count that began again would let the target drop messages."""
    staging = Staging("out", "a/b", "c")
    for looks in range(3):
        with amqp.SqliteStore(tmp_path / "store") as store:
            async with end_of(managed(store=store)) as end:
                assert await end.looks("a/b") == looks
                if not looks:
                    await end.management.create_queue("a/b", durable=True)
                    await end.make_staging(staging)
                await end.note_look(staging)
    with amqp.SqliteStore(tmp_path / "store") as store:
        async with end_of(managed(store=store)) as end:
            await end.forget_looks("a/b")
            await end.forget_looks("a/b")
            assert await end.looks("a/b") == 0
