"""Minutes of a steady rate through the source, and whether the reader's process grows: ``python -m bench.spark_steady``.

A container in a process of its own takes so many messages a second from a sender in another; a query reads
them, all columns, and keeps nothing. Every few seconds the resident memory of the process that receives is looked
up. A straight line through what was seen after a warm-up says how much it grows each minute. The rate that the
machine reached is told beside the one that was asked for: ask for less where they differ.
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
from pathlib import Path
from typing import Any

from .spark import Bench
from .spark_lanes import cpu

READER = b"python_streaming_source_runner"
EVERY = 5.0
"""Seconds between two looks."""


def reader_of(parent: int) -> int:
    """The process that receives: the one below ours that Spark started for the source."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if READER in (folder / "cmdline").read_bytes() and parent in ancestors(int(folder.name)):
                return int(folder.name)
        except OSError:
            continue  # it has just ended
    raise LookupError("the query has no process that receives")


def ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def resident(pid: int) -> float:
    """MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def slope(points: list[tuple[float, float]]) -> float:
    """MiB a minute, of (seconds, MiB)."""
    times, sizes = [at / 60 for at, _ in points], [size for _, size in points]
    return statistics.linear_regression(times, sizes).slope


def received(query: Any) -> int:
    """The number of the last row that the spool has."""
    progress = query.lastProgress
    return 0 if progress is None else int(json.loads(progress["sources"][0]["endOffset"])["seq"])


def watch(bench: Bench, *, rate: int, minutes: float, warm_up: float) -> list[tuple[float, float]]:
    """Memory by time, the warm-up left out; prints it, and the processor time."""
    bench.peer.order("fill", queue="steady", count=0, wide=True)
    bench.peer.answer()
    query = (
        bench.stream("steady", {"maxRowsPerTrigger": "100000", "spool.maxBytes": "512m"})
        .format("noop")
        .start()
    )
    sender = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "bench.spark_sides",
            "pour",
            "--url",
            bench.peer.url,
            "--count",
            str(rate),
            "--wide",
        ]
    )
    points: list[tuple[float, float]] = []
    try:
        while received(query) == 0:
            time.sleep(0.1)
        pid = reader_of(os.getpid())
        began, before, spent = time.monotonic(), received(query), cpu(pid)
        while (at := time.monotonic() - began) < minutes * 60:
            points.append((at, resident(pid)))
            if len(points) % 12 == 1:
                print(f"{at:5.0f} s  {points[-1][1]:7.1f} MiB  {received(query) - before:,} rows", flush=True)
            time.sleep(EVERY)
        came = received(query) - before
        cost = (cpu(pid) - spent) / came * 1e6
    finally:
        sender.terminate()
        sender.wait()
        query.stop()
    kept = [point for point in points if point[0] >= warm_up]
    sizes = [size for _, size in kept]
    print(
        f"{came / at:,.0f} messages/s of {rate:,} asked for, {minutes:g} min, load {os.getloadavg()[1]:.1f} on "
        f"{os.cpu_count()} cores; {cost:.1f} us of its processor time a message; resident {min(sizes):.1f} to {max(sizes):.1f} MiB after {warm_up:g} s, "
        f"growing by {slope(kept):+.2f} MiB a minute"
    )
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--warm-up", type=float, default=60, help="seconds that do not count")
    given = parser.parse_args()
    if given.minutes * 60 < given.warm_up + 2 * EVERY:
        parser.error("the warm-up leaves nothing to look at: give more minutes, or --warm-up")
    folder = Path(tempfile.mkdtemp(prefix="bench-spark-"))
    bench = Bench(0, folder)
    try:
        watch(bench, rate=given.rate, minutes=given.minutes, warm_up=given.warm_up)
    finally:
        bench.spark.stop()
        bench.peer.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
