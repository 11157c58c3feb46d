"""``--redirect``: a producer and a consumer go on at the target, and no message is lost, doubled or out of order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

import trio_amqp10 as amqp
from tests.tools.cli.conftest import SECONDS, amqp10, failed, serving
from trio_amqp10.testing import rabbitmq

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Seen:
    """What a producer knows to be accepted, and what a consumer has had."""

    accepted: list[int] = field(default_factory=list)
    consumed: list[int] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)


async def produce(conn: amqp.Connection, address: str, seen: Seen, enough: trio.Event) -> None:
    try:
        async with conn.open_sender(address) as sender:
            while not enough.is_set():
                try:
                    await sender.send(amqp.Message(len(seen.accepted), durable=True))
                except amqp.DeliveryReleasedError:
                    continue  # It was not taken: it may be sent again.
                seen.accepted.append(len(seen.accepted))
                await trio.sleep(0.001)
    except amqp.LinkRedirectError as error:
        seen.moved.append("producer")
        async with conn.open_redirected(error) as there:
            await produce(there, str(error.address), seen, enough)


async def consume(conn: amqp.Connection, address: str, seen: Seen) -> None:
    try:
        async with conn.open_receiver(address, credit=10) as receiver:
            async for delivery in receiver:
                await trio.sleep(0.001)
                seen.consumed.append(int(delivery.message.body))
                delivery.accept()
    except amqp.LinkRedirectError as error:
        seen.moved.append("consumer")
        async with conn.open_redirected(error) as there:
            await consume(there, str(error.address), seen)


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(SECONDS):
        while not holds():  # noqa: ASYNC110 - a list grows in another task
            await trio.sleep(0.01)


def test_producer_and_consumer_go_on_at_the_target() -> None:
    async def main(here: str, there: str) -> Seen:
        seen, enough = Seen(), trio.Event()
        async with (
            amqp.open_connection(here, follow_redirects=True) as one,
            amqp.open_connection(here, follow_redirects=True) as other,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(consume, other, "orders", seen)
            async with trio.open_nursery() as producing:
                producing.start_soon(produce, one, "orders", seen, enough)
                await until(lambda: len(seen.consumed) >= 50)
                result = await trio.to_thread.run_sync(amqp10, "migrate", here, there, "--redirect")
                assert (result.returncode, result.stderr) == (0, b"")
                wanted = len(seen.accepted) + 50
                await until(lambda: len(seen.consumed) >= wanted)
                enough.set()
            await until(lambda: len(seen.consumed) >= len(seen.accepted))
            nursery.cancel_scope.cancel()
        return seen

    with serving("--management", "--queue", "orders") as here, serving("--management") as there:
        seen = trio.run(main, here, there)
    assert sorted(seen.moved) == ["consumer", "producer"]
    assert sorted(set(seen.consumed)) == seen.accepted
    assert len(seen.consumed) == len(seen.accepted)


def test_rabbitmq_cannot_redirect() -> None:
    with rabbitmq() as here, serving("--management") as there:
        assert "is RabbitMQ, which cannot redirect" in failed("migrate", here, there, "--redirect", code=2)
