"""Does ``amqp10 migrate`` move each message exactly once when it is killed?

``python -m tests.soak.migrate --kills N --way WAY``: the command is started again and again, and SIGKILL hits it at random moments; then it
runs to its end. At the end the target is drained and counted: lost, doubled and out of order have to be 0. The ways are ``across`` from container to
container, ``out`` to RabbitMQ 4 and ``back`` from it, whose queue is classic or, with ``--quorum``, quorum. With ``--live`` a producer sends all the time, until it
is redirected and some time longer.
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import trio

import trio_amqp10 as amqp
from trio_amqp10.rabbitmq import open_management, queue_address

if TYPE_CHECKING:
    from collections.abc import Generator

QUEUE = "migrated"
SECONDS = 120


class Ends(NamedTuple):
    """Where messages are taken from and to, with the address of the queue at each."""

    source: str
    source_address: str
    target: str
    target_address: str


class Counts(NamedTuple):
    """What was found at the target, and wrong with it."""

    killed: int
    sent: int
    moved: int
    lost: int
    doubled: int
    disordered: int


@contextmanager
def container(folder: Path) -> Generator[str]:
    """A container with a store, as a process; its URL."""
    command = [sys.executable, "-m", "trio_amqp10", "serve", "--management", "--listen", "amqp://127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--store", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().decode().removeprefix("listening ").strip()
        finally:
            process.kill()


async def fill(url: str, address: str, messages: int) -> None:
    """Send numbered messages of different sizes."""
    async with amqp.open_connection(url) as conn, conn.open_sender(address) as sender:
        sent = [
            await sender.transmit(
                amqp.Message("x" * (number % 700), durable=True, application_properties={"number": number})
            )
            for number in range(messages)
        ]
        for delivery in sent:
            assert isinstance(await delivery.outcome(), amqp.Accepted)


class Producer(threading.Thread):
    """Sends numbered messages one at a time, and follows a redirect.

    Attributes:
        accepted: how many were accepted; they have the numbers that follow those of ``fill``.
    """

    def __init__(self, ends: Ends, first: int) -> None:
        super().__init__()
        self._ends = ends
        self._first = first
        self._ended = False
        self.accepted = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(0.5)
        self._ended = True
        self.join()

    def run(self) -> None:
        trio.run(self._main)

    async def _main(self) -> None:
        async with amqp.open_connection(self._ends.source, follow_redirects=True) as conn:
            await self._send(conn, self._ends.source_address)

    async def _send(self, conn: amqp.Connection, address: str) -> None:
        try:
            async with conn.open_sender(address) as sender:
                while not self._ended:
                    number = self._first + self.accepted
                    message = amqp.Message("live", durable=True, application_properties={"number": number})
                    with suppress(amqp.DeliveryReleasedError):  # It was not taken: it is sent again.
                        await sender.send(message)
                        self.accepted += 1
                    await trio.sleep(0.002)
        except amqp.LinkRedirectError as error:
            async with conn.open_redirected(error) as there:
                await self._send(there, str(error.address))


async def drained(url: str, address: str) -> list[int]:
    """The numbers of all messages at the target, in order."""
    found: list[int] = []
    async with amqp.open_connection(url) as conn, conn.open_receiver(address, credit=0) as receiver:
        while True:
            receiver.grant(1000)
            some = await receiver.drain()
            for delivery in some:
                found.append(int(delivery.message.application_properties["number"]))
                delivery.accept()
            if not some:
                return found


async def declare(url: str, *, quorum: bool) -> None:
    """An empty queue at RabbitMQ."""
    async with amqp.open_connection(url) as conn, open_management(conn) as broker:
        await broker.delete_queue(QUEUE)
        await broker.declare_queue(QUEUE, type="quorum" if quorum else "classic")


async def forget(url: str) -> None:
    async with amqp.open_connection(url) as conn, open_management(conn) as broker:
        await broker.delete_queue(QUEUE)


async def create(url: str) -> None:
    """An empty queue at a container."""
    async with amqp.open_connection(url) as conn, conn.open_management(timeout=10) as management:
        await management.create_queue(QUEUE, max_priority=0)


def kill_and_count(
    ends: Ends, kills: int, messages: int, seed: int, longest: float = 2.5, *, live: bool = False
) -> Counts:
    """Fill the source, kill the command so many times, let it complete, and count.

    Args:
        ends: the two brokers; the source has an empty queue.
        kills: how many times.
        messages: how many the source gets.
        seed: of the moments.
        longest: seconds that the command may run before it is killed.
        live: whether a producer sends meanwhile, and the command redirects it.
    """
    chance = random.Random(seed)
    trio.run(fill, ends.source, ends.source_address, messages)
    command = [sys.executable, "-m", "trio_amqp10", "migrate", ends.source, ends.target]
    command += ["--queue", QUEUE, "--accept-differences", *(["--redirect"] if live else [])]
    killed = 0
    with Producer(ends, messages) if live else nullcontext() as producer:
        for _ in range(kills):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                try:
                    _, said = process.communicate(timeout=chance.uniform(0.4, longest))
                    assert process.returncode == 0, said.decode()
                except subprocess.TimeoutExpired:
                    process.kill()
                    killed += 1
        done = subprocess.run(command, timeout=SECONDS, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
    messages += producer.accepted if producer else 0
    found = trio.run(drained, ends.target, ends.target_address)
    return Counts(
        killed=killed,
        sent=messages,
        moved=len(found),
        lost=len(set(range(messages)) - set(found)),
        doubled=len(found) - len(set(found)),
        disordered=sum(one > other for one, other in itertools.pairwise(found)),
    )


@contextmanager
def ends_of(way: str, rabbitmq: str | None, *, quorum: bool = False) -> Generator[Ends]:
    """Two brokers, of which the source has the queue."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        first = stack.enter_context(container(folder / "a"))
        if way == "across":
            second = stack.enter_context(container(folder / "b"))
            trio.run(create, first)
            yield Ends(first, QUEUE, second, QUEUE)
            return
        assert rabbitmq is not None
        trio.run(lambda: declare(rabbitmq, quorum=quorum))
        if way == "out":
            if not quorum:
                trio.run(forget, rabbitmq)
            trio.run(create, first)
            yield Ends(first, QUEUE, rabbitmq, queue_address(QUEUE))
        else:
            yield Ends(rabbitmq, queue_address(QUEUE), first, QUEUE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.migrate", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--way", choices=("across", "out", "back"), default="across")
    parser.add_argument("--quorum", action="store_true")
    parser.add_argument("--live", action="store_true", help="a producer sends meanwhile; not with --way back")
    parser.add_argument("--rabbitmq", metavar="URL", help="a RabbitMQ 4 that runs; one is started without it")
    options = parser.parse_args()
    with ExitStack() as stack:
        url = options.rabbitmq
        if url is None and options.way != "across":
            from tests.interop.rabbitmq import start

            broker = start(4)
            stack.callback(broker.stop)
            url = broker.url
        ends = stack.enter_context(ends_of(options.way, url, quorum=options.quorum))
        counts = kill_and_count(ends, options.kills, options.messages, options.seed, live=options.live)
    print(
        f"seed {options.seed}: {options.way}{' quorum' if options.quorum else ''}{' live' if options.live else ''}: {counts}"
    )
    sys.exit(any((counts.lost, counts.doubled, counts.disordered)))


if __name__ == "__main__":
    main()
