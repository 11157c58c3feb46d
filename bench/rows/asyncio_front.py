"""Sending from asyncio: through ``trio_amqp10.aio``, beside trio itself and aio-pika, to the same container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.job import Job
from bench.lab import new_queue
from bench.processes import run_with, serve
from bench.registry import Figures, Gate, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

WHERE = {"trio": "trio", "aio": "aio", "aio as a guest": "guest"}
PIKA = {"each us": "publish_each", "window us": "publish_window"}


@row(
    "aio",
    "Sending to a queue from asyncio: processor time of the sender, with ``send`` one at a time, and with ``transmit`` and one ``flush``.",
    peers=("pika",),
    gates=(
        Gate(top=("aio", "each us"), bottom=("trio", "each us"), most=1.6),
        Gate(top=("aio", "window us"), bottom=("trio", "window us"), most=1.5),
    ),
)
def measure(lab: Lab) -> Iterator[Callable[[], Figures]]:
    counts = {"each us": lab.count(3_000), "window us": lab.count(10_000)}
    with serve("--dialect", "0-9-1") as server:

        def sent(program: str, role: str, messages: int) -> float:
            job = Job(role=role, address=new_queue(server), count=messages, size=100, credit=100)
            return run_with(server, (program, job)).results[0]["us"]

        def once() -> Figures:
            figures = {
                (who, what): sent("aio", f"{role}-{what.partition(' ')[0]}", messages)
                for what, messages in counts.items()
                for who, role in WHERE.items()
            }
            if lab.has("pika"):
                for what, role in PIKA.items():
                    figures["aio-pika", what] = sent("aio-pika", role, counts[what])
            return figures

        yield once
