"""How fast AMQP goes in and out of Spark, beside the bare library and beside Spark without AMQP.

A container in a process of its own holds queues, and says how long it took to empty or to fill one. What is
compared takes turns, a round after the other, and the medians count: so all meet the same machine. The
source is measured from the first delivery to the last settlement (each message is on the disk by then),
the sink from the first arrival to the last; ``through`` is the whole query or job, as a user waits for it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trio_amqp10.spark import prepare

from .spark_sides import BODY, message

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDE_ROWS = (
    "cast(repeat('x', 256) as binary) body",
    "concat('m-', id) message_id",
    "'tea' subject",
    "map('n', cast(id as string), 'region', 'eu') application_properties",
)
NARROW_ROWS = WIDE_ROWS[:1]
NARROW = {"columns": "body,seq"}
REPLAYED = 400_000


class Peer:
    """The container, seen from here."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.spark_sides", "peer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url: str = self.answer()["url"]

    def order(self, order: str, **given: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"order": order, **given}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


def bare(role: str, peer: Peer, count: int, wide: bool) -> None:
    arguments = [
        sys.executable,
        "-m",
        "bench.spark_sides",
        role,
        "--url",
        peer.url,
        "--count",
        str(count),
    ]
    subprocess.run([*arguments, *(["--wide"] if wide else [])], check=True)


# Measurements -------------------------------------------------------------------------------------


class Bench:
    """One Spark, one peer, and results by name."""

    def __init__(self, count: int, folder: Path) -> None:
        from pyspark.sql import SparkSession

        prepare()
        self.count = count
        self.folder = folder
        self.found: defaultdict[str, list[float]] = defaultdict(list)
        self.peer = Peer()
        builder: Any = SparkSession.builder
        self.spark: Any = (
            builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.local.dir", str(folder))
            .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={folder}")
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("OFF")
        self._names = iter(range(10**6))

    def fresh(self) -> str:
        return f"n{next(self._names)}"

    def note(self, what: str, rate: float) -> None:
        self.found[what].append(rate)

    def receive_bare(self, wide: bool) -> None:
        self.peer.order("fill", queue="bare-in", count=self.count, wide=wide)
        self.peer.answer()
        self.peer.order("emptied", queue="bare-in", count=self.count)
        bare("receive", self.peer, self.count, wide)
        self.note(f"bare receive{wide:d}", self.count / self.peer.answer()["seconds"])
        self.purge("bare-in")

    def source(self, wide: bool) -> None:
        queue = self.fresh()
        self.peer.order("fill", queue=queue, count=self.count, wide=wide)
        self.peer.answer()
        self.peer.order("emptied", queue=queue, count=self.count)
        query = self.stream(queue, {} if wide else NARROW).format("noop").start()
        told = self.peer.answer()
        while sum(each["numInputRows"] for each in query.recentProgress) < self.count:
            time.sleep(0.02)
        through = time.monotonic() - told["began"]
        query.stop()
        self.note(f"source{wide:d}", self.count / told["seconds"])
        self.note(f"source through{wide:d}", self.count / through)

    def stream(self, queue: str, more: dict[str, str]) -> Any:
        folder = self.folder / self.fresh()
        source = self.spark.readStream.format("amqp10").options(
            url=self.peer.url, address=queue, spool=str(folder / "spool"), **more
        )
        writer = source.load().writeStream.trigger(processingTime="200 milliseconds")
        return writer.option("checkpointLocation", str(folder / "checkpoint"))

    def send_bare(self, wide: bool) -> None:
        self.peer.order("filled", queue="bare-out", count=self.count)
        bare("send", self.peer, self.count, wide)
        self.note(f"bare send{wide:d}", self.count / self.peer.answer()["seconds"])
        self.purge("bare-out")

    def purge(self, queue: str) -> None:
        self.peer.order("purge", queue=queue)
        self.peer.answer()

    def rows(self, wide: bool, count: int, partitions: int) -> Any:
        frame = self.spark.range(0, count, 1, partitions).selectExpr(*(WIDE_ROWS if wide else NARROW_ROWS))
        frame = frame.cache()
        frame.count()
        return frame

    def sink(self, frame: Any, wide: bool) -> None:
        queue = self.fresh()
        self.peer.order("filled", queue=queue, count=self.count)
        began = time.monotonic()
        frame.write.format("amqp10").options(url=self.peer.url, address=queue).mode("append").save()
        through = time.monotonic() - began
        self.note(f"sink{wide:d}", self.count / self.peer.answer()["seconds"])
        self.note(f"sink through{wide:d}", self.count / through)
        self.purge(queue)

    def sink_ceiling(self, frame: Any, wide: bool) -> None:
        began = time.monotonic()
        frame.write.format("nowhere").mode("append").save()
        self.note(f"sink ceiling{wide:d}", self.count / (time.monotonic() - began))

    def source_ceiling(self, wide: bool) -> None:
        reader = self.spark.read.format("memory").option("count", str(self.count)).option("wide", str(wide))
        began = time.monotonic()
        reader.load().write.format("noop").mode("overwrite").save()
        self.note(f"source ceiling{wide:d}", self.count / (time.monotonic() - began))

    def replay(self, tasks: int) -> None:
        """Batches of 100,000 rows out of a spool that is full already, each in so many tasks."""
        from trio_amqp10.spark.segments import segment
        from trio_amqp10.spark.spool import Spool

        queue, spool_folder = self.fresh(), self.folder / self.fresh()
        given = {"url": self.peer.url, "address": queue, "spool": str(spool_folder)}
        spool = Spool(spool_folder)
        for first in range(0, REPLAYED, 2000):
            came = [Came(message(number, True).to_payload()) for number in range(first, first + 2000)]
            stored = segment(came, [first] * 2000, address=queue, peer="bench")
            spool.write(2000, partial(write_ipc, batch=stored))
        spool.close()
        self.peer.order("fill", queue=queue, count=0, wide=True)
        self.peer.answer()
        source = self.spark.readStream.format("amqp10").options(
            **given, maxRowsPerTrigger="100000", minPartitions=str(tasks), availableNowIdle="1"
        )
        writer = source.load().writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.folder / self.fresh())).start()
        query.awaitTermination()
        for each in query.recentProgress[1:]:  # the first has the start of everything in it
            if each["numInputRows"] == 100_000:
                self.note(f"replay{tasks}", 100_000 / each["durationMs"]["triggerExecution"] * 1000)

    def latency(self) -> None:
        for queue in ("latency-in", "latency-out"):
            if not self.found["latency"]:
                self.peer.order("fill", queue=queue, count=0, wide=False)
                self.peer.answer()
        writer = self.stream("latency-in", {"columns": "body"}).format("amqp10")
        query = writer.options(url=self.peer.url, address="latency-out").start()
        arguments = [sys.executable, "-m", "bench.spark_sides", "probe", "--url", self.peer.url]
        told = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
        query.stop()
        self.note("latency", json.loads(told)["p50"])


