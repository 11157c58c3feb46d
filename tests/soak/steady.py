"""Does a container grow that nobody kills? Minutes of load, samples of the process that serves, and their slopes.

Connections come, send, receive, commit, detach, and go in order, or are cut; what was sent is taken again, so that the
container has at the end what it had at the beginning. The process that serves says every few seconds what it has
(``slopes``): octets of memory, descriptors, tasks of trio. What grows by the hour is a leak.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp

from .slopes import Sample, Slopes, descriptors, resident

if TYPE_CHECKING:
    from pathlib import Path

_CLIENTS: Final = 8
_BATCH: Final = 50
_LOSSES: Final = (amqp.AmqpError, OSError, trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass
class Steady:
    """What came of it."""

    minutes: float
    slopes: Slopes = field(default_factory=Slopes)
    messages: int = 0
    connections: int = 0
    cut: int = 0
    left: int = 0
    raised: list[str] = field(default_factory=list[str])

    def figures(self) -> dict[str, Any]:
        """All of it."""
        return {
            "minutes": self.minutes,
            "messages": self.messages,
            "connections": self.connections,
            "cut": self.cut,
            "raised": len(self.raised),
            "samples": len(self.slopes.samples),
            "judged": self.slopes.judged,
            "per_hour": self.slopes.figures(),
            "standard_errors": self.slopes.errors(),
        }

    def faults(self) -> list[str]:
        """What must not be."""
        return [*self.raised[:5], *self.slopes.faults()]


async def run(path: Path, minutes: float, *, seed: int = 0) -> Steady:
    """Load a container for so long; ``path`` is where its store is made."""
    steady = Steady(minutes)
    every = max(0.5, min(10.0, minutes * 60 / 100))
    command = [sys.executable, "-m", __name__, str(path), str(every)]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    lines = _lines(process.stdout)
    url = (await anext(lines))["url"]
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_sample, lines, steady)
            with trio.move_on_after(minutes * 60):
                async with trio.open_nursery() as clients:
                    for number in range(_CLIENTS):
                        clients.start_soon(
                            _client, url, f"q{number}", random.Random(f"{seed} {number}"), steady
                        )
            await process.stdin.aclose()  # it has said all, and ends
    finally:
        with trio.CancelScope(shield=True):
            with trio.move_on_after(10):
                await process.wait()
            if process.returncode is None:
                process.kill()
    assert process.returncode == 0, f"the container ended with {process.returncode}"
    return steady


async def _client(url: str, address: str, chance: random.Random, steady: Steady) -> None:
    """One connection after the other."""
    while True:
        cut = chance.random() < 0.3
        try:
            async with amqp.open_connection(url) as conn:
                steady.connections += 1
                await _use(conn, address, steady)
                if cut:
                    steady.cut += 1
                    conn.pump.cancel()
        except _LOSSES as failure:
            if not cut:
                steady.raised.append(repr(failure))


async def _use(conn: amqp.Connection, address: str, steady: Steady) -> None:
    """Send and take back; one message of a transaction among them."""
    async with conn.open_sender(address) as sender, conn.open_receiver(address) as receiver:
        for _ in range(_BATCH):
            await sender.transmit(amqp.Message(b"x" * 300, durable=True))
        async with conn.open_transaction() as transaction:
            await sender.send("in a transaction", transaction=transaction)
        with trio.move_on_after(0.2):  # what a cut left behind comes too
            while True:
                delivery = await receiver.receive()
                delivery.accept()
                steady.messages += 1


async def _sample(lines: Any, steady: Steady) -> None:
    async for line in lines:
        steady.slopes.samples.append(Sample(**line))


async def _lines(stream: trio.abc.ReceiveStream) -> Any:
    rest = b""
    while more := await stream.receive_some():
        *whole, rest = (rest + more).split(b"\n")
        for line in whole:
            yield json.loads(line)


# -- the process that serves --------------------------------------------------------------------


async def _serve(path: str, every: float) -> None:
    with amqp.SqliteStore(path) as store:
        container = amqp.Container("steady", store=store)
        async with trio.open_nursery() as nursery:
            [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
            print(json.dumps({"url": listener.url}), flush=True)
            nursery.start_soon(_tell, every)
            stdin = trio.lowlevel.FdStream(os.dup(0))
            with suppress(trio.BrokenResourceError):
                while await stdin.receive_some():
                    pass
            nursery.cancel_scope.cancel()


async def _tell(every: float) -> None:
    began = trio.current_time()
    while True:
        await trio.sleep(every)
        own = os.getpid()
        sample = Sample(
            round(trio.current_time() - began, 1),
            resident(own),
            descriptors(own),
            trio.lowlevel.current_statistics().tasks_living,
        )
        print(json.dumps(sample._asdict()), flush=True)


if __name__ == "__main__":
    trio.run(_serve, sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else math.inf)
