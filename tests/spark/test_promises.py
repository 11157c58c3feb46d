"""``kill -9`` at random moments under load: nothing missing, and of what comes twice only what may.

Slow: these run where AMQP10_SPARK_WHOLE is set (``make test-spark WHOLE=1``).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.spark.hooks import HOOKS

from .test_intake import until

if TYPE_CHECKING:
    from pathlib import Path

    from .server import Server

pytestmark = pytest.mark.whole

CREDIT = 500
PROGRAM = """
import sys
from pyspark.sql import SparkSession
url, folder, mode, dedup = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
source = spark.readStream.format("amqp10").options(
    url=url, address="q", spool=folder + "/spool", credit="CREDIT", dedup=dedup, columns="seq,body"
).load()
writer = source.writeStream.format("parquet").option("checkpointLocation", folder + "/checkpoint")
writer = writer.trigger(availableNow=True) if mode == "now" else writer.trigger(processingTime="200 milliseconds")
query = writer.start(folder + "/out")
print("started", flush=True)
query.awaitTermination()
""".replace("CREDIT", str(CREDIT))


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
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def alive(pid: int) -> bool:
    return bool(command(pid))


class Producer:
    """Sends numbered messages to ``q``, so many a second, until told to stop."""

    def __init__(self, server: Server, rate: int) -> None:
        self.server = server
        self.rate = rate
        self.sent = 0
        self.enough = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.enough.wait(0.1):
            count = self.rate // 10
            numbers = range(self.sent, self.sent + count)
            self.server.put("q", [amqp.Message(b"%d" % n, message_id=n) for n in numbers])
            self.sent += count

    def stop(self) -> int:
        self.enough.set()
        self.thread.join()
        return self.sent


@pytest.mark.parametrize("dedup", ["none", "message-id"])
def test_kills_lose_nothing_and_repeat_at_most_the_credit_each(
    java: None, server: Server, tmp_path: Path, dedup: str
) -> None:
    kills, chance = 4, random.Random(10)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "delay-synced").write_text("0.1")  # or the moment that matters is hardly ever met
    environment = os.environ | {HOOKS: str(hooks)}

    def start(mode: str) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", PROGRAM, server.url, str(tmp_path), mode, dedup]
        script = subprocess.Popen(
            arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert script.stdout is not None
        assert script.stdout.readline() == "started\n"
        return script

    server.queue("q")
    producer = Producer(server, 1500)
    for number in range(kills):
        script = start("follow")
        held = producer.sent
        until(lambda held=held: server.held("q") < held, 30)  # type: ignore[misc]
        time.sleep(1 + chance.random())
        family = children(script.pid)
        java_process = next(pid for pid in family if "org.apache.spark" in command(pid))
        os.kill(script.pid if number % 2 else java_process, signal.SIGKILL)
        script.kill()
        script.communicate()
        until(lambda family=family: not any(map(alive, family)), 10)  # type: ignore[misc]
    sent = producer.stop()
    (hooks / "delay-synced").unlink()
    script = start("now")
    assert script.wait(120) == 0
    script.communicate()
    found = arrived(tmp_path)
    assert {*found} == {b"%d" % n for n in range(sent)}
    repeated = sum(found.values()) - len(found)
    assert repeated <= (0 if dedup == "message-id" else kills * CREDIT)
    assert server.held("q") == 0


def arrived(folder: Path) -> Counter[bytes]:
    """The bodies in the files that Spark's own log of the sink says are part of it."""
    import json

    import pyarrow.parquet as parquet

    found: Counter[bytes] = Counter()
    for entry in log_entries(folder / "out" / "_spark_metadata"):
        path = json.loads(entry)["path"].removeprefix("file://")
        found.update(parquet.read_table(path, columns=["body"]).column("body").to_pylist())
    return found


def log_entries(log: Path) -> list[str]:
    newest: dict[int, Any] = {
        int(path.name.split(".")[0]): path for path in log.iterdir() if path.name[0] != "."
    }
    compacted = max((number for number, path in newest.items() if path.name.endswith(".compact")), default=-1)
    lines: list[str] = []
    for number, path in sorted(newest.items()):
        if number >= compacted:
            lines += [line for line in path.read_text().splitlines() if line.startswith("{")]
    return lines
