"""Curves: what a message costs when there are many links, connections, or messages in the queue."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.job import Job
from bench.lab import delete_queue, new_queue
from bench.processes import run_pair, run_with, serve
from bench.registry import Figures, Gate, row

from .queues import MIB, Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

LINKS = (1, 100, 1_000, 10_000)
CONNECTIONS = (1, 10, 100, 1_000)
SUBSCRIBERS = (10, 100, 1_000)
DEPTHS = (1_000, 10_000, 100_000, 1_000_000)
IDLE, BUSY = "one of them busy", "all by turns"
EACH = "server us a delivery"


def _flat(points: tuple[int, ...], *what: str) -> tuple[Gate, ...]:
    """The last point over the first."""
    return tuple(_at_most(points, each, 1.2) for each in what)


def _at_most(points: tuple[int, ...], what: str, most: float) -> Gate:
    return Gate(top=(str(points[-1]), what), bottom=(str(points[0]), what), most=most)


@row(
    "growth-links",
    "Octets alone, on one connection with many links: one link carries all, or they take turns.",
    gates=_flat(LINKS, *(f"{side}, {how}" for how in (IDLE, BUSY) for side in ("sender us", "receiver us"))),
    curve="links",
)
def _links(lab: Lab) -> Iterator[Callable[[], Figures]]:
    def measure() -> Figures:
        found: Figures = {}
        for whole in lab.points(LINKS):
            links = lab.count(whole, 2)
            job = Job(role="", count=lab.count(20_000), message="bytes", links=links, credit=100)
            for how, busy in ((IDLE, 1), (BUSY, links)):
                sent, received = run_pair("ours", "ours", replace(job, busy=busy))
                found[str(whole), f"sender us, {how}"] = sent["us"]
                found[str(whole), f"receiver us, {how}"] = received["us"]
        return found

    yield measure


@row(
    "growth-connections",
    "Octets alone, into and out of a queue of ``amqp10 serve``: many connections send, one receives.",
    gates=(*_flat(CONNECTIONS, f"server us, {IDLE}"), _at_most(CONNECTIONS, f"server us, {BUSY}", 4.5)),
    curve="connections",
)
def _connections(lab: Lab) -> Iterator[Callable[[], Figures]]:
    def measure() -> Figures:
        found: Figures = {}
        for whole in lab.points(CONNECTIONS):
            connections = lab.count(whole, 2)
            job = Job(role="", count=lab.count(20_000), message="bytes", connections=connections)
            for how, busy in ((IDLE, 1), (BUSY, connections)):
                sides = (
                    ("ours", replace(job, role="receive")),
                    ("ours", replace(job, role="send", busy=busy)),
                )
                found[str(whole), f"server us, {how}"] = run_with(server, *sides).server / job.count * 1e6
        return found

    with serve() as server:
        yield measure


@row(
    "growth-subscribers",
    "Octets alone, to a topic of ``amqp10 serve`` whose subscribers are on one connection: each of them gets every message.",
    gates=(_at_most(SUBSCRIBERS, EACH, 1.1),),
    curve="subscribers",
)
def _subscribers(lab: Lab) -> Iterator[Callable[[], Figures]]:
    def measure() -> Figures:
        found: Figures = {}
        for whole in lab.points(SUBSCRIBERS):
            links = lab.count(whole, 2)
            sent = max(lab.count(100_000) // links, 1)
            job = Job(role="", count=sent, message="bytes", links=1)
            sides = (
                ("ours", replace(job, role="subscribe", links=links, count=sent * links)),
                ("ours", replace(job, role="send")),
            )
            found[str(whole), EACH] = run_with(server, *sides).server / (sent * links) * 1e6
        return found

    with serve("--topic", "bench") as server:
        yield measure


def _depth(name: str, about: str, depths: tuple[int, ...], *, ours: bool) -> None:
    gates = _flat(depths, "server us") if ours else ()

    @row(
        name,
        about,
        peers=() if ours else ("rabbitmq4",),
        gates=gates,
        curve="messages in the queue",
    )
    def measure(lab: Lab) -> Iterator[Callable[[], Figures]]:
        with ExitStack() as stack:
            queues: dict[str, Queue] = {}
            held: dict[str, float] = {}
            for whole in lab.points(depths):
                if ours:
                    server, name = stack.enter_context(serve("--memory-limit", "none")), "bench"
                elif lab.has("rabbitmq4"):
                    server = lab.rabbitmq()
                    queue = new_queue(server)
                    stack.callback(delete_queue, server, queue)
                    name = f"/queues/{queue}"
                else:
                    break
                before = server.resident()
                count = lab.count(whole, 100)
                run_with(server, ("ours", Job(role="send", address=name, count=count, message="bytes")))
                held[str(whole)] = (server.resident() - before) / MIB
                queues[str(whole)] = Queue(str(whole), server, name)
            job = Job(role="", count=lab.count(20_000), message="bytes")

            def once() -> Figures:
                found: Figures = {}
                for depth, (_, server, address) in queues.items():
                    sides = [
                        ("ours", replace(job, role=role, address=address)) for role in ("receive", "send")
                    ]
                    taken = run_with(server, *sides)
                    found[depth, "server us"] = taken.server / job.count * 1e6
                    found[depth, "MiB"] = held[depth]
                return found

            yield once


_depth(
    "growth-depth",
    "Octets alone, into and out of a queue of ``amqp10 serve`` that already holds many messages.",
    DEPTHS,
    ours=True,
)
_depth(
    "growth-depth-rabbitmq",
    "The same with a classic queue of RabbitMQ 4, which keeps most of its messages on the disk.",
    (DEPTHS[0], DEPTHS[-1]),
    ours=False,
)
