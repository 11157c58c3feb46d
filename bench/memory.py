"""What a link and an idle connection hold, in octets: the growth of the process, and of Python's own blocks.

Both ends live in this process, over loopback sockets, so every figure is for both ends together; half of it is
one end. The growth of the process (RSS) is what an operator sees; tracemalloc's count is taken in a run of
its own, since keeping it costs memory too.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tracemalloc
from contextlib import AsyncExitStack
from typing import Any

import trio

import trio_amqp10 as amqp
from trio_amqp10.engine.limits import Limits

LIMITS = Limits(max_links=None, handle_max=65_535)
IDLE = 1.5
"""Seconds after which a connection has nothing left of what it was busy with."""


def now_held() -> int:
    """Octets: Python's blocks while they are traced, else the resident set."""
    gc.collect()
    if tracemalloc.is_tracing():
        return tracemalloc.get_traced_memory()[0]
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


async def accept_all(connection: amqp.Connection) -> None:
    """Accept every link and keep it, without a task for each."""
    async with AsyncExitStack() as links:
        async for link in connection.incoming_links():
            await links.enter_async_context(link.accept())


async def links(count: int) -> float:
    """Octets for each link, both ends, on one connection."""
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(serve)
        async with (
            amqp.open_connection(listeners[0].url, limits=LIMITS) as connection,
            connection.open_sender("warm-up"),
        ):
            before = now_held()
            opened = []
            for number in range(count):
                opening = connection.open_sender(f"node-{number}", name=f"link-{number}")
                opened.append(await opening.__aenter__())
            grown = now_held() - before
        nursery.cancel_scope.cancel()
    return grown / count


async def connections(count: int) -> float:
    """Octets for each idle connection, both ends."""
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(serve)
        async with amqp.open_connection(listeners[0].url), AsyncExitStack() as stack:
            before = now_held()
            for _ in range(count):
                await stack.enter_async_context(amqp.open_connection(listeners[0].url, close_timeout=0.1))
            await trio.sleep(IDLE)
            grown = now_held() - before
            nursery.cancel_scope.cancel()
    return grown / count


async def serve(task_status: Any) -> None:
    """A listener that accepts everything."""
    await amqp.serve(accept_all, "amqp://127.0.0.1:0", limits=LIMITS, task_status=task_status)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--links", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", choices=["links", "connections"], help=argparse.SUPPRESS)
    parser.add_argument("--trace", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure_one(arguments)
        return
    found: dict[str, dict[str, int]] = {}
    for what in ("links", "connections"):
        # Each in a process of its own: what one leaves behind must not serve the other.
        found[what] = {
            name: run_one(what, getattr(arguments, what), flags)
            for name, flags in (("resident", []), ("python", ["--trace"]))
        }
    if arguments.json:
        print(json.dumps(found))
        return
    for what, held in found.items():
        count = getattr(arguments, what)
        print(f"{what[:-1]}, both ends together, of {count:,}: {held['resident']:,} octets resident")
        print(f"    of which {held['python']:,} in Python's blocks; one end is half of that")


def run_one(what: str, count: int, flags: list[str]) -> int:
    command = [sys.executable, "-m", "bench.memory", "--one", what, f"--{what}", str(count), *flags]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_one(arguments: argparse.Namespace) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * arguments.connections + 100
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    if arguments.trace:
        tracemalloc.start()
    octets = trio.run(
        {"links": links, "connections": connections}[arguments.one], getattr(arguments, arguments.one)
    )
    print(round(octets), flush=True)
    os._exit(0)  # taking ten thousand links down again is not what is measured


if __name__ == "__main__":
    main()
