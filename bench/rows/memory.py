"""What things hold in memory: Python's blocks, and the resident set as an operator sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import memory_amqp091
from bench.job import Job
from bench.processes import run_alone
from bench.registry import Figures, Gate, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

PYTHON, RESIDENT = "octets of Python's blocks", "octets resident"
COUNTS = {"links": 10_000, "connections": 400, "unsettled": 10_000, "queued": 20_000}
NAMES = {
    "links": "link, an end",
    "connections": "idle connection, an end",
    "unsettled": "unsettled delivery beyond its payload, an end",
    "queued": "message in a queue beyond its payload",
}


def _at_most(role: str, octets: int) -> Gate:
    return Gate(top=(NAMES[role], PYTHON), most=octets)


@row(
    "memory",
    "Octets of a link, of an idle connection, of an unsettled delivery, and of a message in a queue.",
    gates=(_at_most("links", 1536), _at_most("connections", 12 * 1024), _at_most("unsettled", 512)),
)
def _memory(lab: Lab) -> Iterator[Callable[[], Figures]]:
    def measure() -> Figures:
        found: Figures = {}
        for role, whole in COUNTS.items():
            for what, traced in ((PYTHON, 1), (RESIDENT, 0)):
                result = run_alone("held", Job(role=role, count=lab.count(whole, 10), size=traced))
                found[NAMES[role], what] = result["octets"]
        return found

    yield measure


@row(
    "memory-091",
    "Octets of a connection with a channel, of a channel and of a consumer of 0-9-1 at our container.",
    gates=tuple(Gate(top=(kind, PYTHON), most=octets) for kind, octets in memory_amqp091.GOALS.items()),
)
def _memory_091(lab: Lab) -> Iterator[Callable[[], Figures]]:
    def measure() -> Figures:
        more = lab.count(memory_amqp091.MORE, 50)
        return {(kind, PYTHON): memory_amqp091.measure(kind, more=more)[0] for kind in memory_amqp091.GOALS}

    yield measure
