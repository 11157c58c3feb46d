"""Does a container lose what it confirmed by another protocol than 1.0 when it is killed? ``python -m tests.soak --kills N --dialect 10.3``.

``amqp10 serve --dialect NAME --store FILE`` has two durable queues. Publishers of the dialect send durable messages and count
those that the server confirmed: by a confirm (0-9-1), the commit of a transaction (10.3), an answer to each message (AMQP/Fast), or
an outcome (the draft of 2010). For 0-9-1 one publisher more is a process of pika, where that is installed. Each queue has a
consumer of the dialect and one of 1.0 at the same time, except for the draft, which is served in place of 1.0. The
server gets SIGKILL at a random moment and is started again on the same file; all dial again. What is counted stands in ``kills``.
"""

from __future__ import annotations

import math
import random
import signal
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast

from .kills import CREDIT, LOSSES, QUEUES, Accepting, Load, Plan, Server, Tally, body_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

PIKA: Final = Path(__file__).resolve().parents[2] / ".peers" / "pika" / "bin" / "python"
"""Where ``make interop`` installs it."""

_PROGRAM: Final = Path(__file__).with_name("pika_publisher.py")
_WINDOW: Final = 100
_BATCH: Final = 20
"""Messages of one transaction of 10.3."""


class DialectLoad(Load, ABC):
    """Tasks that publish and consume by one dialect until they are stopped.

    Attributes:
        dialect: as ``amqp10 serve --dialect`` has it.
        beside_amqp10: whether the same port serves 1.0.
        declares: whether publishers declare the queues; otherwise the server has them from the start.
    """

    dialect: ClassVar[str]
    declares: ClassVar[bool] = True
    beside_amqp10: ClassVar[bool] = True

    async def publish(self, address: str) -> None:
        """Publish on one connection after the other, until told to stop."""
        await self._again(lambda: self.publish_once(address))

    async def consume(self, address: str, patience: float | None = None) -> None:
        """Consume on one connection after the other; until nothing came for ``patience`` seconds."""
        await self._again(lambda: self._consume_once(address, patience))

    @abstractmethod
    async def publish_once(self, address: str) -> None:
        """Publish on one connection, until told to stop or until it is lost."""

    @abstractmethod
    def receiving(self, address: str) -> AbstractAsyncContextManager[Callable[[], Awaitable[Received]]]:
        """A consumer on a connection of its own: each call takes the next message."""

    async def _again(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except LOSSES:
                await trio.sleep(0.02)
            else:
                return

    async def _consume_once(self, address: str, patience: float | None) -> None:
        async with self.receiving(address) as receive:
            accepting = Accepting(self.tally)
            while True:
                with trio.move_on_after(math.inf if patience is None else patience) as scope:
                    name, body, accept = await receive()
                if scope.cancelled_caught:
                    return
                self.tally.take(name, body)
                accept()
                accepting.accept(name)

    async def many(
        self, send: Callable[[str], Awaitable[Callable[[], Awaitable[bool]]]], prefix: str
    ) -> None:
        """Send with ``_WINDOW`` on their way, until told to stop.

        Args:
            send: sends the message of a name, and gives what waits until the server confirmed or refused it.
            prefix: of the names.
        """
        limit = trio.Semaphore(_WINDOW)
        losses: list[Exception] = []

        async def confirm(confirmed: Callable[[], Awaitable[bool]], name: str) -> None:
            try:
                if await confirmed():
                    self.tally.accept(name)
            except LOSSES as lost:  # raised in here, it would come out as a group
                losses.append(lost)
            limit.release()

        async with trio.open_nursery() as nursery:
            try:
                while self.sending and not losses:
                    await limit.acquire()
                    name = self.name(prefix)
                    nursery.start_soon(confirm, await send(name), name)
            except LOSSES as lost:
                losses.append(lost)
        if losses:
            raise losses[0]


Received: TypeAlias = "tuple[str, object, Callable[[], object]]"
"""The message-id, the body, and what acknowledges it."""


class Load091(DialectLoad):
    """By 0-9-1, with confirms."""

    dialect = "0-9-1"

    def _connect(self) -> Any:
        return amqp091.open_connection(self.server.url, close_timeout=1)

    async def publish_once(self, address: str) -> None:
        async with self._connect() as connection, connection.open_publisher(window=_WINDOW) as out:
            await out.declare_queue(address, durable=True)

            async def send(name: str) -> Callable[[], Awaitable[bool]]:
                ticket = await out.transmit(
                    "", address, body_of(name), mandatory=True, message_id=name, delivery_mode=2
                )

                async def confirmed() -> bool:
                    await ticket.outcome()
                    return True

                return confirmed

            await self.many(send, address)

    @asynccontextmanager
    async def receiving(self, address: str) -> AsyncGenerator[Callable[[], Awaitable[Received]]]:
        async with self._connect() as connection, connection.open_channel(prefetch=CREDIT) as channel:
            queue = await channel.declare_queue(address, durable=True)
            async with queue.consume() as consumer:

                async def receive() -> Received:
                    delivery = await consumer.receive()
                    return str(delivery.properties.message_id), delivery.body, delivery.ack

                yield receive

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


class Load103(DialectLoad):
    """By 10.3, in transactions: a message is confirmed by the commit of its transaction."""

    dialect = "10.3"

    def _connect(self) -> Any:
        return amqp_10_3.open_connection(self.server.url.replace("amqp://", "amqp103://"), close_timeout=1)

    async def publish_once(self, address: str) -> None:
        async with self._connect() as connection:
            async with connection.open_channel() as channel:
                await channel.declare_queue(address, durable=True)
            while self.sending:
                names = [self.name(address) for _ in range(_BATCH)]
                async with connection.open_transaction() as transaction:
                    for name in names:
                        await transaction.publish(
                            "", address, body_of(name), message_id=name, delivery_mode=2
                        )
                for name in names:
                    self.tally.accept(name)

    @asynccontextmanager
    async def receiving(self, address: str) -> AsyncGenerator[Callable[[], Awaitable[Received]]]:
        async with self._connect() as connection, connection.open_channel() as channel:
            queue = await channel.declare_queue(address, durable=True)
            async with queue.consume(prefetch=CREDIT) as consumer:

                async def receive() -> Received:
                    delivery = await consumer.receive()
                    return str(delivery.properties.message_id), delivery.body, delivery.ack

                yield receive


class LoadFast(DialectLoad):
    """By AMQP/Fast, which answers each message that asks for it."""

    dialect = "amqp-fast"
    declares = False

    @asynccontextmanager
    async def _handle(self, address: str) -> AsyncGenerator[amqp_fast.Handle]:
        url = self.server.url.replace("amqp://", "amqp-fast://")
        async with (
            amqp_fast.open_connection(url, close_timeout=1) as connection,
            connection.open_channel() as channel,
            channel.open_handle(address) as handle,
        ):
            yield handle

    async def publish_once(self, address: str) -> None:
        async with self._handle(address) as handle:

            async def send(name: str) -> Callable[[], Awaitable[bool]]:
                await trio.lowlevel.checkpoint()

                async def confirmed() -> bool:
                    await handle.send(body_of(name), persistent=True, identifier=name)
                    return True

                return confirmed

            await self.many(send, address)

    @asynccontextmanager
    async def receiving(self, address: str) -> AsyncGenerator[Callable[[], Awaitable[Received]]]:
        async with self._handle(address) as handle:
            await handle.consume(prefetch=CREDIT)

            async def receive() -> Received:
                delivery = await handle.receive()
                return delivery.head.identifier, delivery.body, delivery.ack

            yield receive


class LoadDraft(DialectLoad):
    """By the draft of 2010."""

    dialect = "1.0-draft-2010"
    beside_amqp10 = False

    def _connect(self) -> Any:
        return amqp.open_connection(self.server.url, close_timeout=1, dialect="1.0-draft-2010")

    async def publish_once(self, address: str) -> None:
        async with self._connect() as connection, connection.open_sender(address) as sender:

            async def send(name: str) -> Callable[[], Awaitable[bool]]:
                message = amqp.Message(body_of(name), message_id=name, durable=True)
                delivery = await sender.transmit(message)

                async def confirmed() -> bool:
                    return isinstance(await delivery.outcome(), amqp.Accepted)

                return confirmed

            await self.many(send, address)

    @asynccontextmanager
    async def receiving(self, address: str) -> AsyncGenerator[Callable[[], Awaitable[Received]]]:
        async with (
            self._connect() as connection,
            connection.open_receiver(address, credit=CREDIT) as receiver,
        ):

            async def receive() -> Received:
                delivery = await receiver.receive()
                name = delivery.message.message_id
                assert isinstance(name, bytes)  # all that the draft has
                return name.decode(), delivery.message.body, delivery.accept

            yield receive


DIALECTS: Final[dict[str, type[DialectLoad]]] = {
    each.dialect: each for each in (Load091, Load103, LoadFast, LoadDraft)
}
"""The load of each dialect, by its name."""


async def run(path: Path, dialect: str, plan: Plan, pika: bool = False) -> Tally:
    """Load, kill, start again, drain, and count.

    Args:
        path: where the store is made.
        dialect: of ``DIALECTS``.
        plan: as of ``kills``; there are no transactions of two queues.
        pika: whether one of the publishers of 0-9-1 is pika.
    """
    chance = random.Random(plan.seed)
    tally = Tally()
    made = DIALECTS[dialect]
    queues = [] if made.declares else [option for name in QUEUES for option in ("--queue", name)]
    server = Server(path, "--dialect", dialect, *queues, slow=plan.slow)
    await server.start()
    load = made(server, tally)
    try:
        async with trio.open_nursery() as receivers:
            async with trio.open_nursery() as senders:
                for number in range(plan.senders):
                    senders.start_soon(load.publish, QUEUES[number % 2])
                if pika and isinstance(load, Load091):
                    senders.start_soon(load.publish_by_pika, QUEUES[0])
                await _first(tally)  # who publishes has declared the queues
                for address in QUEUES:
                    if load.beside_amqp10:
                        receivers.start_soon(load.forever, load.receive, address, None)
                    receivers.start_soon(load.consume, address)
                for _ in range(plan.kills):
                    await trio.sleep(chance.uniform(plan.least, plan.most))
                    await server.end(signal.SIGKILL)
                    tally.kill()
                    await server.start()
                await _first(tally, len(tally.accepted))
                load.sending = False
            receivers.cancel_scope.cancel()
        async with trio.open_nursery() as drains:
            if load.beside_amqp10:
                drains.start_soon(load.forever, load.receive, QUEUES[0], 1.0)
            else:
                drains.start_soon(load.consume, QUEUES[0], 1.0)
            drains.start_soon(load.consume, QUEUES[1], 1.0)
    finally:
        code = await server.end(signal.SIGTERM)
    assert code == 0, f"the server ended with {code}"
    return tally


async def _first(tally: Tally, accepted: int = 0) -> None:
    """Wait until one more message than these was confirmed."""
    with trio.fail_after(180):
        while len(tally.accepted) <= accepted:  # noqa: ASYNC110 - a tally is plain counts
            await trio.sleep(0.02)
