"""``amqp10 bench``: a sender and a receiver process, and what they measured.

Without a URL the receiver listens and the sender dials it, with no broker between them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trio

from .bench_processes import Side
from .command_runner import CommandError, Interrupts, write_out
from .progress import Progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["BenchOptions", "bench"]

_PROBES = 1000

_WORDS = {
    "1.0": ("sent settled", "each accepted", "credit"),
    "0-9-1": ("no confirms", "each confirmed and acknowledged", "window"),
}
"""How a dialect calls it: not answered for, answered for, and how many at a time."""


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """What the command line said."""

    url: str | None
    address: str
    count: int
    size: int
    presettled: bool
    credit: int
    json: bool
    dialect: str = "1.0"


async def bench(options: BenchOptions, interrupts: Interrupts) -> None:  # noqa: ARG001 - it is cancelled whole
    """Measure, and print.

    Raises:
        CommandError: a side failed.
    """
    with Progress("messages", options.count) as progress:
        async with _process(_side(options, "receive", options.url)) as receiver:
            ready = await receiver.told()
            url: str = options.url or ready["url"]
            async with _process(_side(options, "send", url)) as sender:
                await receiver.drained(progress)
                await sender.go_on()
                received = await receiver.result()
                sent = await sender.result()
    figures: dict[str, Any] = {
        "count": options.count,
        "size": options.size,
        "dialect": options.dialect,
        "presettled": options.presettled,
        "credit": options.credit,
        "messages_per_second": round(received["messages_per_second"]),
        "sender_cpu_us": round(sent["cpu_us"], 2),
        "receiver_cpu_us": round(received["cpu_us"], 2),
        "latency_p50_us": round(received["latency_p50_us"]),
        "latency_p99_us": round(received["latency_p99_us"]),
    }
    text = json.dumps(figures) if options.json else _as_text(figures)
    await write_out(f"{text}\n".encode())


def _side(options: BenchOptions, role: str, url: str | None) -> Side:
    return Side(
        role=role,
        url=url,
        address=options.address,
        count=options.count,
        probes=min(options.count, _PROBES),
        size=options.size,
        presettled=options.presettled,
        credit=options.credit,
        dialect=options.dialect,
    )


def _as_text(figures: dict[str, Any]) -> str:
    settled, answered, window = _WORDS[figures["dialect"]]
    how = settled if figures["presettled"] else answered
    costs = f"{figures['sender_cpu_us']} us a message at the sender, {figures['receiver_cpu_us']} us at the receiver"
    delays = f"{figures['latency_p50_us']} us median, {figures['latency_p99_us']} us at p99"
    return "\n".join(
        (
            f"{figures['count']:,} messages of {figures['size']:,} octets, {how}, {window} {figures['credit']:,}",
            f"throughput      {figures['messages_per_second']:,} messages/s",
            f"processor time  {costs}",
            f"latency         {delays}, one way, one message at a time",
        )
    )


class _Child:
    """A side that runs, and what it tells line by line."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._lines: list[bytes] = []
        self._rest = b""

    async def told(self) -> dict[str, Any]:
        """The next thing that it tells.

        Raises:
            CommandError: it ended instead.
        """
        while not self._lines:
            data = await self._stdout.receive_some()
            if not data:
                raise CommandError("a side of the measurement failed; what it said stands above")
            *self._lines, self._rest = (self._rest + data).split(b"\n")
        told: dict[str, Any] = json.loads(self._lines.pop(0))
        return told

    async def drained(self, progress: Progress) -> None:
        """Wait until it has received all messages but the probes."""
        while "drained" not in (told := await self.told()):
            progress.advance(told["received"] - progress.count)

    async def go_on(self) -> None:
        """Let it send the probes."""
        with suppress(trio.BrokenResourceError):  # it has failed, and says so when it is asked for its result
            await self._stdin.send_all(b"\n")

    async def result(self) -> dict[str, float]:
        """What it measured."""
        result: dict[str, float] = (await self.told())["result"]
        return result


@asynccontextmanager
async def _process(side: Side) -> AsyncGenerator[_Child, None]:
    command = [sys.executable, "-m", "trio_amqp10.cli.bench_processes", side.to_json()]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield _Child(process)
    except BaseException:
        process.kill()
        raise
    finally:
        with trio.CancelScope(shield=True):
            await process.wait()
