"""Do a thousand hostile peers harm a hundred good ones? Measured against the same hundred alone, and in octets.

``amqp10 serve`` is a process of its own, and so are the hostile peers: of ten kinds in equal parts, each doing its worst
once a second, each kind from loopback addresses of its own. The good peers send a message a second each, and wait
until it is accepted and has come back.

==============  ====================================================================================
alone, beside   seconds from a send to the message's return, the middle one and the 99th of 100, without and with
                the hostile peers; and the 99th of the processor time that the server had meanwhile, for whomever, in
                which no other program of the machine counts
ratio           of the two 99th: at most 2 with ``--strict``, on a machine that does nothing else
load            load average of the machine before all this
raised          calls of the good peers that raised, or took longer than 30 s: must be 0
per_hostile     octets of memory that the server grew by, for each hostile peer: at most 1 MiB
dialled         connections that the hostile peers made, again and again
==============  ====================================================================================
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp
from tests.naive.performatives import frame, header, raw_frame
from tests.results import add_option, write

from .kills import Server
from .slopes import resident

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

_WORST: Final = 1.0
"""Seconds between two doings of one peer, good or hostile."""
_LONGEST: Final = 30.0
_ALL_STARTED: Final = "all started"
"""What the process of the hostile peers says when each of them has begun."""

_MOST: Final = 1024 * 1024
"""Octets of memory that a hostile peer may cost."""

_OPEN: Final = header() + frame("open", container_id="hostile")
_WINDOWS: Final[dict[str, Any]] = {
    "next_outgoing_id": 0,
    "incoming_window": 2**31 - 1,
    "outgoing_window": 2**31 - 1,
}
_BEGIN: Final = _OPEN + frame("begin", **_WINDOWS)
_SENDER: Final = _BEGIN + frame(
    "attach",
    name="s",
    handle=0,
    role=False,
    initial_delivery_count=0,
    target=("target", {"address": "hostile"}),
)
_RECEIVER: Final = _BEGIN + frame(
    "attach", name="r", handle=0, role=True, source=("source", {"address": "hostile"})
)


def _transfer(number: int, payload: bytes, *, more: bool = False) -> bytes:
    tag = struct.pack(">I", number)
    return frame("transfer", handle=0, delivery_id=number, delivery_tag=tag, more=more, payload=payload)


def _silent() -> AsyncIterator[bytes]:
    return _once(b"")


def _dripping() -> AsyncIterator[bytes]:
    return _each(bytes([octet]) for octet in _OPEN)


def _strangers() -> AsyncIterator[bytes]:
    return _each(itertools.repeat(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))


def _guessing() -> AsyncIterator[bytes]:
    guess = frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ada\0wrong")
    return _each([header("sasl") + guess, guess])


def _flows() -> AsyncIterator[bytes]:
    echo = frame("flow", **_WINDOWS, next_incoming_id=0, handle=0, delivery_count=0, link_credit=0, echo=True)
    return _each(itertools.chain([_RECEIVER], itertools.repeat(echo * 500)))


def _churn() -> AsyncIterator[bytes]:
    again = frame("attach", name="x", handle=1, role=True, source=("source", {"address": "hostile"}))
    again += frame("detach", handle=1, closed=True)
    return _each(itertools.chain([_BEGIN], itertools.repeat(again * 50)))


def _partial() -> AsyncIterator[bytes]:
    more = frame("transfer", handle=0, more=True, payload=bytes(30_000))
    return _each(itertools.chain([_SENDER + _transfer(0, b"", more=True)], itertools.repeat(more)))


def _octets() -> AsyncIterator[bytes]:
    one = frame("transfer", handle=0, more=True, payload=b"x")
    return _each(itertools.chain([_SENDER + _transfer(0, b"", more=True)], itertools.repeat(one * 500)))


def _dispositions() -> AsyncIterator[bytes]:
    wide = frame("disposition", role=True, first=0, last=2**31 - 1, state=("received", {}))
    return _each(itertools.chain([_RECEIVER], itertools.repeat(wide * 100)))


def _broken() -> AsyncIterator[bytes]:
    return _each([_BEGIN, raw_frame(b"\x00\x53\x14" + bytes(random.randrange(256) for _ in range(200)))])


async def _each(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _once(octets: bytes) -> AsyncIterator[bytes]:
    yield octets
    while True:
        yield b""


KINDS: Final[dict[str, Callable[[], AsyncIterator[bytes]]]] = {
    "silent": _silent,
    "dripping": _dripping,
    "strangers": _strangers,
    "guessing": _guessing,
    "flows": _flows,
    "churn": _churn,
    "partial": _partial,
    "octets": _octets,
    "dispositions": _dispositions,
    "broken": _broken,
}
"""What a hostile peer writes, piece by piece; when there is no more, or it is cut off, it dials again."""


@dataclass
class Latencies:
    """How long messages took, in seconds, and how much of that the server worked, if that is known."""

    seconds: list[float] = field(default_factory=list[float])
    worked: list[float] = field(default_factory=list[float])
    raised: list[str] = field(default_factory=list[str])

    def figures(self) -> dict[str, float]:
        """The middle one, and the 99th of 100, in milliseconds."""
        figures = {
            "messages": len(self.seconds),
            "p50_ms": _of_100(self.seconds, 50),
            "p99_ms": _of_100(self.seconds, 99),
        }
        if self.worked:
            figures["worked_p99_ms"] = _of_100(self.worked, 99)
        return figures


def _of_100(seconds: list[float], which: int) -> float:
    ordered = sorted(seconds) or [math.inf]
    return round(1000 * ordered[min(len(ordered) - 1, len(ordered) * which // 100)], 1)


def processor_clock(pid: int) -> int:
    """The clock of the processor time of a process: see clock_getcpuclockid(3)."""
    return (~pid << 3) | 2


@dataclass
class Report:
    """What is told at the end."""

    good: int
    hostile: int
    seconds: float
    load: float = 0.0
    alone: dict[str, float] = field(default_factory=dict[str, float])
    beside: dict[str, float] = field(default_factory=dict[str, float])
    ratio: float = math.inf
    raised: int = 0
    per_hostile: int = 0
    dialled: dict[str, int] = field(default_factory=dict[str, int])

    def faults(self, *, strict: bool) -> list[str]:
        """What must not be."""
        wrong = [f"{self.raised} calls of good peers raised"] if self.raised else []
        if self.per_hostile > _MOST:
            wrong.append(f"{self.per_hostile} octets of memory for each hostile peer, and {_MOST} are enough")
        if strict and self.ratio > 2:
            wrong.append(f"the 99th of 100 took {self.ratio} times as long")
        return wrong


# -- the good -----------------------------------------------------------------------------------


async def _good(server: Server, number: int, latencies: Latencies, until: float) -> None:
    address, clock = f"good-{number}", processor_clock(server.pid)
    try:
        async with (
            amqp.open_connection(server.url, close_timeout=5) as conn,
            conn.open_sender(address) as sender,
            conn.open_receiver(address) as receiver,
        ):
            await trio.sleep(random.random() * _WORST)
            while trio.current_time() < until:
                began, before = trio.current_time(), time.clock_gettime(clock)
                with trio.fail_after(_LONGEST):
                    await sender.send(b"x" * 200)
                    (await receiver.receive()).accept()
                latencies.worked.append(time.clock_gettime(clock) - before)
                latencies.seconds.append(trio.current_time() - began)
                await trio.sleep(max(0.0, began + _WORST - trio.current_time()))
    except (amqp.AmqpError, OSError, trio.BrokenResourceError, trio.TooSlowError) as failure:
        latencies.raised.append(repr(failure))


async def _all_good(server: Server, count: int, seconds: float) -> Latencies:
    latencies = Latencies()
    until = trio.current_time() + seconds
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(_good, server, number, latencies, until)
    return latencies


# -- the hostile: a process of their own --------------------------------------------------------


async def _hostile(kind: str, host: str, port: int, dialled: dict[str, int]) -> None:
    while True:
        with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            stream = await trio.open_tcp_stream("127.0.0.1", port, local_address=host)
            dialled[kind] += 1
            async with stream, trio.open_nursery() as nursery:
                if kind != "flows":  # those do not read what they asked for
                    nursery.start_soon(_swallow, stream, nursery.cancel_scope)
                async for octets in KINDS[kind]():
                    if octets:
                        await stream.send_all(octets)
                    await trio.sleep(_WORST)
                nursery.cancel_scope.cancel()
        await trio.sleep(_WORST)


async def _swallow(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
    with suppress(OSError, trio.BrokenResourceError):
        while await stream.receive_some():
            pass
    scope.cancel()


async def _all_hostile(port: int, kinds: Sequence[str], count: int, seconds: float) -> None:
    dialled = dict.fromkeys(kinds, 0)
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            for number in range(count):
                kind = kinds[number % len(kinds)]
                nursery.start_soon(_hostile, kind, f"127.0.1.{number % len(kinds) + 1}", port, dialled)
                await trio.sleep(_WORST / count)
            print(_ALL_STARTED, flush=True)
    print(json.dumps(dialled))


# -- both ---------------------------------------------------------------------------------------


async def run(
    path: Path, *, good: int, hostile: int, seconds: float, kinds: Sequence[str] = tuple(KINDS)
) -> Report:
    """Measure; ``path`` is where the store of the server is made, and the hostile peers are of these kinds in equal parts."""
    report = Report(good, hostile, seconds, load=round(os.getloadavg()[0], 1))
    server = Server(path)
    await server.start()
    try:
        port = server.url.rpartition(":")[2].rstrip("/")
        alone = await _all_good(server, good, seconds)
        before = resident(server.pid)
        command = [sys.executable, "-m", __spec__.name, "--port", port]
        command += ["--hostile", str(hostile), "--seconds", str(seconds + 5)]
        command += [f"--kind={kind}" for kind in kinds]
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        with trio.fail_after(60):
            said = await process.stdout.receive_some()
        assert said.decode().strip() == _ALL_STARTED, said
        await trio.sleep(_WORST)
        beside = await _all_good(server, good, seconds)
        grown = resident(server.pid) - before
        said = b""
        with trio.fail_after(seconds + 60):
            while more := await process.stdout.receive_some():
                said += more
            await process.wait()
        report.dialled = json.loads(said)
    finally:
        code = await server.end(signal.SIGTERM)
    assert code == 0, f"the server ended with {code}"
    report.alone, report.beside = alone.figures(), beside.figures()
    report.ratio = round(report.beside["p99_ms"] / max(0.1, report.alone["p99_ms"]), 2)
    report.raised = len(alone.raised) + len(beside.raised)
    report.per_hostile = max(0, grown) // max(1, hostile)
    for raised in (alone.raised + beside.raised)[:5]:
        print(raised, file=sys.stderr)
    return report


def main() -> int:
    import tempfile

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hostile", type=int, default=100)
    parser.add_argument("--good", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each of the two measurements")
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="these kinds only, not all ten")
    parser.add_argument("--strict", action="store_true", help="judge the times too")
    add_option(parser)
    parser.add_argument("--port", type=int, default=None, help=argparse.SUPPRESS)  # then we are the hostile
    arguments = parser.parse_args()
    kinds = tuple(arguments.kind or KINDS)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if arguments.port is not None:
        trio.run(_all_hostile, arguments.port, kinds, arguments.hostile, arguments.seconds)
        return 0
    with tempfile.TemporaryDirectory() as folder:

        async def measure() -> Report:
            return await run(
                Path(folder) / "store",
                good=arguments.good,
                hostile=arguments.hostile,
                seconds=arguments.seconds,
                kinds=kinds,
            )

        report = trio.run(measure)
    figures = asdict(report)
    print(json.dumps(figures))
    write(arguments.results, "hostile", figures)
    faults = report.faults(strict=arguments.strict)
    for fault in faults:
        print(f"FAILED: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
