"""Does a container lose what it accepted when it is killed? A checker, and the load that it watches.

``amqp10 serve --store FILE`` is loaded by senders, receivers and transactions, each a task with a
connection of its own that dials again when it is lost; the server gets SIGKILL at a random moment, and
is started again on the same file. At the end the queues are drained, and all is counted:

==============  ====================================================================================
attempted       messages that a sender sent
accepted        those of them whose outcome came back as accepted
lost            accepted, and never received: must be 0
duplicated      deliveries of a message beyond the first: a kill may cause some, at-least-once
unexplained     duplicated, though it must have been gone from the file before the kill: must be 0
unexpected      received, and never attempted, or not the octets that were sent: must be 0
recovered       received, though its sender never heard that it was accepted: it is allowed to be there
torn            transactions of which a part was received and another was not: must be 0
==============  ====================================================================================

When must an accepted message be gone from the file? No clock says it, since a busy machine may take any
time. A later delivery on the same connection shows that the container has read the disposition, because
the credit for it was granted behind it; and a durable message that was sent after that and was accepted
shows that the file has it, because a store commits in order. If both came before the kill, the message
must not come again.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import signal
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp

from .slow_store import amqp10

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

LOSSES: Final = (amqp.AmqpError, OSError, trio.BrokenResourceError, trio.ClosedResourceError)
QUEUES: Final = ("one", "two")
PAIRED: Final = "paired"
CREDIT: Final = 200


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How hard it is to be.

    Attributes:
        kills: how often the server is killed.
        senders, receivers, controllers: tasks; those of the last kind send in transactions.
        least, most: seconds between two kills.
        stock: messages that are in each queue before the first kill, which each later life reads page by page.
        seed: of the times of the kills, and of what they hit.
        slow: milliseconds that each commit of the store waits, on average.
    """

    kills: int
    senders: int = 4
    receivers: int = 2
    controllers: int = 2
    least: float = 0.3
    most: float = 1.5
    stock: int = 0
    seed: int = 0
    slow: float = 0.0


@dataclass
class Tally:
    """What happened."""

    kills: int = 0
    attempted: set[str] = field(default_factory=set[str])
    accepted: set[str] = field(default_factory=set[str])
    received: Counter[str] = field(default_factory=Counter[str])
    changed: list[str] = field(default_factory=list[str])
    unexplained: list[str] = field(default_factory=list[str])
    pairs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _events: int = 0
    _sent: dict[str, int] = field(default_factory=dict[str, int])
    _read: dict[str, int] = field(default_factory=dict[str, int])  # since the last kill
    _gone: set[str] = field(default_factory=set[str])  # for certain, at the kill that came after
    _stored: int = 0

    @property
    def lost(self) -> set[str]:
        return self.accepted - self.received.keys()

    @property
    def unexpected(self) -> list[str]:
        # Asked at the end: what a process attempted is heard of later than what was received of it.
        return [*self.changed, *sorted(self.received.keys() - self.attempted)]

    @property
    def torn(self) -> list[tuple[str, str]]:
        return [pair for pair in self.pairs if len(self.received.keys() & set(pair)) == 1]

    def faults(self) -> list[str]:
        """Those of the table above that must be 0, and are not."""
        return [name for name in ("lost", "unexpected", "unexplained", "torn") if getattr(self, name)]

    def counts(self) -> dict[str, int]:
        """All that is counted, in the words of the table above."""
        return {
            "kills": self.kills,
            "attempted": len(self.attempted),
            "accepted": len(self.accepted),
            "received": len(self.received),
            "lost": len(self.lost),
            "duplicated": self.received.total() - len(self.received),
            "unexplained": len(self.unexplained),
            "unexpected": len(self.unexpected),
            "recovered": len(self.received.keys() - self.accepted),
            "transactions": len(self.pairs),
            "torn": len(self.torn),
        }

    def send(self, name: str) -> None:
        """A message is sent."""
        self.attempted.add(name)
        self._events += 1
        self._sent[name] = self._events

    def accept(self, name: str) -> None:
        """A sent message was accepted: all that the container read before it was sent is in the file."""
        self.accepted.add(name)
        self._stored = max(self._stored, self._sent[name])

    def take(self, name: str, body: object) -> None:
        """A message was received: its message-id, and its body."""
        if body != body_of(name):
            self.changed.append(name)
        self.received[name] += 1
        if name in self._read or name in self._gone:
            self.unexplained.append(name)

    def settle(self, name: str, life: int) -> None:
        """The container that was there after so many kills has read that a receiver accepted a message."""
        if life == self.kills:
            self._events += 1
            self._read.setdefault(name, self._events)

    def kill(self) -> None:
        """The server was killed: what it had read, but not surely stored, may come again."""
        self.kills += 1
        self._gone.update(name for name, read in self._read.items() if read < self._stored)
        self._read.clear()


