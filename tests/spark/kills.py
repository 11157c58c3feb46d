"""``kill -9`` at random moments under load, and what is left: ``python -m tests.spark.kills --kills 20``.

A container in a process of its own has a queue, and a producer that fills it all the while. A program
moves it through Spark, into files or, by a ledger, into another queue of the container. By turns the JVM,
the program and the reader's process are killed, and it begins again. The moments that matter, between
a segment on the disk and its settlement, and around a discharge, are made long on purpose. In the end
what arrived is counted: nothing may be missing, and come twice only what the options allow.

``--spool lanes`` receives in two lanes, ``--spool objects`` in two that store in an object store (S3 by moto): then their processes are killed too,
in turns with the others.
``--peer stored`` has the container keep all of it on disk, and be killed in its turn; ``--peer rabbitmq`` is
RabbitMQ 4 in its place.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import trio

import trio_amqp10 as amqp
from tests.interop import rabbitmq
from tests.interop.peers import PEERS
from trio_amqp10.spark import Ledger, prepare
from trio_amqp10.spark.failure_points import HOOKS

from .objects import ObjectServer
from .peers import take_all

CREDIT = 500
LANES = 2
LANE = "trio_amqp10.spark.lane_program"
VICTIMS = {"jvm": "org.apache.spark", "script": "", "reader": "python_streaming_source_runner"}
PROGRAM = """
import sys
from pyspark.sql import SparkSession
url, address, folder, mode, dedup, sink, spool, lanes = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = spark.config("spark.local.dir", folder + "/scratch")  # who is killed cleans nothing up
spark = spark.config("spark.driver.extraJavaOptions", "-Djava.io.tmpdir=" + folder + "/scratch").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
source = spark.readStream.format("amqp10").options(
    url=url, address=address, spool=spool, lanes=lanes, credit="CREDIT", dedup=dedup, columns="seq,body",
    maxRowsPerTrigger="10000"
).load()
if sink == "files":
    writer = source.writeStream.format("parquet").option("path", folder + "/out")
else:
    writer = source.select("body").writeStream.format("amqp10")
    writer = writer.options(url=url, address="out", transactions="ledger", ledger="ledger")
writer = writer.option("checkpointLocation", folder + "/checkpoint")
writer = writer.trigger(availableNow=True) if mode == "now" else writer.trigger(processingTime="200 milliseconds")
query = writer.start()
print("started", flush=True)
query.awaitTermination()
""".replace("CREDIT", str(CREDIT))


# Where the messages are, and who sends them ---------------------------------------------------------


class Home:
    """The queue that is read.

    Attributes:
        url: where it is.
        address: of the queue.
    """

    url: str
    address = "q"
    mortal = False
    """Whether it may be killed, and comes back with what it had."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        """Kill it, and start it again."""
        raise NotImplementedError


class Container(Home):
    """Ours, with a ledger and a queue to send to."""

    _arguments: tuple[str, ...] = ("tests.spark.kills", "--role", "peer")

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *self._arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().removeprefix("listening ").strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)


class StoredContainer(Container):
    """``amqp10 serve --store``, which is killed like everything else."""

    mortal = True

    def __enter__(self) -> Self:
        listen = getattr(self, "url", "amqp://127.0.0.1:0")  # at the port that it had
        store = str(self._folder / "container.db")
        self._arguments = ("trio_amqp10", "serve", "--listen", listen, "--store", store, "--queue", "q")
        return super().__enter__()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()
        self.__enter__()


class RabbitMQ(Home):
    """A node of RabbitMQ 4."""

    def __enter__(self) -> Self:
        self._broker = rabbitmq.start(4, peers=PEERS)
        self.url = self._broker.url
        self.address = self._broker.new_queue()
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.stop()


async def serve() -> None:
    """A process of its own."""
    container = amqp.Container("peer")
    for name in ("q", "out"):
        container.add_queue(name)
    container.add_node(Ledger("ledger"))
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        print(listeners[0].url, flush=True)


class Producer:
    """Sends numbered messages, about so many a second, until told to stop; each of them once, if its peer may die."""

    def __init__(self, home: Home, rate: int) -> None:
        self.sent = 0
        self._home = home
        self._rate = rate
        self._enough = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._run,), daemon=True)
        self._thread.start()

    async def _run(self) -> None:
        mortal = self._home.mortal
        guarantee: amqp.Guarantee = "exactly-once" if mortal else "at-least-once"
        async with (
            amqp.open_connection(self._home.url, reconnect=mortal or None) as connection,
            connection.open_sender(self._home.address, guarantee=guarantee) as sender,
        ):
            while not self._enough.is_set():
                for _ in range(self._rate // 10):
                    message = amqp.Message(b"%d" % self.sent, message_id=self.sent, durable=mortal)
                    await sender.transmit(message)
                    self.sent += 1
                await trio.sleep(0.1)
            await sender.flush()

    def stop(self) -> int:
        self._enough.set()
        self._thread.join()
        return self.sent


async def take(url: str, name: str) -> list[bytes]:
    """The bodies of all that a queue has."""
    async with amqp.open_connection(url) as connection:
        return [message.body for message in await take_all(connection, name)]


# Processes ----------------------------------------------------------------------------------------


def children(parent: int) -> set[int]:
    """All processes below one."""
    listing = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    below: dict[int, list[int]] = {}
    for line in listing.splitlines():
        pid, above = map(int, line.split())
        below.setdefault(above, []).append(pid)
    found: set[int] = set()
    ahead = [parent]
    while ahead:
        here = below.get(ahead.pop(), [])
        found.update(here)
        ahead += here
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def wait_for(holds: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@dataclass
class Count:
    """What came of it all."""

    kills: int
    sent: int
    arrived: int
    missing: int
    repeated: int
    left: int
    """Messages that are in the source's queue still."""


