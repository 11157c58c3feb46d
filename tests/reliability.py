"""``python -m tests.reliability``: the page about reliability, from the figures that runs have left in ``docs/results``.

No figure is written by hand: the page reports a run without figures as missing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from .conformance.rst import ROOT, between, table, title
from .results import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PAGE: Final = ROOT / "docs" / "reference" / "reliability.rst"
README: Final = ROOT / "README.md"

_HEAD: Final = """\
.. Made by ``python -m tests.reliability`` of ``docs/results``: not to be edited.

"""

_INTRODUCTION: Final = """\
This page lists the attempts to break this library, and their results. Each figure comes from a file in ``docs/results`` that a
run wrote; you can repeat each command. :doc:`../threat-model` describes what an attacker can and cannot do, and :doc:`conformance`
lists the requirements of the standard with their tests.

"""

_Rows = list[tuple[str, str]]


def _count(number: float) -> str:
    return f"{number:,}"


def _fuzz(figures: dict[str, Any]) -> str:
    rows = [
        (each["target"], _count(each["attempts"]), _count(each["measured"]), str(each["failures"]))
        for each in figures["targets"]
    ]
    rows.append(
        (
            "**all**",
            *(
                _count(sum(each[key] for each in figures["targets"]))
                for key in ("attempts", "measured", "failures")
            ),
        )
    )
    commits: dict[str, int] = {}
    for each in figures["targets"]:
        for commit, count in each.get("commits", {}).items():
            commits[commit] = commits.get(commit, 0) + count
    said = ", ".join(f"{_count(count)} at {commit}" for commit, count in commits.items())
    page = table(("target", "attempts", "of these measured", "failures"), rows, (40, 20, 20, 20))
    return f"{page}\nAttempts by commit: {said}.\n" if said else page


def _machines(figures: dict[str, Any]) -> str:
    rows = [
        (
            run["wire"],
            _count(run["conversations"]),
            _count(run["steps"]),
            "no" if run["failure"] is None else "yes",
        )
        for run in figures["runs"]
    ]
    return table(("wire", "conversations", "steps", "breach"), rows, (25, 25, 25, 25))


def _mutants(figures: dict[str, Any]) -> str:
    rows = [
        (
            each["name"],
            _count(each["mutants"]),
            f"{each['score']} %",
            str(each["reasoned"]),
            str(each["letters"]),
            str(len(each["survivors"])),
            each["commit"],
        )
        for each in figures["modules"]
    ]
    head = ("modules", "mutants", "noticed", "change nothing", "letters of a text", "left", "commit")
    return table(head, rows, (28, 12, 12, 12, 12, 12, 12))


def _conformance(figures: dict[str, Any]) -> str:
    head = ("protocol", "statements", "with a mutant", "mutants", "killed", "plain mutants", "of these left")
    keys = ("statements", "with_mutant", "mutants", "killed", "plain", "plain_left")
    rows = [(each["page"], *(_count(each[key]) for key in keys)) for each in figures["pages"]]
    return table(head, rows, (22, 13, 13, 13, 13, 13, 13))


def _pairs(rows: Iterable[tuple[str, Any]]) -> str:
    return table(("", "figure"), [(name, str(value)) for name, value in rows], (60, 40))


def _kills(figures: dict[str, Any]) -> str:
    return _pairs((name.replace("_", " "), _count(value)) for name, value in figures.items())


def _kills_dialects(figures: dict[str, Any]) -> str:
    keys = (
        "dialect",
        "kills",
        "attempted",
        "accepted",
        "lost",
        "duplicated",
        "unexplained",
        "unexpected",
        "recovered",
    )
    rows = [[run["dialect"], *(_count(run[key]) for key in keys[1:])] for run in figures["runs"]]
    return table(keys, rows, (16, *(10,) * 8))


def _spark_kills(figures: dict[str, Any]) -> str:
    head = (
        "peer",
        "spool",
        "distinguished by",
        "into",
        "killed",
        "sent",
        "missing",
        "came twice",
        "of these may",
        "commit",
    )
    rows = [
        (
            run["peer"],
            run["spool"],
            run["dedup"],
            run["sink"],
            ", ".join(f"{victim} {count}" for victim, count in run["victims"].items()),
            *map(_count, (run["sent"], run["missing"], run["repeated"], run["allowed"])),
            run["commit"],
        )
        for run in figures["runs"]
    ]
    return table(head, rows, (10, 10, 10, 8, 22, 10, 8, 8, 8, 10))


def _comebacks(figures: dict[str, Any]) -> str:
    keys = ("guarantee", "breaks", "attempted", "accepted", "lost", "missing", "duplicated", "raised")
    return table(keys, [[str(run[key]) for key in keys] for run in figures["runs"]], (16, *(12,) * 7))


def _steady(figures: dict[str, Any]) -> str:
    grows, errors = figures["per_hour"], figures["standard_errors"]
    return _pairs(
        [
            ("minutes", figures["minutes"]),
            ("messages", _count(figures["messages"])),
            ("connections", _count(figures["connections"])),
            ("of these cut", _count(figures["cut"])),
            (
                "memory, KiB an hour",
                f"{grows['resident'] / 1024:,.1f} ± {errors['resident'] / 1024:,.1f}",
            ),
            ("file descriptors an hour", f"{grows['descriptors']} ± {errors['descriptors']}"),
            ("tasks an hour", f"{grows['tasks']} ± {errors['tasks']}"),
            ("long enough to be judged", "yes" if figures["judged"] else "no"),
        ]
    )


def _hostile(figures: dict[str, Any]) -> str:
    return _pairs(
        [
            ("hostile peers, of ten kinds", _count(figures["hostile"])),
            ("good peers", _count(figures["good"])),
            ("calls of these that raised", figures["raised"]),
            ("99th of 100 messages of the good alone, ms", figures["alone"]["p99_ms"]),
            ("the same beside the hostile, ms", figures["beside"]["p99_ms"]),
            (
                "processor time of the server meanwhile, 99th of 100, alone, ms",
                figures["alone"]["worked_p99_ms"],
            ),
            ("the same beside the hostile, ms", figures["beside"]["worked_p99_ms"]),
            ("load average of the machine before", figures["load"]),
            ("memory for each hostile peer, KiB", round(figures["per_hostile"] / 1024, 1)),
        ]
    )


def _flooders(figures: dict[str, Any]) -> str:
    head = ("kind", "p99 alone, ms", "p99 beside, ms", "worked alone, ms", "worked beside, ms", "raised")
    rows: list[tuple[str, ...]] = []
    for run in figures["kinds"]:
        alone, beside = run["alone"], run["beside"]
        shown = (alone["p99_ms"], beside["p99_ms"], alone["worked_ms"], beside["worked_ms"])
        rows.append((run["kind"], *map(str, shown), str(alone["raised"] + beside["raised"])))
    measured = f"{figures['seconds']} s of each, at a load average of {figures['load']}:\n\n"
    return measured + table(head, rows, (20, 16, 16, 16, 16, 16))


def _repeat(figures: dict[str, Any]) -> str:
    alike: dict[tuple[str, int, bool], list[dict[str, Any]]] = {}
    for run in figures["runs"]:
        alike.setdefault((run["commit"], run["loops"], run["pauses"]), []).append(run)
    rows = [
        [
            commit,
            str(loops),
            "yes" if pauses else "no",
            str(min(run["load"] for run in runs)),
            str(len(runs)),
            str(sum(not run["good"] for run in runs)),
        ]
        for (commit, loops, pauses), runs in alike.items()
    ]
    head = ("commit", "busy loops beside", "pauses", "least load", "runs of all tests", "runs that failed")
    return table(head, rows, (15, 20, 15, 15, 20, 15))


_CHAPTERS: Final[dict[str, tuple[str, str, str, Callable[[dict[str, Any]], str]]]] = {
    "fuzz": (
        "Broken octets and hostile scripts",
        (
            "``make fuzz``. Each reader of octets, of all protocols, gets damaged octets. Scripts of up to four peers run"
            " against a whole container, with and without a store, and against a client. Each target gets a share of the"
            " time. The figures are totals of several runs. A failure is an exception that the documentation does not name,"
            " an error in the log, a lease without a holder, a good client that is not served afterwards, or too many steps"
            " or too much memory for the number of octets."
        ),
        "python -m tests.fuzz --total 20000000 --results docs/results/fuzz.json",
        _fuzz,
    ),
    "machines": (
        "Two engines back to back",
        (
            "Two engines of each protocol, connected to each other, take random steps. Neither may report an error of the"
            " other, and the counts of both must be equal. ``make test`` takes fewer steps."
        ),
        "python -m tests.machines --steps 200000 --results docs/results/machines.json",
        _machines,
    ),
    "mutants": (
        "Mutants",
        (
            "``make mutants``. For each small change of the code, a test must fail. Mutants that cannot change the behaviour"
            " have a reason in ``tests/mutants/reasons.toml``. Mutants that only change letters of a text for people are not"
            " counted, because tests check the meaning of such a text, not each letter."
        ),
        "python -m tests.mutants --results docs/results/mutants.json",
        _mutants,
    ),
    "conformance": (
        "Statements of the standards",
        (
            "``make conformance``. The behaviour of a statement is removed from the code, and one of the tests that the conformance"
            " page names for it must fail. A mutant that stands for several statements counts once. Plain mutants change"
            " the same lines by rule: each comparison, each branch, each call and each assignment in turn."
        ),
        "python -m tests.conformance.mutants --several --results docs/results/conformance.json",
        _conformance,
    ),
    "kills": (
        "SIGKILL under load",
        "``make soak``. A container with a store is killed repeatedly while clients send and receive messages, in transactions too.",
        "python -m tests.soak --kills 500 --results docs/results/kills.json",
        _kills,
    ),
    "kills_dialects": (
        "SIGKILL under the other protocols",
        (
            "``make soak``. A container with a store is killed repeatedly while clients of one protocol send durable messages. A"
            " confirm of 0-9-1, the commit of a transaction of 10.3, the answer to a message of AMQP/Fast and an outcome of the draft count"
            " as accepted. One of the publishers of 0-9-1 is pika. Each queue has a consumer of the protocol and one of 1.0,"
            " except for the draft, which is served instead of 1.0."
        ),
        "python -m tests.soak --kills 10 --dialects 0-9-1 10.3 amqp-fast 1.0-draft-2010 --results docs/results/kills_dialects.json",
        _kills_dialects,
    ),
    "spark_kills": (
        "SIGKILL under a Spark query",
        (
            "``make soak-spark``. A producer fills a queue, a query moves the messages into files or into another queue, and a process is"
            " killed: the JVM, the program (script), the Python worker that reads, the container or RabbitMQ, the process of a lane, or a"
            " separate ``amqp10 spool`` (program). With ``takeover`` each killed lane stays dead beside a query that goes on, and a lane with a new name joins."
            " An object store (store) is not killed, but refuses connections for up to eight seconds."
        ),
        "python -m tests.spark.kills --spool objects --peer stored --kills 120 --results docs/results/spark_kills.json",
        _spark_kills,
    ),
    "comebacks": (
        "Restored connections",
        "``make soak``. A sender and a receiver are opened once; servers are killed, transports are reset.",
        "python -m tests.soak.comebacks --breaks 500 --results docs/results/comebacks.json",
        _comebacks,
    ),
    "steady": (
        "An hour without a kill",
        "``make steady``. Samples of the resources of the serving process, and the slope of the second half.",
        "python -m tests.soak --minutes 60 --results docs/results/steady.json",
        _steady,
    ),
    "hostile": (
        "Hostile peers beside good ones",
        "``make hostile``. Each hostile peer attacks once a second.",
        "python -m tests.soak.hostile --hostile 1000 --good 100 --seconds 60 --results docs/results/hostile.json",
        _hostile,
    ),
    "flooders": (
        "One flooder beside one good peer",
        (
            "One flooder of each kind attacks without a pause. The figures are 99th percentiles of the round trip of a message,"
            " and of the processor time of the server during it, which does not depend on other work of the machine."
        ),
        "python -m tests.soak.flooders --seconds 3.5 --results docs/results/flooders.json",
        _flooders,
    ),
    "repeat": (
        "Repeated test runs",
        (
            "All tests run repeatedly on a busy machine: a test that fails in some runs is wrong. If there are no busy loops,"
            " other work kept the cores busy: runs of mutants, Spark queries that were killed, or all tests a second time. The"
            " load is an average over five minutes. With pauses, all processes of the tests are stopped for 0.3 to 0.7 s after"
            " every 0.2 to 0.6 s."
        ),
        "python -m tests.repeat --runs 20 --results docs/results/repeat.json",
        _repeat,
    ),
}


def render() -> str:
    """The page."""
    parts = [_HEAD, title("Reliability"), "\n", _INTRODUCTION]
    for kind, (name, about, command, chapter) in _CHAPTERS.items():
        parts += [title(name, "-"), "\n", about, "\n\n", f".. code-block:: text\n\n   {command}\n\n"]
        file = FOLDER / f"{kind}.json"
        if not file.exists():
            parts.append("No figures yet.\n\n")
            continue
        left = json.loads(file.read_text())
        assert left["kind"] == kind, file
        parts.append(
            f"{left['date']}, at {left['commit']}, Python {left['python']}, {left['cores']} cores:\n\n"
        )
        parts += [chapter(left["figures"]), "\n"]
    return "".join(parts).rstrip() + "\n"


def with_proofs(readme: str) -> str:
    """Return the README with the counts of the recorded runs between its marks."""
    pages = _figures("conformance")["pages"]
    statements, mutants, killed = (
        sum(page[key] for page in pages) for key in ("statements", "mutants", "killed")
    )
    kills = _figures("kills")
    noticed = f"Of {mutants:,} changes that each break one statement, the tests notice {killed:,}."
    killing = f"while a container with a store was killed {kills['kills']:,} times by SIGKILL: {kills['lost']:,} lost."
    made = (
        f"- [{statements:,} statements](docs/reference/conformance.rst) of five specifications, listed with the tests that show them. "
        f"{noticed}\n"
        f"- [{kills['accepted']:,} messages accepted](docs/reference/reliability.rst) {killing}\n"
    )
    marks = ("<!-- proofs: made by python -m tests.reliability -->\n", "<!-- /proofs -->\n")
    return between(readme, marks, made)


def _figures(kind: str) -> Any:
    return json.loads((FOLDER / f"{kind}.json").read_text())["figures"]


if __name__ == "__main__":
    PAGE.write_text(render())
    README.write_text(with_proofs(README.read_text()))
