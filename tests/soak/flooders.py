"""One flooder beside one good peer, kind by kind: what does it cost the good one?

``amqp10 serve`` and the flooder are processes of their own, and the flooder has the least priority, so that what is measured is the
server. It does its worst without a pause, but for those that dial again. The good peer sends a message every 20 ms, and waits until it has
come back: alone, and then beside the flooder.

================  ==================================================================================
alone, beside     milliseconds from a send to the message's return, the middle one and the 99th of 100
worked_ms         processor time of the server meanwhile, the 99th of 100: the same on a busy machine
raised            calls of the good peer that raised, or took longer than 30 s: must be 0
================  ==================================================================================
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import trio

import trio_amqp10 as amqp
from tests.results import add_option, write

from .hostile import KINDS, Latencies, processor_clock
from .kills import Server

_PAUSE: Final = 0.02
_AGAIN: Final = 0.02
"""Seconds between two messages of the good peer, and before the flooder dials again."""


async def _flood(kind: str, port: int) -> None:
    while True:
        with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            stream = await trio.open_tcp_stream("127.0.0.1", port, local_address="127.0.1.1")
            async with stream, trio.open_nursery() as nursery:
                nursery.start_soon(_swallow, stream, nursery.cancel_scope)
                async for octets in KINDS[kind]():
                    if octets:
                        await stream.send_all(octets)
                    else:
                        await trio.sleep(1)
                nursery.cancel_scope.cancel()
        await trio.sleep(_AGAIN)


async def _swallow(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
    with suppress(OSError, trio.BrokenResourceError):
        while await stream.receive_some():
            pass
    scope.cancel()


async def _good(server: Server, seconds: float) -> dict[str, Any]:
    latencies, worked = Latencies(), Latencies()
    clock = processor_clock(server.pid)
    try:
        async with (
            amqp.open_connection(server.url, close_timeout=5) as conn,
            conn.open_sender("good") as sender,
            conn.open_receiver("good") as receiver,
        ):
            until = trio.current_time() + seconds
            while trio.current_time() < until:
                began, before = trio.current_time(), time.clock_gettime(clock)
                with trio.fail_after(30):
                    await sender.send(b"x" * 200)
                    (await receiver.receive()).accept()
                worked.seconds.append(time.clock_gettime(clock) - before)
                latencies.seconds.append(trio.current_time() - began)
                await trio.sleep(_PAUSE)
    except (amqp.AmqpError, OSError, trio.BrokenResourceError, trio.TooSlowError) as failure:
        latencies.raised.append(repr(failure))
    figures: dict[str, Any] = latencies.figures()
    return figures | {"worked_ms": worked.figures()["p99_ms"], "raised": len(latencies.raised)}


async def _beside(kind: str, folder: Path, seconds: float) -> dict[str, Any]:
    server = Server(folder / kind)
    await server.start()
    try:
        alone = await _good(server, seconds)
        port = server.url.rpartition(":")[2].rstrip("/")
        command = [sys.executable, "-m", __spec__.name, "--kind", kind, "--port", port]
        flooder = await trio.lowlevel.open_process(command)
        try:
            await trio.sleep(1.5)
            beside = await _good(server, seconds)
        finally:
            flooder.kill()
            with trio.CancelScope(shield=True):
                await flooder.wait()
    finally:
        await server.end(signal.SIGTERM)
    return {"kind": kind, "alone": alone, "beside": beside}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--kind", choices=list(KINDS), default=None, help="this kind alone")
    parser.add_argument("--port", type=int, default=None, help=argparse.SUPPRESS)  # then we are the flooder
    add_option(parser)
    arguments = parser.parse_args()
    if arguments.port is not None:
        os.nice(19)
        trio.run(_flood, arguments.kind, arguments.port)
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in [arguments.kind] if arguments.kind else KINDS:
            runs.append(trio.run(_beside, kind, Path(folder), arguments.seconds))
            print(json.dumps(runs[-1]), flush=True)
    load = round(os.getloadavg()[0], 1)  # what else the machine did
    write(arguments.results, "flooders", {"seconds": arguments.seconds, "load": load, "kinds": runs})
    return 1 if any(run[part]["raised"] for run in runs for part in ("alone", "beside")) else 0


if __name__ == "__main__":
    sys.exit(main())
