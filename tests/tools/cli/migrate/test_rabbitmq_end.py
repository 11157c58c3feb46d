"""RabbitMQ as an end, by its emulator; ``tests/interop/test_migrate.py`` has the same with a broker."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.rabbitmq import QueueInfo
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.migrate.figures import Figures
from trio_amqp10.tools.cli.migrate.marks import digest_of, marked
from trio_amqp10.tools.cli.migrate.rabbitmq_end import RabbitMQEnd

from .ends import bodies, emulated, send

if TYPE_CHECKING:
    from trio.testing import MockClock

    from trio_amqp10.rabbitmq import Management


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


class Busy:
    """Management of RabbitMQ whose queue does not answer at first."""

    def __init__(self, late: int) -> None:
        self.late = late

    async def queue(self, name: str) -> QueueInfo:
        count = 7
        if self.late:
            count, self.late = 0, self.late - 1
            await trio.sleep(0.25)
        return QueueInfo(
            name=name,
            type="quorum",
            durable=True,
            exclusive=False,
            auto_delete=False,
            arguments={},
            message_count=count,
            consumer_count=0,
        )


def busy(late: int) -> RabbitMQEnd:
    return RabbitMQEnd(cast("amqp.Connection", None), cast("Management", Busy(late)), "there", pytest.fail)


async def test_zeros_of_a_queue_that_does_not_answer_are_asked_for_again(autojump_clock: MockClock) -> None:
    assert await busy(3).figures("q") == Figures(ready=7)
    with pytest.raises(CommandError, match="there: queue 'q' did not answer for 10 s: run the command again"):
        await busy(100).figures("q")


async def test_message_that_expires_while_it_is_looked_for_is_not_awaited_for_ever(
    autojump_clock: MockClock,
) -> None:
    emulator = RabbitMQ()
    emulator.declare_queue("q")
    message = amqp.Message("tea")
    await send(emulator.container, "/queues/q", [marked(message, "b"), amqp.Message("brief", ttl=700)])
    async with emulated(emulator) as end:
        figures = end.figures

        async def slow(queue: str) -> Figures | None:
            found = await figures(queue)
            await trio.sleep(1)
            return found

        end.figures = slow  # type: ignore[method-assign]
        assert await end.find_marked("q", "b") == {digest_of(message): 1}
    assert await bodies(emulator.container, "/queues/q") == ["tea"]


async def test_broker_that_does_not_let_its_queue_be_looked_at_is_reported(autojump_clock: MockClock) -> None:
    emulator = RabbitMQ()
    emulator.declare_queue("q")
    await send(emulator.container, "/queues/q", ["tea"])
    async with emulated(emulator) as here:
        nowhere = partial(amqp091.open_connection, "amqp://127.0.0.1:1")
        end = RabbitMQEnd(here.connection, here.broker, "there", nowhere)
        with pytest.raises(CommandError, match="there: queue 'q' cannot be looked at in AMQP 0-9-1 "):
            await end.find_marked("q", "b")


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
