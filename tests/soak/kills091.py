"""Does a container lose what it confirmed to a publisher of AMQP 0-9-1 when it is killed? ``python -m tests.soak --kills N --dialect 0-9-1``.

``amqp10 serve --dialect 0-9-1 --store FILE`` has two durable queues. Publishers in confirm mode publish persistent
messages: tasks of our client, and where it is installed a process of pika. Each queue is received by a consumer of 0-9-1 and one of
1.0 at the same time. The server gets SIGKILL at a random moment and is started again on the same file; all dial again.
A confirm counts as accepted; what is counted stands in ``kills``.
"""

from __future__ import annotations

import math
import random
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10 import amqp091

from .kills import CREDIT, LOSSES, QUEUES, Accepting, Load, Plan, Server, Tally, body_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["PIKA", "run"]

PIKA: Final = Path(__file__).resolve().parents[2] / ".peers" / "pika" / "bin" / "python"
"""Where ``make interop`` installs it."""

_PROGRAM: Final = Path(__file__).with_name("pika_publisher.py")
_WINDOW: Final = 100


class Load091(Load):
    """Tasks that publish and consume by 0-9-1."""

    async def forever_091(self, address: str, patience: float | None = None) -> None:
        """Consume on one connection after the other; until nothing came for ``patience`` seconds."""
        await self._again(partial(self._consume, address, patience))

    async def publish(self, address: str) -> None:
        """Publish on one connection after the other, until told to stop."""
        await self._again(partial(self._publish, address))

    async def _again(self, work: Callable[[amqp091.Connection], Awaitable[None]]) -> None:
        while True:
            try:
                async with amqp091.open_connection(self.server.url, close_timeout=1) as connection:
                    await work(connection)
                    return
            except LOSSES:
                await trio.sleep(0.02)

    async def _publish(self, address: str, connection: amqp091.Connection) -> None:
        limit = trio.Semaphore(_WINDOW)
        loss: Exception | None = None
        async with connection.open_publisher(window=_WINDOW) as out, trio.open_nursery() as nursery:
            try:
                await out.declare_queue(address, durable=True)
                while self.sending:
                    await limit.acquire()
                    name = self.name(address)
                    ticket = await out.transmit(
                        "", address, body_of(name), mandatory=True, message_id=name, delivery_mode=2
                    )
                    nursery.start_soon(self._confirmed, ticket, name, limit)
            except LOSSES as lost:  # raised in here, it would come out as a group
                loss = lost
        if loss is not None:
            raise loss

    async def _confirmed(self, ticket: amqp091.Ticket, name: str, limit: trio.Semaphore) -> None:
        try:
            await ticket.outcome()
            self.tally.accept(name)
        except LOSSES:
            pass
        limit.release()

    async def _consume(self, address: str, patience: float | None, connection: amqp091.Connection) -> None:
        async with connection.open_channel(prefetch=CREDIT) as channel:
            accepting = Accepting(self.tally)
            queue = await channel.declare_queue(address, durable=True)
            async with queue.consume() as consumer:
                while True:
                    with trio.move_on_after(math.inf if patience is None else patience) as scope:
                        delivery = await consumer.receive()
                    if scope.cancelled_caught:
                        return
                    name = str(delivery.properties.message_id)
                    self.tally.take(name, delivery.body)
                    delivery.ack()
                    accepting.accept(name)

    async def publish_by_pika(self, address: str) -> None:
        """A process of pika that publishes until its standard input ends."""
        command = [str(PIKA), str(_PROGRAM), self.server.url, address]
        process = await trio.lowlevel.open_process(command, stdin=-1, stdout=-1)
        assert process.stdin is not None
        assert process.stdout is not None
        said = b""
        async with process.stdin, process.stdout:
            while more := await process.stdout.receive_some():
                *lines, said = (said + more).split(b"\n")
                for line in lines:
                    name = line[1:].decode()
                    (self.tally.attempted if line[:1] == b"+" else self.tally.accepted).add(name)
                if not self.sending:
                    await process.stdin.aclose()
        assert await process.wait() == 0, "pika's publisher failed; what it said stands above"


async def run(path: Path, plan: Plan, *, pika: bool) -> Tally:
    """Load, kill, start again, drain, and count.

    Args:
        path: where the store is made.
        plan: as of ``kills``; there are no transactions.
        pika: whether one of the publishers is pika.
    """
    chance = random.Random(plan.seed)
    tally = Tally()
    server = Server(path, "--dialect", "0-9-1")
    await server.start()
    load = Load091(server, tally)
    try:
        async with trio.open_nursery() as receivers:
            async with trio.open_nursery() as senders:
                for number in range(plan.senders):
                    senders.start_soon(load.publish, QUEUES[number % 2])
                if pika:
                    senders.start_soon(load.publish_by_pika, QUEUES[0])
                await _first(tally)  # who publishes has declared the queues
                for address in QUEUES:
                    receivers.start_soon(load.forever, load.receive, address, None)
                    receivers.start_soon(load.forever_091, address)
                for _ in range(plan.kills):
                    await trio.sleep(chance.uniform(plan.least, plan.most))
                    await server.end(signal.SIGKILL)
                    tally.kill()
                    await server.start()
                await _first(tally, len(tally.accepted))
                load.sending = False
            receivers.cancel_scope.cancel()
        async with trio.open_nursery() as drains:
            drains.start_soon(load.forever, load.receive, QUEUES[0], 1.0)
            drains.start_soon(load.forever_091, QUEUES[1], 1.0)
    finally:
        code = await server.end(signal.SIGTERM)
    assert code == 0, f"the server ended with {code}"
    return tally


async def _first(tally: Tally, accepted: int = 0) -> None:
    """Wait until one more message than these was confirmed."""
    with trio.fail_after(180):
        while len(tally.accepted) <= accepted:  # noqa: ASYNC110 - a tally is plain counts
            await trio.sleep(0.02)
