"""RabbitMQ as an end, by its emulator; ``tests/interop/test_migrate.py`` has the same with a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.migrate.figures import Figures
from trio_amqp10.tools.cli.migrate.marks import digest_of, marked

from .ends import bodies, emulated, send

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_one_run_at_a_time_has_the_lock(autojump_clock: MockClock) -> None:
    emulator = RabbitMQ()
    async with emulated(emulator) as one, emulated(emulator) as other:
        async with one.lock():
            with pytest.raises(CommandError, match="there: another amqp10 migrate is at work there"):
                async with other.lock():
                    pytest.fail("both have it")
        async with other.lock():
            pass


async def test_marks_are_found_and_all_messages_stay_in_order(autojump_clock: MockClock) -> None:
    emulator = RabbitMQ()
    emulator.declare_queue("q")
    message = amqp.Message("tea")
    await send(emulator.container, "/queues/q", [*range(1200), marked(message, "b"), marked(message, "c")])
    async with emulated(emulator) as end:
        assert await end.find_marked("q", "b") == {digest_of(message): 1}
        assert await end.figures("q") == Figures(ready=1202)
        assert await end.figures("nothing") is None
    assert await bodies(emulator.container, "/queues/q") == [*range(1200), "tea", "tea"]


async def test_definitions_are_declared_and_a_queue_that_exists_is_kept_if_that_is_accepted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    definitions = {
        "declared-queues": [
            {"name": "q", "durable": True, "auto-delete": False, "arguments": {"x-queue-type": "quorum"}}
        ],
        "exchanges": [
            {
                "name": "shop",
                "type": "topic",
                "durable": True,
                "auto-delete": False,
                "internal": False,
                "arguments": {},
            }
        ],
        "bindings": [
            {"source": "shop", "destination-kind": "queue", "destination": "q", "key": "#", "arguments": {}}
        ],
    }
    async with emulated(RabbitMQ()) as end:
        await end.define(definitions, keep=False)
        assert (await end.broker.queue("q")).type == "quorum"
        assert await end.broker.bindings("shop", queue="q", routing_key="#") == [{}]
        definitions["declared-queues"][0]["arguments"] = {"x-queue-type": "classic"}
        with pytest.raises(CommandError, match="there refuses a definition, so no message was moved"):
            await end.define(definitions, keep=False)
        await end.define(definitions, keep=True)
        assert "queue q: it exists at there, and keeps its arguments" in capsys.readouterr().err
