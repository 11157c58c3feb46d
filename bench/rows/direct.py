"""Two processes without a broker: processor time of each, for each message."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench.job import Job, Kind
from bench.processes import run_pair
from bench.registry import Figures, Gate, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

SENDER, RECEIVER = "sender us", "receiver us"


def compare(job: Job, whom: tuple[str, ...]) -> Callable[[], Figures]:
    """A round in which each library sends to itself."""

    def measure() -> Figures:
        found: Figures = {}
        for who in whom:
            sent, received = run_pair(who, who, job)
            found |= {
                (who, SENDER): sent["us"],
                (who, RECEIVER): received["us"],
                (who, "messages a second"): received["a second"],
            }
        return found

    return measure


def whom(lab: Lab, *peers: str) -> tuple[str, ...]:
    """Ours, and those of the others that are there."""
    return ("ours", *filter(lab.has, peers))


def beside(peer: str, least: tuple[float, float], compiled: tuple[float, float]) -> tuple[Gate, Gate]:
    """How many times a peer's processor time ours has to be at the sender, and at the receiver."""
    return (
        Gate(top=(peer, SENDER), bottom=("ours", SENDER), least=least[0], compiled=compiled[0]),
        Gate(top=(peer, RECEIVER), bottom=("ours", RECEIVER), least=least[1], compiled=compiled[1]),
    )


def _plain(
    name: str,
    about: str,
    message: Kind,
    *,
    size: int = 100,
    count: int = 20_000,
    gates: tuple[Gate, ...] = (),
    tls: bool = False,
) -> None:
    """A row of one message, beside Proton."""

    @row(name, about, peers=("proton",), gates=gates)
    def measure(lab: Lab) -> Iterator[Callable[[], Figures]]:
        job = Job(role="", count=lab.count(count), message=message, size=size)
        yield compare(lab.secured(job) if tls else job, whom(lab, "proton"))


_plain(
    "direct-full",
    "Full message of 100 octets, at least once, credit 1,000.",
    "full",
    gates=beside("proton", (8, 8), (12, 10)),
)
_plain("direct-id", "The same with a message-id alone.", "id", gates=beside("proton", (10, 9), (10, 9)))
_plain(
    "direct-bytes",
    "The same with octets alone: the cheapest message there is.",
    "bytes",
    gates=beside("proton", (18, 14), (18, 14)),
)
_plain(
    "direct-10KiB",
    "Full message of 10 KiB.",
    "full",
    size=10 * 1024,
    count=6_000,
    gates=beside("proton", (14, 14), (20, 20)),
)
_plain("direct-1MiB", "Full message of 1 MiB, in memory at both ends.", "full", size=1024 * 1024, count=120)
_plain("direct-tls", "Full message of 100 octets over TLS.", "full", tls=True)


@row(
    "direct-awaited",
    "Octets alone: each delivery kept and its outcome awaited, beside one ``flush()`` for all.",
    gates=(Gate(top=("each outcome", SENDER), bottom=("flush", SENDER), most=1.4),),
)
def _awaited(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="", count=lab.count(20_000), message="bytes")

    def measure() -> Figures:
        found: Figures = {}
        for who, one in (("flush", job), ("each outcome", replace(job, outcomes="each"))):
            sent, received = run_pair("ours", "ours", one)
            found |= {(who, SENDER): sent["us"], (who, RECEIVER): received["us"]}
        return found

    yield measure


@row("direct-guarantees", "Full message by each guarantee; Proton has no exactly-once.", peers=("proton",))
def _guarantees(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="", count=lab.count(20_000))

    def measure() -> Figures:
        found: Figures = {}
        for guarantee in ("at-most-once", "at-least-once", "exactly-once"):
            for who in whom(lab, "proton"):
                if who == "proton" and guarantee == "exactly-once":
                    continue
                sent, received = run_pair(who, who, replace(job, guarantee=guarantee))
                name = f"{who}, {guarantee}"
                found |= {(name, SENDER): sent["us"], (name, RECEIVER): received["us"]}
        return found

    yield measure


@row(
    "direct-rate",
    "Full message, at least once: messages a second of two processes, beside rhea (JavaScript) and Proton (C).",
    peers=("rhea", "proton"),
    gates=(
        Gate(top=("ours", "messages a second"), bottom=("rhea", "messages a second"), least=2, compiled=5),
    ),
    quiet=True,
)
def _rate(lab: Lab) -> Iterator[Callable[[], Figures]]:
    yield compare(Job(role="", count=lab.count(30_000)), whom(lab, "rhea", "proton"))


MIB = 1024 * 1024
RATE = "MiB a second"


@row(
    "stream-1MiB",
    "Bodies of 1 MiB by ``sender.stream()``, beside a bare trio stream that carries as many octets.",
    gates=(
        Gate(top=("ours", RATE), bottom=("bare stream", RATE), least=0.4),
        Gate(top=("ours", SENDER), bottom=("bare stream", SENDER), most=1.7, compiled=1.4),
    ),
    quiet=True,
)
def _stream(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="", count=lab.count(200, 4), size=MIB)

    def measure() -> Figures:
        found: Figures = {}
        for who, program, roles in (
            ("ours", "ours", ("stream", "drink")),
            ("bare stream", "bare", ("source", "sink")),
        ):
            sent, received = run_pair(program, program, job, roles=roles)
            rate = {(who, RATE): sent["a second"] * job.size / MIB}
            found |= {(who, SENDER): sent["us"], (who, RECEIVER): received["us"]} | rate
        return found

    yield measure


@row(
    "stream-1GiB",
    "One message of 1 GiB by ``sender.stream()``: how much the memory of each process grows meanwhile.",
    gates=(
        Gate(top=("sender", "MiB"), most=16),
        Gate(top=("receiver", "MiB"), most=16),
    ),
)
def _huge(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="", count=1, size=lab.count(1024, 64) * MIB)

    def measure() -> Figures:
        sent, received = run_pair("ours", "ours", job, roles=("stream", "drink"))
        return {("sender", "MiB"): sent["grown"] / MIB, ("receiver", "MiB"): received["grown"] / MIB}

    yield measure
