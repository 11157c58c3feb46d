"""``amqp10 migrate`` to RabbitMQ 4 and back, killed at random moments."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pytest
import trio

import trio_amqp10 as amqp
from tests.soak.migrate import drained, ends_of, kill_and_count
from tests.tools.cli.migrate.ends import end_of, managed
from trio_amqp10 import amqp091
from trio_amqp10.rabbitmq import open_management, queue_address
from trio_amqp10.testing import Cut, Line, open_proxy
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.migrate.figures import Figures
from trio_amqp10.tools.cli.migrate.from_rabbitmq import OutOfRabbitMQ
from trio_amqp10.tools.cli.migrate.marks import digest_of, marked
from trio_amqp10.tools.cli.migrate.rabbitmq_end import RabbitMQEnd
from trio_amqp10.tools.cli.migrate.staging import new_staging

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .rabbitmq import Broker


@pytest.mark.whole
@pytest.mark.parametrize("quorum", [False, True], ids=["classic", "quorum"])
@pytest.mark.parametrize("way", ["out", "back"])
def test_kills_lose_and_double_nothing(rabbitmq4: Broker, way: str, quorum: bool) -> None:
    with ends_of(way, rabbitmq4.url, quorum=quorum) as ends:
        counts = kill_and_count(ends, 6, 12_000, 1, longest=1.8)
    assert (counts.moved, *counts[3:]) == (12_000, 0, 0, 0)
    assert counts.killed


QUEUE = "cut"
MESSAGES = [amqp.Message(durable=True, application_properties={"number": each}) for each in range(3000)]


def breaking(octets: int) -> list[Line]:
    """Networks that break later each time, the last after so many octets."""
    return [Line(cut=Cut(at=octets * number // 10)) for number in range(1, 11)]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_look_that_is_cut_changes_no_order(rabbitmq4: Broker, kind: Any) -> None:
    async def look_again_and_again() -> None:
        async with filled(rabbitmq4.url, kind) as end:
            for line in breaking(360_000):
                async with open_proxy(rabbitmq4.url, back=line) as proxy:
                    looking = looking_at(end, proxy.url)
                    with pytest.raises(CommandError, match=f"queue '{QUEUE}' cannot be looked at"):
                        await looking.find_marked(QUEUE, "b")
                assert await end.until_stable(QUEUE) == Figures(ready=len(MESSAGES))
            assert await end.find_marked(QUEUE, "b") == Counter(map(digest_of, MESSAGES))

    trio.run(look_again_and_again)
    assert trio.run(drained, rabbitmq4.url, queue_address(QUEUE)) == list(range(3000))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_batch_that_is_cut_changes_no_order(rabbitmq4: Broker, kind: Any) -> None:
    """Cut by turns late and early, and recovered each time."""

    async def take_again_and_again() -> list[int]:
        async with filled(rabbitmq4.url, kind) as end, end_of(managed(QUEUE, max_priority=0)) as there:
            for octets in (60_000, 10_000, 55_000, 5_000, 30_000, 20_000):
                async with open_proxy(rabbitmq4.url, back=Line(cut=Cut(at=octets))) as proxy:
                    with suppress(amqp.AmqpError):
                        async with amqp.open_connection(proxy.url) as conn:
                            source = RabbitMQEnd(conn, end.broker, "here", pytest.fail)
                            await OutOfRabbitMQ(source, there, QUEUE).step()
                await OutOfRabbitMQ(end, there, QUEUE).recover(await there.staged())
            return [each.application_properties["number"] for each in await there.look_at(QUEUE)]

    moved = trio.run(take_again_and_again)
    assert moved + trio.run(drained, rabbitmq4.url, queue_address(QUEUE)) == list(range(3000))


def test_batch_that_is_still_there_does_not_go_back_once_more(rabbitmq4: Broker) -> None:
    """A queue that takes a message back once has it back from a run that was killed."""

    async def recover() -> None:
        async with (
            filled(rabbitmq4.url, "quorum", {"x-delivery-limit": 1}) as end,
            end_of(managed(QUEUE)) as there,
        ):
            staging = new_staging("in", QUEUE)
            await there.make_staging(staging)
            async with end.connection.open_receiver(queue_address(QUEUE), credit=0) as receiver:
                receiver.grant(100)
                batch = [each.message for each in await receiver.drain()]
            async with there.connection.open_sender(staging.address) as sender:
                for each in batch:
                    await sender.send(each)
            copying = OutOfRabbitMQ(end, there, QUEUE)
            assert await copying.recover(await there.staged()) == 100
            while (await copying.step()).moved:
                pass
            found = [each.application_properties["number"] for each in await there.look_at(QUEUE)]
            assert found == list(range(3000))

    trio.run(recover)


@asynccontextmanager
async def filled(
    url: str, kind: Literal["classic", "quorum"], arguments: dict[str, Any] | None = None
) -> AsyncGenerator[RabbitMQEnd]:
    """RabbitMQ with a queue that has ``MESSAGES`` with marks."""
    async with amqp.open_connection(url) as conn, open_management(conn) as broker:
        await broker.delete_queue(QUEUE)
        await broker.declare_queue(QUEUE, type=kind, arguments=arguments)
        async with conn.open_sender(queue_address(QUEUE)) as sender:
            sent = [await sender.transmit(marked(each, "b")) for each in MESSAGES]
            for each in sent:
                assert isinstance(await each.outcome(), amqp.Accepted)
        yield looking_at(RabbitMQEnd(conn, broker, "there", pytest.fail), url)


def looking_at(end: RabbitMQEnd, url: str) -> RabbitMQEnd:
    return RabbitMQEnd(end.connection, end.broker, end.name, partial(amqp091.open_connection, url))
