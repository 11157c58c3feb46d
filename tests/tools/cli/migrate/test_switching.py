"""``--redirect``: a producer and a consumer go on at the target, and no message is lost, doubled or out of order."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
import trio

import trio_amqp10 as amqp
from tests.tools.cli.conftest import SECONDS, amqp10, failed, serving
from trio_amqp10.testing import rabbitmq
from trio_amqp10.tools.cli.migrate.switching import switch

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.tools.cli.migrate.container_end import ContainerEnd
    from trio_amqp10.tools.cli.migrate.from_container import OutOfContainer


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


class Held:
    """A container that answers the hold of a queue once, then no renewal."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault
        self.holds: list[int] = []

    async def hold(self, _queue: str, seconds: int) -> None:
        self.holds.append(seconds)
        if seconds and len(self.holds) > 1:
            raise self.fault

    async def figures(self, _queue: str) -> None:
        """No queue, so no message."""

    async def redirect(self, _queue: str, _url: str) -> None:
        """Nothing."""


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize(
    "fault",
    [trio.TooSlowError("no answer"), amqp.LinkDetachedError("gone")],
    ids=lambda fault: type(fault).__name__,
)
async def test_renewal_of_the_hold_that_fails_ends_no_copying(fault: Exception) -> None:
    source, copying = Held(fault), SimpleNamespace(beside_consumers=False)
    copied: list[float] = []

    async def copy() -> None:
        await trio.sleep(20)
        copied.append(trio.current_time())

    await switch(
        cast("ContainerEnd", source), "orders", "amqp://there/orders", cast("OutOfContainer", copying), copy
    )
    assert (len(copied), copying.beside_consumers) == (2, True)
    assert source.holds == [15, 15, 0]
