"""What a restart after a kill costs, however many messages the store has."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from bench.processes import PYTHON, ROOT, Server
from bench.registry import Figures, Gate, row
from trio_amqp10.broker.nodes.message_store import MESSAGES
from trio_amqp10.broker.stores.base import until_done

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

STORED = (1, 100_000, 1_000_000)
READY, FIRST = "s until it listens", "s until the first message"
TAKEN, OCTETS = "s of processor time until then", "octets resident a message"
_AT_ONCE = 10_000


async def _fill(path: Path, count: int) -> None:
    """Make a store whose queue "bench" has so many messages: one that a container wrote, and copies of its row."""
    with amqp.SqliteStore(path) as store:
        container = amqp.Container(store=store)
        await container.send("bench", amqp.Message(b"x" * 100, durable=True))
        await container.flush()
    with amqp.SqliteStore(path) as store:
        (written,) = list[Any](store.rows(MESSAGES))
        key, node, place, *others = written
        store.totals(MESSAGES)
        copies = ((key + number, node, place + number, *others) for number in range(1, count))
        while some := {copy[0]: copy for copy in itertools.islice(copies, _AT_ONCE)}:
            await until_done(lambda done, some=some: store.write({MESSAGES: some}, done))


async def _first_message(url: str) -> None:
    async with (
        amqp.open_connection(url) as connection,
        connection.open_receiver("bench", credit=0) as receiver,
    ):
        receiver.grant(1)
        (await receiver.receive()).release()


def _restart(path: Path) -> tuple[float, float, float, int]:
    """Start a server on the store, and kill it; return the three times, and its resident octets."""
    began = time.monotonic()
    command = [*PYTHON, "-m", "trio_amqp10", "serve", "--listen", "amqp://127.0.0.1:0", "--store", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[1]
            ready = time.monotonic() - began
            trio.run(_first_message, url)
            first = time.monotonic() - began
            server = Server(url, process.pid)
            return ready, first, server.processor_seconds(), server.resident()
        finally:
            process.kill()


@row(
    "store-restart",
    "``amqp10 serve`` on a store with so many messages, after a kill: from the start of the process.",
    gates=(
        Gate(top=(str(STORED[-1]), FIRST), most=2.0),
        Gate(top=(str(STORED[-1]), OCTETS), most=250),
    ),
    curve="messages in the store",
    quiet=True,
)
def _restarts(lab: Lab) -> Iterator[Callable[[], Figures]]:
    folder = Path(tempfile.mkdtemp(dir=ROOT, prefix=".bench-"))
    try:
        stores = {whole: (folder / str(whole), lab.count(whole, 1)) for whole in STORED}
        for path, count in stores.values():
            trio.run(_fill, path, count)
            _restart(path)  # From now on the file is that of a process that was killed.

        def once() -> Figures:
            found: Figures = {}
            empty = 0
            for whole, (path, count) in stores.items():
                *times, resident = _restart(path)
                empty = empty or resident
                found.update(
                    ((str(whole), what), each)
                    for what, each in zip((READY, FIRST, TAKEN), times, strict=True)
                )
                if count > 1:
                    found[str(whole), OCTETS] = (resident - empty) / count
            return found

        yield once
    finally:
        shutil.rmtree(folder)
