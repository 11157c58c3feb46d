"""AMQP 0-9-1: our client beside pika and aio-pika, and our container beside RabbitMQ 4."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.job import Job
from bench.lab import delete_queue, new_queue
from bench.processes import Server, run_with, serve
from bench.registry import Figures, Gate, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

CLIENTS = {"ours": "ours091", "pika": "pika", "aio-pika": "aio-pika"}
CLIENT = "client us"
BODY = 100


def _clients(lab: Lab) -> dict[str, str]:
    return {who: program for who, program in CLIENTS.items() if who == "ours" or lab.has("pika")}


def _broker(lab: Lab, stack: ExitStack) -> Server:
    """RabbitMQ, or where it is not, ours: for a client, it is all the same."""
    if lab.has("rabbitmq4"):
        return lab.rabbitmq()
    return stack.enter_context(serve("--dialect", "0-9-1"))


def _client(name: str, role: str, about: str, count: int, gates: tuple[Gate, ...]) -> None:
    @row(f"091-{name}", about, peers=("pika", "rabbitmq4"), gates=gates)
    def measure(lab: Lab) -> Iterator[Callable[[], Figures]]:
        job_of = Job(role=role, count=lab.count(count), size=BODY)

        def once() -> Figures:
            found: Figures = {}
            for who, program in _clients(lab).items():
                queue = new_queue(server)
                job = replace(job_of, address=queue)
                if role == "consume":
                    run_with(server, ("ours091", Job(role="publish", count=job.count, address=queue)))
                (result,), _ = run_with(server, (program, job))
                found[who, CLIENT] = result["us"]
                delete_queue(server, queue)
            return found

        with ExitStack() as stack:
            server = _broker(lab, stack)
            yield once


def _beside_pika(least: float, compiled: float) -> tuple[Gate, ...]:
    return (Gate(top=("pika", CLIENT), bottom=("ours", CLIENT), least=least, compiled=compiled),)


_client(
    "publish",
    "publish",
    "Client of 0-9-1: 100 octets published without confirms, to RabbitMQ 4.",
    20_000,
    (),
)
_client(
    "publish-confirms",
    "publish_window",
    "Client of 0-9-1: published with confirms, 1,000 under way; pika by callbacks, aio-pika by ``gather``.",
    20_000,
    _beside_pika(1.5, 4),
)
_client(
    "publish-each",
    "publish_each",
    "Client of 0-9-1: published one at a time, each confirm awaited.",
    2_000,
    _beside_pika(1, 1),
)
_client(
    "consume",
    "consume",
    "Client of 0-9-1: consumed with a prefetch of 1,000 and acknowledged; pika acknowledges 100 at a time by hand.",
    20_000,
    _beside_pika(1.5, 4),
)


@row(
    "091-server",
    "pika publishes with confirms and consumes, through our container and through RabbitMQ 4; if pika is missing, our client does.",
    peers=("pika", "rabbitmq4"),
    gates=(
        Gate(top=("ours", "messages a second"), bottom=("RabbitMQ 4", "messages a second"), least=1.5),
        Gate(top=("ours", "server us"), bottom=("RabbitMQ 4", "server us"), most=1),
    ),
    quiet=True,
)
def _server(lab: Lab) -> Iterator[Callable[[], Figures]]:
    program = "pika" if lab.has("pika") else "ours091"
    count = lab.count(20_000)

    def measure() -> Figures:
        found: Figures = {}
        for who, server in servers.items():
            queue = new_queue(server)
            sides = [
                (program, Job(role=role, count=count, size=BODY, address=queue))
                for role in ("consume", "publish_window")
            ]
            (received, _), taken = run_with(server, *sides)
            found |= {
                (who, "messages a second"): received["a second"],
                (who, "server us"): taken / count * 1e6,
            }
            delete_queue(server, queue)
        return found

    with ExitStack() as stack:
        servers = {"ours": stack.enter_context(serve("--dialect", "0-9-1"))}
        if lab.has("rabbitmq4"):
            servers["RabbitMQ 4"] = lab.rabbitmq()
        yield measure