class Accepting:
    """What a receiver accepts on one connection, with a credit or prefetch of ``CREDIT``."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._lifecycle = tally.kills
        self._names = deque[str]()

    def accept(self, name: str) -> None:
        """A message was accepted: one that was taken long enough before it has been read as accepted."""
        self._names.append(name)
        if len(self._names) > 2 * CREDIT:
            self._tally.settle(self._names.popleft(), self._lifecycle)


def body_of(name: str) -> bytes:
    """What a message of that name carries; some of them need several pages of the file."""
    return name.encode() * (1 + sum(name.encode()) % 500)


class Server:
    """``amqp10 serve`` on one port and one file, killed and started again; ``options`` are more of the command's.

    Each commit of its store waits ``slow`` milliseconds, on average.
    """

    def __init__(self, path: Path, *options: str, slow: float = 0.0) -> None:
        self._path = path
        self._slow = slow
        self._options = options
        self._process: trio.Process | None = None
        self.url = "amqp://127.0.0.1:0"

    async def start(self) -> None:
        command = [
            *amqp10(self._slow),
            "serve",
            "--listen",
            self.url,
            "--store",
            str(self._path),
            *self._options,
        ]
        self._process = await trio.lowlevel.open_process(command, stdout=-1)
        try:
            said = await self._first_line()
        except BaseException:
            await self.end(signal.SIGKILL)
            raise
        self.url = said.split()[1].decode()  # and the same port from now on

    async def _first_line(self) -> bytes:
        """What the process prints first: where it listens."""
        assert self._process is not None
        assert self._process.stdout is not None
        said = b""
        with trio.fail_after(180):
            while b"\n" not in said:
                more = await self._process.stdout.receive_some()
                assert more, "the server did not start; what it said stands above"
                said += more
        return said

    @property
    def pid(self) -> int:
        """Of the process that runs."""
        assert self._process is not None
        return self._process.pid

    async def end(self, how: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        with trio.CancelScope(shield=True):
            code = await self._process.wait()
        assert self._process.stdout is not None
        await self._process.stdout.aclose()
        return code


class Load:
    """Tasks that send and receive until they are told to stop.

    Attributes:
        server, tally: as given.
        sending: set to False to have those end that send.
    """

    def __init__(self, server: Server, tally: Tally) -> None:
        self.server = server
        self.tally = tally
        self._names = itertools.count()
        self.sending = True

    def name(self, prefix: str) -> str:
        """The message-id of a message that is attempted now."""
        name = f"{prefix}-{next(self._names)}"
        self.tally.send(name)
        return name

    def _message(self, prefix: str) -> amqp.Message:
        name = self.name(prefix)
        return amqp.Message(body_of(name), message_id=name, durable=True)

    @contextlib.asynccontextmanager
    async def _dialled(self) -> AsyncGenerator[amqp.Connection, None]:
        async with amqp.open_connection(self.server.url, close_timeout=1) as conn:
            yield conn

    async def forever(self, work: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Do it on one connection after the other."""
        while True:
            with contextlib.suppress(*LOSSES):
                async with self._dialled() as conn:
                    await work(conn, *args)
                    return
            await trio.sleep(0.02)

    async def send(self, conn: amqp.Connection, address: str) -> None:
        """As fast as it goes, with a hundred on their way."""
        limit = trio.Semaphore(100)
        loss: Exception | None = None
        async with conn.open_sender(address) as sender, trio.open_nursery() as nursery:
            try:
                while self.sending:
                    await limit.acquire()
                    message = self._message(address)
                    delivery = await sender.transmit(message)
                    nursery.start_soon(self._outcome, delivery, str(message.message_id), limit)
            except LOSSES as lost:  # raised in here, it would come out as a group
                loss = lost
        if loss is not None:
            raise loss

    async def stock(self, conn: amqp.Connection, address: str, count: int) -> None:
        """Send so many messages, and have all of them accepted."""
        async with conn.open_sender(address) as sender:
            names: list[str] = []
            for _ in range(count):
                message = self._message(address)
                names.append(str(message.message_id))
                await sender.transmit(message)
            await sender.flush()
        for name in names:
            self.tally.accept(name)

    async def _outcome(self, delivery: amqp.OutgoingDelivery, name: str, limit: trio.Semaphore) -> None:
        with contextlib.suppress(*LOSSES):
            if isinstance(await delivery.outcome(), amqp.Accepted):
                self.tally.accept(name)
        limit.release()

    async def send_pairs(self, conn: amqp.Connection) -> None:
        """Two messages to two queues, both or none."""
        async with conn.open_sender("one") as one, conn.open_sender(PAIRED) as other:
            while self.sending:
                messages = self._message("pair"), self._message("pair")
                names = str(messages[0].message_id), str(messages[1].message_id)
                self.tally.pairs.append(names)
                async with conn.open_transaction() as txn:
                    await one.send(messages[0], transaction=txn)
                    await other.send(messages[1], transaction=txn)
                for name in names:
                    self.tally.accept(name)

    async def receive(self, conn: amqp.Connection, address: str, patience: float | None) -> None:
        """Accept all that comes; done when nothing has come for ``patience`` seconds."""
        accepting = Accepting(self.tally)
        async with conn.open_receiver(address, credit=CREDIT) as receiver:
            while True:
                with trio.move_on_after(math.inf if patience is None else patience) as scope:
                    delivery = await receiver.receive()
                if scope.cancelled_caught:
                    return
                name = str(delivery.message.message_id)
                self.tally.take(name, delivery.message.body)
                delivery.accept()
                accepting.accept(name)


