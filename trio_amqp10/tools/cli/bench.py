"""``amqp10 bench``: measure with a sender and a receiver process.

Without a URL the receiver listens and the sender dials it, without a broker in between.
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
from .dial_options import DialOptions
from .progress import Progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_PROBES = 1000
"""The messages that are sent one at a time at the end, to measure the latency."""
_LOOK = 1.0
"""Seconds of silence after which the sender is looked at."""
_FAILED = "the sender or the receiver failed; its error is printed above"

_WORDS = {
    "1.0": ("sent settled", "each accepted", "credit"),
    "0-9-1": ("no confirms", "each confirmed and acknowledged", "window"),
}
"""The words of each protocol in the output.

They stand for messages without an answer, messages with an answer, and the limit of messages in flight.
"""


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The options of ``amqp10 bench``."""

    url: str | None
    address: str
    count: int
    size: int
    presettled: bool
    credit: int
    json: bool
    dialect: str = "1.0"
    wait: float | None = None


async def bench(options: BenchOptions, interrupts: Interrupts) -> None:
    """Measure, and print the result.

    Raises:
        CommandError: the sender or the receiver failed, for example because the queue holds messages; or an interrupt ended it.
    """
    if options.url is not None and options.wait is not None:
        dial = DialOptions(wait=options.wait)
        async with dial.dial(options.url) if options.dialect == "1.0" else dial.dial_091(options.url):
            pass
    received: dict[str, float] = {}
    sent: dict[str, float] = {}
    with interrupts.here() as scope:
        received, sent = await _measure(options)
    if scope.cancelled_caught:
        raise CommandError(f"interrupted{_remainder(options)}", 130)
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


async def _measure(options: BenchOptions) -> tuple[dict[str, float], dict[str, float]]:
    """Run both sides, and return the measurements of the receiver and of the sender."""
    with Progress("messages", options.count) as progress:
        async with _process(_side(options, "receive", options.url)) as receiver:
            ready = await receiver.read()
            url: str = options.url or ready["url"]
            try:
                async with _process(_side(options, "send", url)) as sender:
                    await receiver.drained(progress, sender)
                    await sender.go_on()
                    return await receiver.result(), await sender.result()
            except CommandError as failure:
                raise CommandError(f"{failure}{_remainder(options)}") from None


def _remainder(options: BenchOptions) -> str:
    """Return the end of an error: where the messages of an unfinished measurement are."""
    if options.url is None:
        return ""
    return f"; {options.address!r} may hold messages of this measurement: remove them before the next"


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
    """The process of one side, and the lines that it prints."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._lines: list[bytes] = []
        self._rest = b""

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.returncode is not None

    async def read(self) -> dict[str, Any]:
        """Read the next line.

        Raises:
            CommandError: the process has ended.
        """
        while not self._lines:
            data = await self._stdout.receive_some()
            if not data:
                raise CommandError(_FAILED)
            *self._lines, self._rest = (self._rest + data).split(b"\n")
        line: dict[str, Any] = json.loads(self._lines.pop(0))
        return line

    async def drained(self, progress: Progress, sender: _Child) -> None:
        """Wait until the receiver has all messages but the probes.

        Raises:
            CommandError: the receiver or the sender has ended.
        """
        while True:
            with trio.move_on_after(_LOOK) as silence:
                line = await self.read()
                if "drained" in line:
                    return
                progress.advance(line["received"] - progress.count)
            if silence.cancelled_caught and sender.ended:
                raise CommandError(_FAILED)

    async def go_on(self) -> None:
        """Let the sender send the probes."""
        with suppress(trio.BrokenResourceError):  # the process has ended; ``result`` raises the error
            await self._stdin.send_all(b"\n")

    async def result(self) -> dict[str, float]:
        """Wait for the measurements of the process."""
        result: dict[str, float] = (await self.read())["result"]
        return result


@asynccontextmanager
async def _process(side: Side) -> AsyncGenerator[_Child, None]:
    command = [sys.executable, "-m", "trio_amqp10.tools.cli.bench_processes"]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdin is not None
        with suppress(trio.BrokenResourceError):  # the process has ended; reading its output raises the error
            await process.stdin.send_all(f"{side.to_json()}\n".encode())
        yield _Child(process)
    except BaseException:
        process.kill()
        raise
    finally:
        with trio.CancelScope(shield=True):
            await process.wait()
