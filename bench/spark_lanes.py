"""What receiving into lanes costs, in processor time a message: ``python -m bench.spark_lanes``.

A container in a process of its own has a full queue; one, then two lanes receive it, each in a process, as beside a driver. What counts is the
processor time of those processes, and, apart from it, that of the process that plans and releases batches (the driver's part, without Spark). So other work on the
machine matters little. For more lanes than were measured the rate is computed: lanes divided by the cost of one message in a lane, on as
many cores, if peer and disk keep up; and the driver's part shows from how many lanes on that would be the bound.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import results
from trio_amqp10.spark.backlog import Backlog
from trio_amqp10.spark.options import QueueOptions

from .spark import Peer
from .spark_sides import BODY

if TYPE_CHECKING:
    from collections.abc import Sequence

MEASURED = (1, 2)
COMPUTED = (4, 8)
EVERY = 0.2
"""Seconds between two batches."""


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has had."""
    spent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")


def lanes_of(parent: int) -> list[int]:
    """The processes of lanes that a process has started."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            below = int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == parent
            if below and b"lane_program" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue  # it has just ended
    return found


def wait_for_links(spool: Path, lanes: int) -> None:
    """Until every lane has a connection, as it says of itself, and has had time to attach its link."""
    while True:
        figures = [json.loads(file.read_text()) for file in spool.glob("lanes/*/metrics.json")]
        if len([each for each in figures if each["connections"]]) == lanes:
            break
        time.sleep(EVERY)
    time.sleep(1.0)


def receive(lanes: int, count: int, wide: bool, dedup: str) -> tuple[float, float]:
    """Microseconds a message, in the lanes and in whoever plans."""
    folder = Path(tempfile.mkdtemp(prefix="bench-lanes-"))
    peer = Peer()
    queue = {"url": peer.url, "address": "lanes"}
    parsed = QueueOptions.parse(
        {
            **queue,
            "spool": f"{folder}/spool",
            "lanes": str(lanes),
            "dedup": dedup,
            "reconnect.timeout": "5",
        }
    )
    options = replace(parsed, spool=f"file://{folder}/spool")  # a store has lanes, also if it is one
    backlog = Backlog(options)
    try:
        peer.order("fill", queue="lanes", count=0, wide=wide)
        peer.answer()
        at = backlog.low()
        backlog.receive(emptying=False)
        wait_for_links(folder / "spool", lanes)
        pids = lanes_of(os.getpid())
        assert len(pids) == lanes, "a lane has not started"
        for pid in pids:  # what is measured is a backlog, not how the queue is filled
            os.kill(pid, signal.SIGSTOP)
        peer.order("fill", queue="lanes", count=count, wide=wide)
        peer.answer()
        before = sum(map(cpu, pids))
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        received, planning = 0, 0.0
        while received < count:
            time.sleep(EVERY)
            backlog.check()
            began = time.thread_time()
            end = backlog.end(at)
            received += backlog.rows(at, end)
            backlog.slices(at, end)
            backlog.release(end)
            planning += time.thread_time() - began
            at = end
        time.sleep(EVERY)  # the last are settled
        spent = sum(map(cpu, pids)) - before
    finally:
        backlog.close()
        peer.end()
        shutil.rmtree(folder, ignore_errors=True)
    return spent / count * 1e6, planning / count * 1e6


def compare(count: int, rounds: int, wide: bool, dedup: str) -> list[dict[str, Any]]:
    """A row for each number of lanes; what is compared takes turns."""
    found: dict[int, list[tuple[float, float]]] = {lanes: [] for lanes in MEASURED}
    for _ in range(rounds):
        for lanes in MEASURED:
            found[lanes].append(receive(lanes, count, wide, dedup))
    rows: list[dict[str, Any]] = []
    for lanes, each in found.items():
        costs, plans = zip(*each, strict=True)
        rows.append(row(lanes, costs, plans, "measured"))
    costs, plans = zip(*found[MEASURED[-1]], strict=True)
    return rows + [row(lanes, costs, plans, "computed") for lanes in COMPUTED]


def row(lanes: int, costs: Sequence[float], plans: Sequence[float], how: str) -> dict[str, Any]:
    cost, plan = statistics.median(costs), statistics.median(plans)
    return {
        "lanes": lanes,
        "how": how,
        "us a message in a lane": round(cost, 2),
        "least": round(min(costs), 2),
        "most": round(max(costs), 2),
        "us a message in the driver": round(plan, 2),
        "messages/s on as many cores (computed)": round(lanes / cost * 1e6),
        "messages/s that one driver can plan (computed)": round(1e6 / plan),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    results.add_option(parser)
    given = parser.parse_args()
    figures: dict[str, Any] = {"count": given.count, "rounds": given.rounds, "octets": BODY}
    for dedup in ("none", "message-id"):
        rows = compare(given.count, given.rounds, True, dedup)
        figures[f"dedup={dedup}"] = rows
        print(
            f"dedup={dedup}, {given.count:,} messages of {BODY} octets and some properties, medians of {given.rounds}"
        )
        for each in rows:
            print("  " + ", ".join([f"{name} {value}" for name, value in each.items()]), flush=True)
    results.write(given.results, "spark-lanes", figures)


if __name__ == "__main__":
    main()