class Came:
    """A message that was received."""

    message_format = 0
    tag = b"12345678"

    def __init__(self, payload: bytes) -> None:
        self.payload = payload


def batches(options: Any, count: int, *, wide: bool) -> Any:
    from trio_amqp10.spark.rows import RowMaker, Rows

    maker, rows = RowMaker(options), Rows()
    maker.gather(rows, [Came(message(number, wide).to_payload()) for number in range(count)], 0)
    return maker.batch(rows, range(count))


def write_ipc(file: Any, batch: Any) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def ceilings(spark: Any) -> None:
    """Two data sources without AMQP: rows from memory, and rows to nowhere."""
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        InputPartition,
        WriterCommitMessage,
    )
    from pyspark.sql.pandas.types import from_arrow_schema

    from trio_amqp10.spark.options import BrowseOptions
    from trio_amqp10.spark.schema import read_schema

    def options_of(given: Any) -> Any:
        wide = given.get("wide") == "True"
        return BrowseOptions.parse({"url": "amqp://h", "address": "q"} | ({} if wide else NARROW)), wide

    class Reader(DataSourceReader):  # type: ignore[misc]
        def __init__(self, given: Any) -> None:
            self.options, self.wide = options_of(given)
            self.count = int(given["count"])

        def partitions(self) -> Any:
            return [InputPartition(0)]

        def read(self, partition: Any) -> Iterator[Any]:  # noqa: ARG002
            batch = batches(self.options, 2000, wide=self.wide)
            for _ in range(self.count // 2000):
                yield batch

    class Memory(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "memory"

        def schema(self) -> Any:
            return from_arrow_schema(read_schema(options_of(self.options)[0]))

        def reader(self, schema: Any) -> Any:  # noqa: ARG002
            return Reader(dict(self.options))

    class Writer(DataSourceArrowWriter):  # type: ignore[misc]
        def write(self, iterator: Any) -> Any:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Nowhere(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "nowhere"

        def writer(self, schema: Any, overwrite: bool) -> Any:  # noqa: ARG002
            return Writer()

    spark.dataSource.register(Memory)
    spark.dataSource.register(Nowhere)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=60_000)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-spark-"))
    try:
        compare(given.count, given.rounds, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(count: int, rounds: int, folder: Path) -> None:
    bench = Bench(count, folder)
    ceilings(bench.spark)
    frames = {wide: bench.rows(wide, count, 2) for wide in (False, True)}
    bench.sink(frames[False], False)  # starts what every task needs
    bench.source_ceiling(False)
    bench.sink_ceiling(frames[False], False)
    bench.found.clear()
    loads: list[float] = []
    for _ in range(rounds):
        for wide in (False, True):
            bench.receive_bare(wide)
            bench.source(wide)
            bench.source_ceiling(wide)
            bench.send_bare(wide)
            bench.sink(frames[wide], wide)
            bench.sink_ceiling(frames[wide], wide)
            loads.append(os.getloadavg()[0])
        for tasks in (1, 2):
            bench.replay(tasks)
        bench.latency()
    bench.spark.stop()
    bench.peer.end()
    show(bench, rounds, loads)


def show(bench: Bench, rounds: int, loads: list[float]) -> None:
    middle = {what: statistics.median(rates) for what, rates in bench.found.items()}
    print(
        f"{bench.count:,} messages of {BODY} octets, medians of {rounds} rounds; "
        f"load {min(loads):.1f} to {max(loads):.1f} on {os.cpu_count()} cores"
    )
    print(f"{'rows a second':34}{'body, seq':>14}{'all columns':>14}")
    for what in (
        "bare receive",
        "source",
        "source through",
        "source ceiling",
        "bare send",
        "sink",
        "sink through",
        "sink ceiling",
    ):
        print(f"{f'    {what}':34}" + "".join([f"{middle[f'{what}{wide}']:14,.0f}" for wide in (0, 1)]))
    for ours, theirs in ("source", "bare receive"), ("sink", "bare send"):
        shares = [middle[f"{ours}{wide}"] / middle[f"{theirs}{wide}"] for wide in (0, 1)]
        print(f"{f'    {ours} / {theirs}':34}" + "".join([f"{share:14.0%}" for share in shares]))
    one, two = middle["replay1"], middle["replay2"]
    print(
        f"replay from the spool, 100,000 rows a batch, all columns: {two:,.0f} rows/s in two tasks, {two / one:.2f} of one task"
    )
    print(f"queue to queue through Spark, trigger of 200 ms: p50 {middle['latency']:.2f} s")


if __name__ == "__main__":
    main()
