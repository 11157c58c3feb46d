"""The codec alone: a message made and encoded, and one of which everything is decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.job import Job
from bench.processes import run_alone
from bench.registry import Figures, Gate, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

ENCODE, DECODE = "make and encode us", "decode us"


@row(
    "codec-full",
    "Full message of 100 octets: make and encode; decode and read every field. Beside Proton's ``Message`` and Azure's client.",
    peers=("proton", "azure"),
    gates=(
        Gate(top=("azure", ENCODE), bottom=("ours", ENCODE), least=8, compiled=11),
        Gate(top=("azure", DECODE), bottom=("ours", DECODE), least=2, compiled=3),
    ),
)
def _codec(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="codec", count=lab.count(20_000))

    def measure() -> Figures:
        found: Figures = {}
        for who in ("ours", *filter(lab.has, ("proton", "azure"))):
            program = "codec" if who == "ours" else who
            found |= {(who, what): figure for what, figure in run_alone(program, job).items()}
        return found

    yield measure


@row(
    "codec-translation",
    "A message of 0-9-1 with seven properties, five headers and 100 octets that becomes one of 1.0, and back.",
    gates=(Gate(top=("0-9-1 to 1.0", "us"), most=6),),
)
def _translation(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="translate", count=lab.count(20_000))
    yield lambda: {(way, "us"): figure for way, figure in run_alone("codec", job).items()}
