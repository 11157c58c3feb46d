"""Kills processes under load: ``python -m tests.spark.kills --kills 20``.

A container in its own process has a queue, which a producer fills continuously. A program
moves the messages through Spark, into files or, with a ledger, into another queue of the container. The JVM,
the program and the reader's process are killed in turn, and the program is started again. The critical moments, between
a segment on the disk and its settlement, and around a discharge, are made longer. At the end
the arrived messages are counted: none may be missing, and only as many as the options allow may be duplicates.

``--spool lanes`` receives in two lanes, ``--spool objects`` in two lanes of an object store (S3 by moto): then their processes are
killed too, and the store is out of reach for a while, in turn with the others. ``--spool external`` runs two programs ``amqp10 spool``
instead, which go on while Spark is down, and are killed too. ``--spool takeover`` kills these programs for good, one after the other,
while one query goes on: the other lane receives what the dead one held, and a lane with a new name joins.
``--peer stored`` uses a container with a store on disk, which is killed in its turn; ``--peer rabbitmq`` uses
RabbitMQ 4, which is killed too. ``--results`` writes a row for each way, and replaces the rows of an earlier run.
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
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import trio

from tests.results import add_option, commit, earlier, write
from trio_amqp10.spark import prepare

from .failures import Failures
from .homes import Container, Home, Producer, RabbitMQ, StoredContainer, take
from .objects import ObjectServer

CREDIT = 500
LANES = 2
LANE = "trio_amqp10.spark.lane_program"
EXTERNAL = "external"
TAKEOVER = "takeover"
_LONGEST = 1800
"""The most seconds of the last run: half a million messages, a slow machine."""
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


class Programs:
    """``amqp10 spool`` of a queue, one for each lane.

    Args:
        home: whose queue.
        where: the store.
        dedup: as the query has it.
        env: for each of them.
    """

    def __init__(self, home: Home, where: str, dedup: str, env: dict[str, str]) -> None:
        self._target = f"{home.url}/{home.address}"
        self._arguments = ["--to", where, "--option", f"dedup={dedup}", "--option", f"credit={CREDIT}"]
        self._env = env
        self._names = map("lane-{}".format, count())
        self._running: dict[str, subprocess.Popen[str]] = {}
        for _ in range(LANES):
            self.join()

    def _start(self, lane: str, *more: str) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-m",
            "trio_amqp10",
            "spool",
            self._target,
            "--lane",
            lane,
            *self._arguments,
            *more,
        ]
        process = subprocess.Popen(command, env=self._env, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("spooling ")
        return process

    def kill(self, chance: random.Random) -> None:
        """Kill one, and start another in its place."""
        lane = self.lose(chance)
        self._running[lane] = self._start(lane)

    def lose(self, chance: random.Random) -> str:
        """Kill one for good; return the name of its lane."""
        lane = chance.choice([*self._running])
        process = self._running.pop(lane)
        assert process.poll() is None, "it has ended by itself"
        process.kill()
        process.communicate()
        return lane

    def join(self) -> None:
        """Start one with a new name."""
        lane = next(self._names)
        self._running[lane] = self._start(lane)

    def finish(self) -> None:
        """End them, and have one receive what is left."""
        for process in self._running.values():
            process.terminate()
            process.communicate(timeout=60)
            assert process.returncode == 0
        last = self._start("lane-0", "--until-empty")
        last.communicate(timeout=_LONGEST)
        assert last.returncode == 0


@dataclass
class Count:
    """The counts of a run."""

    victims: dict[str, int]
    sent: int
    arrived: int
    missing: int
    repeated: int
    allowed: int
    """How many may come twice."""
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
        objects: ObjectServer | None = None,
        lanes: int | str = 1,
    ) -> None:
        self._folder = folder
        self._objects = objects
        self._spool = str(folder / "spool") if objects is None else objects.uri(folder.name)
        self._lanes = lanes
        self._dedup = dedup
        self._sink = sink
        self._home = home(folder)
        self._chance = random.Random(seed)
        for name in ("failures", "scratch"):
            (folder / name).mkdir(parents=True)
        self._failures = Failures(folder / "failures")
        self._env = os.environ | self._failures.environment()

    def run(self, kills: int, rate: int = 600, tell: Any = None) -> Count:
        """Kill so often, let it finish, and count."""
        with self._home as home:
            for place in ("synced", *(("sent", "discharged", "committed") if self._sink == "ledger" else ())):
                self._failures.delay(place, 0.1)
            producer = Producer(home, rate)
            if self._lanes == EXTERNAL:
                self._programs = Programs(home, self._spool, self._dedup, self._env)
            own: list[str] = {1: [], LANES: ["lane"], EXTERNAL: ["program", "program"]}[self._lanes]
            victims = [*VICTIMS, *[home.name] * home.mortal, *own, *["store"] * (self._objects is not None)]
            killed: Counter[str] = Counter()
            for number in range(kills):
                victim = victims[number % len(victims)]
                self._kill(victim)
                killed[victim] += 1
                if tell is not None:
                    tell(f"{number + 1}: {victim}, {producer.sent} sent", flush=True)
            return self._finish(producer, killed)

    def take_over(self, kills: int, rate: int = 600, tell: Any = None) -> Count:
        """Kill lanes for good, beside one query that goes on, and count.

        After each, batches must follow with the other lanes alone; then a new lane joins.
        """
        with self._home as home:
            self._failures.delay("synced", 0.1)
            producer = Producer(home, rate)
            self._programs = Programs(home, self._spool, self._dedup, self._env)
            script = self._start("follow")
            killed: Counter[str] = Counter()
            for number in range(kills):
                self._await_batches(script)
                time.sleep(self._chance.random())
                lane = self._programs.lose(self._chance)
                killed["lane"] += 1
                self._await_batches(script)
                self._programs.join()
                if tell is not None:
                    tell(f"{number + 1}: {lane}, {producer.sent} sent", flush=True)
            self._await_batches(script)
            self._end(script, children(script.pid))
            return self._finish(producer, killed)

    def _await_batches(self, script: subprocess.Popen[str]) -> None:
        """Wait until two more batches are committed."""
        before = self._committed()
        wait_for(lambda: self._committed() > before + 1, 120)
        assert script.poll() is None, "the query has ended"

    def _finish(self, producer: Producer, killed: Counter[str]) -> Count:
        """Let the last messages come, read all rows, and count."""
        sent = producer.stop()
        self._failures.end()
        if self._lanes == EXTERNAL:
            self._programs.finish()
        script = self._start("now")
        assert script.wait(_LONGEST) == 0, "the last run failed"
        script.communicate()
        return self._count(killed, sent)

    def _end(self, script: subprocess.Popen[str], family: set[int]) -> None:
        """Kill the program, and wait until it and its processes are gone."""
        script.kill()
        script.communicate()
        wait_for(lambda: not any(map(command, family)), 30)

    def _start(self, mode: str) -> subprocess.Popen[str]:
        home = self._home
        given = [home.url, home.address, str(self._folder), mode, self._dedup, self._sink]
        given += [self._spool, str(self._lanes)]
        script = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *given],
            env=self._env,
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
        disturb = {
            self._home.name: self._home.kill,
            "lane": partial(self._kill_lane, script),
            "program": lambda: self._programs.kill(self._chance),
            "store": self._refuse,
        }.get(victim)
        if disturb is not None:  # the query goes on
            before = self._committed()
            disturb()
            wait_for(lambda: self._committed() > before + 1, 120)
        family = children(script.pid)
        pid = script.pid
        if VICTIMS.get(victim):
            pid = next(each for each in family if VICTIMS[victim] in command(each))
        os.kill(pid, signal.SIGKILL)
        if victim == "reader":
            assert script.wait(60) != 0, "the query has not failed"  # by itself, for it has lost its source
        self._end(script, family)

    def _kill_lane(self, script: subprocess.Popen[str]) -> None:
        lanes = [each for each in sorted(children(script.pid)) if LANE in command(each)]
        os.kill(self._chance.choice(lanes), signal.SIGKILL)

    def _refuse(self) -> None:
        assert self._objects is not None
        self._objects.refuse(self._chance.random() * 8)

    def _committed(self) -> int:
        commits = self._folder / "checkpoint" / "commits"
        return max((int(path.name) for path in commits.glob("[0-9]*")), default=-1)

    def _count(self, killed: Counter[str], sent: int) -> Count:
        arrived = (
            files(self._folder) if self._sink == "files" else Counter(trio.run(take, self._home.url, "out"))
        )
        expected = {b"%d" % number for number in range(sent)}
        assert {*arrived} <= expected, "something arrived that was never sent"
        links = 1 if self._lanes == 1 else LANES
        again = killed.total() * CREDIT * links + killed[self._home.name] * self._home.sent_again
        return Count(
            dict(killed),
            sent=sent,
            arrived=arrived.total(),
            missing=len(expected - {*arrived}),
            repeated=arrived.total() - len(arrived),
            allowed=again if self._dedup == "none" else 0,
            left=len(trio.run(take, self._home.url, self._home.address)),
        )


def files(folder: Path) -> Counter[bytes]:
    """Count the bodies in the files that the log of Spark's sink lists."""
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
TAKEOVER_WAYS = (("message-id", "files"),)
HOMES: dict[str, tuple[type[Home], tuple[tuple[str, str], ...]]] = {
    "container": (Container, WAYS),
    "stored": (StoredContainer, (("link", "files"), ("message-id", "files"))),
    "rabbitmq": (RabbitMQ, (("none", "files"), ("message-id", "files"))),
}
"""The peers, and the ways that are tried with each."""


