"""Are messages moved between two containers exactly once when each of the three programs is killed?

``python -m tests.soak.moves --kills N``: two ``amqp10 serve --store``, and a program that calls ``move_messages`` again whenever it is lost. A sender
fills the source; SIGKILL hits one of the three at random moments. At the end the target is drained and counted: lost and doubled have to be 0. With
``--slow MILLISECONDS`` each commit of a store waits so long, on average.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import trio

import trio_amqp10 as amqp
from tests.ports import free_port

from .slow_store import amqp10

LOSSES = (amqp.AmqpError, OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError)


async def move(source: str, target: str) -> None:
    """The program in the middle, for ever."""
    while True:
        with suppress(*LOSSES):
            async with amqp.open_connection(source) as here, amqp.open_connection(target) as there:
                await amqp.move_messages(here, "out", there, "in", ledger="moved", batch=50)
        await trio.sleep(0.02)


class Program:
    """One that can be killed, and is started again as it was."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def check(self) -> None:
        """Raise if it has ended by itself: it was started wrongly."""
        assert self._process.poll() is None, self._arguments

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


async def reachable(url: str) -> None:
    """Wait until a container listens: a kill before that would hit nothing."""
    while True:
        with suppress(*LOSSES):
            async with amqp.open_connection(url):
                return
        await trio.sleep(0.1)


async def feed(url: str, accepted: list[str], enough: trio.Event) -> None:
    """Send until there were enough kills, each message once: what the source may or may not have is not counted as accepted."""
    number = 0
    while not enough.is_set():
        with suppress(*LOSSES):
            async with amqp.open_connection(url) as conn, conn.open_sender("out") as sender:
                while not enough.is_set():
                    number += 1
                    name = f"m{number}"
                    await sender.send(amqp.Message(name, message_id=name, durable=True))
                    accepted.append(name)
        await trio.sleep(0.05)


async def drained(url: str, address: str) -> Counter[str]:
    found: Counter[str] = Counter()
    while True:
        with suppress(*LOSSES):
            async with amqp.open_connection(url) as conn, conn.open_receiver(address, credit=0) as receiver:
                receiver.grant(100_000)
                for delivery in await receiver.drain():
                    found[str(delivery.message.body)] += 1
                return found
        await trio.sleep(0.1)


async def run(kills: int, seed: int, slow: float) -> tuple[int, list[str], list[str]]:
    """How many were moved, those that were accepted and are not there, and those that came twice."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        source, target = (f"amqp://127.0.0.1:{free_port()}" for _ in range(2))
        serve = (*amqp10(slow), "serve", "--listen")
        programs = [
            Program(*serve, source, "--store", str(Path(folder, "a")), "--queue", "out"),
            Program(
                *(*serve, target, "--store", str(Path(folder, "b")), "--queue", "in"),
                *("--queue", "moved,exclusive"),
            ),
            Program(sys.executable, "-m", "tests.soak.moves", "--mover", source, target),
        ]
        try:
            accepted: list[str] = []
            enough = trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(feed, source, accepted, enough)
                for _ in range(kills):
                    await reachable(source)
                    await reachable(target)
                    await trio.sleep(chance.uniform(0.3, 2.0))
                    for program in programs:
                        program.check()
                    program = chance.choice(programs)
                    program.kill()
                    program.start()
                enough.set()
            before = -1
            while (left := len(await drained_without_taking(source))) or before != left:
                before = left
                await trio.sleep(1)
            programs[2].kill()
            moved = await drained(target, "in")
        finally:
            for program in programs:
                program.kill()
    return (
        len(moved),
        [name for name in accepted if not moved[name]],
        [name for name, times in moved.items() if times > 1],
    )


async def drained_without_taking(url: str) -> list[str]:
    """What waits in the source or is with the mover."""
    while True:
        with suppress(*LOSSES):
            async with amqp.open_connection(url) as conn:
                peek = amqp.Source(address="out", distribution_mode="copy")
                async with conn.open_receiver("out", source=peek, credit=0) as receiver:
                    receiver.grant(100_000)
                    return [str(delivery.message.body) for delivery in await receiver.drain()]
        await trio.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.moves", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--slow", type=float, default=0.0, metavar="MILLISECONDS")
    parser.add_argument("--mover", nargs=2, metavar="URL", help="be the program in the middle")
    options = parser.parse_args()
    if options.mover:
        trio.run(move, *options.mover)
    moved, missing, doubled = trio.run(run, options.kills, options.seed, options.slow)
    assert moved, "nothing was moved"
    print(
        f"seed {options.seed}: {options.kills} kills, {moved} moved, {len(missing)} lost, {len(doubled)} doubled"
    )
    sys.exit(bool(missing or doubled))


if __name__ == "__main__":
    main()