class Ordeal:
    """One folder, one container, and a program that is killed time and again."""

    def __init__(
        self,
        folder: Path,
        *,
        dedup: str,
        sink: str,
        home: type[Home] = Container,
        seed: int = 10,
        spool: str | None = None,
        lanes: int = 1,
    ) -> None:
        self._folder = folder
        self._spool = str(folder / "spool") if spool is None else spool
        self._lanes = lanes
        self._dedup = dedup
        self._sink = sink
        self._home = home(folder)
        self._chance = random.Random(seed)
        self._hooks = folder / "hooks"
        self._hooks.mkdir(parents=True)
        (folder / "scratch").mkdir()

    def run(self, kills: int, rate: int = 600, tell: Any = None) -> Count:
        """Kill so often, let it finish, and count."""
        with self._home as home:
            for place, seconds in {"synced": 0.1, "sent": 0.1, "discharged": 0.1, "committed": 0.1}.items():
                (self._hooks / f"delay-{place}").write_text(str(seconds))
            producer = Producer(home, rate)
            victims = [*VICTIMS, *["container"] * home.mortal, *["lane"] * (self._lanes > 1)]
            for number in range(kills):
                victim = victims[number % len(victims)]
                self._kill(victim)
                if tell is not None:
                    tell(f"{number + 1}: {victim} killed, {producer.sent} sent", flush=True)
            sent = producer.stop()
            for left in self._hooks.glob("delay-*"):
                left.unlink()
            script = self._start("now")
            assert script.wait(300) == 0, "the last run failed"
            script.communicate()
            return self._count(kills, sent)

    def _start(self, mode: str) -> subprocess.Popen[str]:
        home = self._home
        given = [home.url, home.address, str(self._folder), mode, self._dedup, self._sink]
        given += [self._spool, str(self._lanes)]
        script = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *given],
            env=os.environ | {HOOKS: str(self._hooks)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert script.stdout is not None
        assert script.stdout.readline() == "started\n"
        return script

    def _kill(self, victim: str) -> None:
        """Start, let a batch or more pass, and kill."""
        before = self._committed()
        script = self._start("follow")
        wait_for(lambda: self._committed() > before, 120)
        time.sleep(self._chance.random() * 1.5)
        if victim == "container":
            before = self._committed()
            self._home.kill()
            wait_for(lambda: self._committed() > before + 1, 120)  # it goes on, and nobody else noticed
        if victim == "lane":
            before = self._committed()
            lanes = [each for each in sorted(children(script.pid)) if LANE in command(each)]
            os.kill(self._chance.choice(lanes), signal.SIGKILL)
            wait_for(lambda: self._committed() > before + 1, 120)
        family = children(script.pid)
        pid = script.pid
        if VICTIMS.get(victim):
            pid = next(each for each in family if VICTIMS[victim] in command(each))
        os.kill(pid, signal.SIGKILL)
        if victim == "reader":
            assert script.wait(60) != 0, "the query has not failed"  # by itself, for it has lost its source
        script.kill()
        script.communicate()
        wait_for(lambda: not any(map(command, family)), 30)

    def _committed(self) -> int:
        commits = self._folder / "checkpoint" / "commits"
        return max((int(path.name) for path in commits.glob("[0-9]*")), default=-1)

    def _count(self, kills: int, sent: int) -> Count:
        arrived = (
            files(self._folder) if self._sink == "files" else Counter(trio.run(take, self._home.url, "out"))
        )
        expected = {b"%d" % number for number in range(sent)}
        assert {*arrived} <= expected, "something arrived that was never sent"
        return Count(
            kills,
            sent,
            arrived.total(),
            len(expected - {*arrived}),
            arrived.total() - len(arrived),
            len(trio.run(take, self._home.url, self._home.address)),
        )


def files(folder: Path) -> Counter[bytes]:
    """The bodies in the files that Spark's own log of the sink says are part of it."""
    import pyarrow.parquet as parquet

    found: Counter[bytes] = Counter()
    for entry in log_entries(folder / "out" / "_spark_metadata"):
        path = json.loads(entry)["path"].removeprefix("file://")
        found.update(parquet.read_table(path, columns=["body"]).column("body").to_pylist())
    return found


def log_entries(log: Path) -> list[str]:
    newest = {int(path.name.split(".")[0]): path for path in log.iterdir() if path.name[0] != "."}
    compacted = max((number for number, path in newest.items() if path.name.endswith(".compact")), default=-1)
    lines: list[str] = []
    for number, path in sorted(newest.items()):
        if number >= compacted:
            lines += [line for line in path.read_text().splitlines() if line.startswith("{")]
    return lines


WAYS = (("message-id", "ledger"), ("link", "files"), ("none", "files"), ("message-id", "files"))
"""How what comes again is known, and where messages go."""
HOMES: dict[str, tuple[type[Home], tuple[tuple[str, str], ...]]] = {
    "container": (Container, WAYS),
    "stored": (StoredContainer, (("link", "files"), ("message-id", "files"))),
    "rabbitmq": (RabbitMQ, (("none", "files"), ("message-id", "files"))),
}
"""Where messages come from, and what is tried there."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rate", type=int, default=600)
    parser.add_argument("--peer", choices=HOMES, default="container")
    parser.add_argument("--spool", choices=["folder", "lanes", "objects"], default="folder")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role == "peer":
        trio.run(serve)
        return
    prepare()
    failed = False
    home, ways = HOMES[given.peer]
    with ExitStack() as stack:
        objects = stack.enter_context(ObjectServer()) if given.spool == "objects" else None
        for dedup, sink in ways:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            ordeal = Ordeal(
                folder,
                dedup=dedup,
                sink=sink,
                home=home,
                spool=None if objects is None else objects.uri(folder.name),
                lanes=1 if given.spool == "folder" else LANES,
            )
            found = ordeal.run(given.kills, given.rate, print)
            links = 1 if given.spool == "folder" else LANES
            allowed = given.kills * CREDIT * links if dedup == "none" else 0
            print(
                f"spool={given.spool} dedup={dedup} sink={sink}: {found}; {allowed} may be repeated",
                flush=True,
            )
            failed |= bool(found.missing or found.left or found.repeated > allowed)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