def _keep(path: Path | None, way: dict[str, str], found: dict[str, Any]) -> None:
    """Write what came of one way among what earlier runs have left of others."""
    others = [row for row in earlier(path, "runs") if not row.items() >= way.items()]
    write(path, "spark_kills", {"runs": [*others, way | found]})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rate", type=int, default=600)
    parser.add_argument(
        "--dedup", choices=["none", "message-id", "link"], help="Only this way, of those that are tried."
    )
    parser.add_argument("--peer", choices=HOMES, default="container")
    parser.add_argument(
        "--spool", choices=["folder", "lanes", "objects", EXTERNAL, TAKEOVER], default="folder"
    )
    add_option(parser)
    given = parser.parse_args()
    prepare()
    failed = False
    home, ways = HOMES[given.peer]
    with ExitStack() as stack:
        outside = given.spool in (EXTERNAL, TAKEOVER)
        objects = stack.enter_context(ObjectServer()) if outside or given.spool == "objects" else None
        lanes: int | str = EXTERNAL if outside else 1 if given.spool == "folder" else LANES
        for dedup, sink in TAKEOVER_WAYS if given.spool == TAKEOVER else ways:
            if given.dedup not in (None, dedup):
                continue
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            ordeal = Ordeal(
                folder,
                dedup=dedup,
                sink=sink,
                home=home,
                objects=objects,
                lanes=lanes,
            )
            disturb = ordeal.take_over if given.spool == TAKEOVER else ordeal.run
            found = disturb(given.kills, given.rate, print)
            print(f"spool={given.spool} dedup={dedup} sink={sink}: {found}", flush=True)
            failed |= bool(found.missing or found.left or found.repeated > found.allowed)
            _keep(
                given.results,
                {"peer": given.peer, "spool": given.spool, "dedup": dedup, "sink": sink},
                asdict(found) | {"commit": commit()},
            )
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
