"""Celery over AMQP 1.0 by ``trio_amqp10.kombu``, beside Celery over 0-9-1 by py-amqp, at the same container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.job import Job
from bench.processes import run_with, serve
from bench.registry import Figures, Gate, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

SCHEMES = {"amqp10": "amqp10", "py-amqp": "pyamqp"}


@row(
    "celery",
    "Tasks of Celery a second, with results by ``rpc``, one worker (``solo``), and each message confirmed.",
    gates=(Gate(top=("amqp10", "a second"), bottom=("py-amqp", "a second"), least=0.8),),
)
def measure(lab: Lab) -> Iterator[Callable[[], Figures]]:
    count = lab.count(2_000)
    with serve("--dialect", "0-9-1", "--management") as server:

        def once() -> Figures:
            return {
                (who, what): value
                for who, scheme in SCHEMES.items()
                for what, value in run_with(server, ("celery", Job(role=scheme, count=count)))
                .results[0]
                .items()
                if what == "a second"
            }

        yield once
