"""Through a queue of ``amqp10 serve``, beside RabbitMQ 4, with our client at both ends of both."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bench.job import Job, Kind
from bench.lab import delete_queue, new_queue
from bench.processes import Server, run_with, serve
from bench.registry import Figures, Gate, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

SERVER, RATE = "server us", "messages a second"
RABBITMQ = "RabbitMQ 4"
MIB = 1024 * 1024


class Queue(NamedTuple):
    """A queue of a server; ``who`` has it in the table."""

    who: str
    server: Server
    address: str


def through(queue: Queue, job: Job) -> Figures:
    """A sender and a receiver at once; messages a second as the receiver sees them."""
    job = replace(job, address=queue.address)
    (received, sent), server = run_with(
        queue.server, ("ours", replace(job, role="receive")), ("ours", replace(job, role="send"))
    )
    return {
        (queue.who, RATE): received["a second"],
        (queue.who, SERVER): server / job.count * 1e6,
        (queue.who, "sender us"): sent["us"],
        (queue.who, "receiver us"): received["us"],
    }


def _ours(stack: ExitStack, *, store: bool = False, who: str = "ours") -> Queue:
    return Queue(who, stack.enter_context(serve(store=store)), "bench")


def _theirs(lab: Lab, stack: ExitStack, *, kind: str | None = None, who: str = RABBITMQ) -> list[Queue]:
    if not lab.has("rabbitmq4"):
        return []
    server = lab.rabbitmq()
    name = new_queue(server, kind=kind)
    stack.callback(delete_queue, server, name)
    return [Queue(who, server, f"/queues/{name}")]


def _both_ways(name: str, about: str, message: Kind, gates: tuple[Gate, ...]) -> None:
    @row(name, about, peers=("rabbitmq4",), gates=gates, quiet=True)
    def measure(lab: Lab) -> Iterator[Callable[[], Figures]]:
        job = Job(role="", count=lab.count(30_000), message=message, durable=False)
        with ExitStack() as stack:
            queues = [_ours(stack), *_theirs(lab, stack)]
            yield lambda: {key: each for queue in queues for key, each in through(queue, job).items()}


_both_ways(
    "queue-full",
    "Full message, transient, through a queue in memory: in and out at once.",
    "full",
    (
        Gate(top=("ours", RATE), bottom=(RABBITMQ, RATE), least=3),
        Gate(top=("ours", SERVER), most=6.6),
    ),
)
_both_ways(
    "queue-bytes",
    "Octets alone, through a queue in memory: in and out at once.",
    "bytes",
    (Gate(top=("ours", SERVER), most=5.5),),
)


@row(
    "queue-in-out",
    "Full message, transient: all into the queue first, then all out of it.",
    peers=("rabbitmq4",),
    quiet=True,
)
def _in_out(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="send", count=lab.count(30_000), durable=False)

    def measure() -> Figures:
        found: Figures = {}
        for queue in queues:
            into = replace(job, address=queue.address)
            (sent,), taken_in = run_with(queue.server, ("ours", into))
            (received,), taken_out = run_with(
                queue.server, ("ours", replace(into, role="receive", hold=True))
            )
            found |= {
                (f"{queue.who}, in", RATE): sent["a second"],
                (f"{queue.who}, in", SERVER): taken_in / job.count * 1e6,
                (f"{queue.who}, out", RATE): received["a second"],
                (f"{queue.who}, out", SERVER): taken_out / job.count * 1e6,
            }
        return found

    with ExitStack() as stack:
        queues = [_ours(stack), *_theirs(lab, stack)]
        yield measure


@row(
    "queue-durable",
    "Full message, durable: our container with a store on the disk, beside classic and quorum queues of RabbitMQ.",
    peers=("rabbitmq4",),
    gates=(Gate(top=("ours", RATE), bottom=("RabbitMQ 4, quorum", RATE), least=1.8),),
    quiet=True,
)
def _durable(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="", count=lab.count(20_000))
    with ExitStack() as stack:
        queues = [
            _ours(stack, store=True),
            *_theirs(lab, stack, kind="classic", who="RabbitMQ 4, classic"),
            *_theirs(lab, stack, kind="quorum", who="RabbitMQ 4, quorum"),
        ]
        yield lambda: {key: each for queue in queues for key, each in through(queue, job).items()}


@row(
    "queue-transactional",
    "Full message, sent and accepted in transactions of 100 at both ends; RabbitMQ has none in AMQP 1.0.",
    quiet=True,
)
def _transactional(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="", count=lab.count(20_000), batch=100, durable=False)

    def measure() -> Figures:
        return through(in_memory, job) | through(stored, replace(job, durable=True))

    with ExitStack() as stack:
        in_memory = _ours(stack, who="in memory")
        stored = _ours(stack, store=True, who="durable, in a store")
        yield measure


@row(
    "queue-lone",
    "One durable message at a time: from ``send`` to ``accepted``, which is one commit to the disk.",
    peers=("rabbitmq4",),
    quiet=True,
)
def _lone(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="ping", count=lab.count(400))

    def measure() -> Figures:
        found: Figures = {}
        for queue in queues:
            (times,), _ = run_with(queue.server, ("ours", replace(job, address=queue.address)))
            found |= {(queue.who, what): figure for what, figure in times.items()}
        return found

    with ExitStack() as stack:
        queues = [
            _ours(stack, store=True),
            *_theirs(lab, stack, kind="classic", who="RabbitMQ 4, classic"),
            *_theirs(lab, stack, kind="quorum", who="RabbitMQ 4, quorum"),
        ]
        yield measure


SIZES = {100: 20_000, 1_000: 20_000, 10_000: 8_000, 100_000: 1_500, 1_000_000: 150}
"""Octets of a body, and messages of that size."""


def _by_size(name: str, about: str, *, ours: bool) -> None:
    @row(name, about, peers=() if ours else ("rabbitmq4",), quiet=True, curve="octets of a body")
    def measure(lab: Lab) -> Iterator[Callable[[], Figures]]:
        def once() -> Figures:
            found: Figures = {}
            for queue in queues:
                for size in lab.points(tuple(SIZES)):
                    job = Job(role="", count=lab.count(SIZES[size], 20), size=size, durable=False)
                    figures = through(queue, job)
                    rate = figures[queue.who, RATE]
                    found |= {
                        (str(size), RATE): rate,
                        (str(size), "MB a second"): rate * size / 1e6,
                        (str(size), SERVER): figures[queue.who, SERVER],
                    }
            return found

        with ExitStack() as stack:
            queues = [_ours(stack)] if ours else _theirs(lab, stack)
            yield once


_by_size(
    "queue-sizes",
    "Full message through a queue of one container in memory, by the size of its body.",
    ours=True,
)
_by_size("queue-sizes-rabbitmq", "The same through a classic queue of RabbitMQ 4.", ours=False)