async def run(path: Path, plan: Plan) -> Tally:
    """Load, kill, start again, drain, and count; ``path`` is where the store is made."""
    chance = random.Random(plan.seed)
    tally = Tally()
    server = Server(path, slow=plan.slow)
    await server.start()
    load = Load(server, tally)
    code: int | None = None
    try:
        if plan.stock:
            async with amqp.open_connection(server.url) as conn:
                for address in QUEUES:
                    await load.stock(conn, address, plan.stock)
            await server.end(signal.SIGKILL)
            tally.kill()
            await server.start()
        async with trio.open_nursery() as receivers:
            for number in range(plan.receivers):
                receivers.start_soon(load.forever, load.receive, QUEUES[number % 2], None)
            async with trio.open_nursery() as senders:
                for number in range(plan.senders):
                    senders.start_soon(load.forever, load.send, QUEUES[number % 2])
                for _ in range(plan.controllers):
                    senders.start_soon(load.forever, load.send_pairs)
                for _ in range(plan.kills):
                    await trio.sleep(chance.uniform(plan.least, plan.most))
                    await server.end(signal.SIGKILL)
                    tally.kill()
                    await server.start()
                await trio.sleep(plan.least)
                load.sending = False
            receivers.cancel_scope.cancel()
        async with trio.open_nursery() as drains:
            for address in (*QUEUES, PAIRED):
                drains.start_soon(load.forever, load.receive, address, 1.0)
    finally:
        code = await server.end(signal.SIGTERM)
    assert code == 0, f"the server ended with {code}"
    return tally
