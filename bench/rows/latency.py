"""One message at a time: how long it takes, and beside a stream with nothing on it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench.job import Job
from bench.processes import run_pair
from bench.registry import Figures, Gate, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

ABOUT = "Full message, one at a time: from ``send`` to its outcome, both processes on {}, beside as many octets on bare trio streams."


def _latency(name: str, where: str, cores: tuple[int, int], most: float) -> None:
    gate = Gate(top=("ours", "p50 us"), bottom=("bare streams", "p50 us"), most=most)

    @row(name, ABOUT.format(where), gates=(gate,), quiet=True)
    def measure(lab: Lab) -> Iterator[Callable[[], Figures]]:
        job = Job(role="", count=lab.count(4_000), size=100)
        bare = Job(role="", count=lab.count(4_000), size=250)  # as many as frame and sections have

        def once() -> Figures:
            sent, _ = run_pair("ours", "ours", job, roles=("ping", "receive"), cores=cores)
            alone, _ = run_pair("bare", "bare", bare, roles=("ping", "pong"), cores=cores)
            return {("ours", what): figure for what, figure in sent.items()} | {
                ("bare streams", what): figure for what, figure in alone.items()
            }

        yield once


_CORES = sorted(os.sched_getaffinity(0))
_latency(
    "latency-one-core",
    "one processor",
    (_CORES[0], _CORES[0]),
    2,
)
_latency("latency-two-cores", "two processors", (_CORES[0], _CORES[-1]), 3.6)
