"""A program for a disk that is nearly full: fill a queue, empty it, and fill it again, by turns; says what it did as JSON.

    python -m tests.broker.stores.full_disk FOLDER SIZE

With ``--limit OCTETS`` no file may become larger. With ``--fill`` another program takes the rest of the disk, once the queue
is full for the second time.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import resource
from pathlib import Path

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.spec.messaging import ACCEPTED

ROUNDS = 4
TOGETHER = 25


def take_the_rest(path: Path) -> None:
    """What another program does to the disk."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


async def fill(conn: amqp.Connection, size: int) -> tuple[list[int], str]:
    """Send, some at a time, until the queue refuses; which it took, and why it refused."""
    taken: list[int] = []
    async with conn.open_sender("q") as sender:
        for first in itertools.count(0, TOGETHER):
            sent: list[amqp.OutgoingDelivery] = []
            for number in range(first, first + TOGETHER):
                await sender.wait_sendable()
                sent.append(sender.send_nowait(number.to_bytes(8, "big") + os.urandom(size)))
            outcomes = [await each.outcome() for each in sent]
            taken += [first + place for place, outcome in enumerate(outcomes) if outcome == ACCEPTED]
            for outcome in outcomes:
                if isinstance(outcome, amqp.Rejected):
                    assert outcome.error is not None
                    return taken, str(outcome.error.condition)
    raise AssertionError("a disk without an end")


async def empty(conn: amqp.Connection, numbers: list[int]) -> None:
    """Receive all of these, in their order."""
    async with conn.open_receiver("q") as receiver:
        for number in numbers:
            delivery = await receiver.receive()
            assert delivery.message.body[:8] == number.to_bytes(8, "big")
            delivery.accept()


async def main(folder: Path, size: int, *, filled: bool) -> None:
    rounds: list[tuple[int, str]] = []
    with amqp.SqliteStore(folder / "store") as store:
        container = amqp.Container("full", store=store)
        container.add_queue("q", durable=True)
        async with container.connect() as conn:
            for number in range(ROUNDS):
                taken, why = await fill(conn, size)
                rounds.append((len(taken), why))
                if filled and number == 1:
                    take_the_rest(folder / "other")
                await empty(conn, taken)
                assert container.journal is not None
                await container.journal.flushed()  # what was accepted is deleted a moment later
            last, _ = await fill(conn, size)
    with amqp.SqliteStore(folder / "store") as store:
        container = amqp.Container("full", store=store)
        container.add_queue("q", durable=True)
        async with container.connect() as conn:
            with trio.fail_after(60):
                await empty(conn, last)
    with amqp.SqliteStore(folder / "store") as store:
        container = amqp.Container("full", store=store)
        left = len(container.nodes)
    print(json.dumps({"rounds": rounds, "last": last, "nodes": left}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("size", type=int)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--fill", action="store_true")
    options = parser.parse_args()
    if options.limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.limit, options.limit))
    trio.run(lambda: main(options.folder, options.size, filled=options.fill))
