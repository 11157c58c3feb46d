"""``python -m bench.page``: write the page about speed, with its plots.

It also writes the figures of the README and of the page about the limits of one process. All figures come from
``docs/results/speed.json``, and none is written by hand: a row that was not measured has no figures on the page.
"""

from __future__ import annotations

import argparse
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from tests.conformance.rst import between, table, title

from . import rows
from .processes import ROOT
from .registry import ROWS
from .results import FILE, load
from .table import columns, figure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .registry import Row

assert rows
PAGE: Final = ROOT / "docs" / "reference" / "performance.rst"
README: Final = ROOT / "README.md"
LIMITS: Final = ROOT / "docs" / "how-to" / "one-process.rst"
PLOTS: Final = PAGE.parent / "plots"

_HEAD: Final = """\
.. Made by ``python -m bench.page`` of ``docs/results/speed.json``: not to be edited.

"""

_LEGEND: Final = """\
In the tables *ours* is this library, and *us* are microseconds. The end of the page describes the measurement, names the machine, and lists the goals of
the project, met or not.

"""

_METHOD: Final = """\
``make bench`` measures it again on your machine; ``python -m bench --list`` names the rows.

Each library runs in processes of its own; the libraries take turns within one run. Microseconds (*us*) are the processor time, user and system, of one
process between its first message and its last, divided by the number of messages; only *p50 us* and *p99 us* are wall time. Other work of the machine
changes processor time less than wall time, and hardly changes the ratios. Figures are medians of
the rounds, with the least and the most in brackets; a ratio is that of the medians, with the least and the most of the rounds. Each message is built
from scratch, and the receiver reads its id, properties and body. A *full* message has a header, six properties, three application-properties and
a body of octets: ``message_id``, ``to``, ``subject``, ``reply_to``, ``correlation_id``, ``content_type``; an int, a str and a bool. Rows with
*wall time* are valid on a quiet machine only; each row shows the load average at its end.

"""

_GROUPS: Final = {
    "direct": ("Two processes, and nothing between them", None),
    "interpreters": ("By interpreter", None),
    "stream": ("Bodies in pieces", None),
    "latency": ("One message at a time", None),
    "queue": ("Through a queue", "queue"),
    "store": ("A store", None),
    "growth": ("Many links, connections and messages", "growth"),
    "memory": ("Memory", None),
    "codec": ("The codec alone", None),
    "091": ("AMQP 0-9-1", "amqp091"),
    "aio": ("From asyncio", None),
    "celery": ("Celery", None),
}
"""The heading and the plot of each group of rows.

A group is the first word of the names of its rows. The plot ``direct`` is at the top of the page.
"""

_NAMES: Final = {
    "ours": "with this library",
    "proton": "with Qpid Proton",
    "rhea": "with rhea",
    "pika": "with pika",
    "aio-pika": "with aio-pika",
    "trio": "in trio",
    "aio": "in aio",
    "aio as a guest": "in aio, as a guest",
    "amqp10": "over AMQP 1.0",
    "py-amqp": "over AMQP 0-9-1, by py-amqp",
    "RabbitMQ 4": "with RabbitMQ 4",
    "RabbitMQ 4, classic": "with a classic queue of RabbitMQ 4",
    "RabbitMQ 4, quorum": "with a quorum queue",
}
"""The names of the sides of a row, in a sentence."""

_OWN_LOAD: Final = 2.5
"""The load average that the processes of a row cause by themselves."""


def render(results: dict[str, Any]) -> str:
    """Return the page."""
    parts = [_HEAD, title("Performance"), "\n", _answer(results["rows"]), _LEGEND]
    if (PLOTS / "direct-light.svg").exists():
        parts += [_image("direct", "Processor time of a message, beside other libraries"), "\n"]
    measured = results["rows"]
    for group, members in groupby(ROWS.values(), key=lambda row: row.name.partition("-")[0]):
        heading, plot = _GROUPS[group]
        parts += [title(heading, "-"), "\n"]
        if plot is not None and (PLOTS / f"{plot}-light.svg").exists():
            parts += [_image(plot, heading), "\n"]
        parts += (part for row in members for part in _chapter(row, measured.get(row.name)))
    parts += [title("How it is measured", "-"), "\n", _METHOD, _machine(results)]
    judged = [(name, gate) for name in ROWS if name in measured for gate in measured[name]["gates"]]
    met = sum(gate["met"] for _, gate in judged)
    parts += [
        title("Gates", "-"),
        f"\nEach gate is a goal of this project: a bound for a figure. {met} of the {len(judged)} gates that were measured are met.\n\n",
    ]
    if judged:
        lines = [(f"``{name}``", gate["says"], *_gate(gate)) for name, gate in judged]
        parts += [table(("row", "what", "figure", "wanted", "met"), lines, (18, 40, 22, 12, 8)), "\n"]
    return "".join(parts).rstrip() + "\n"


def _answer(measured: dict[str, Any]) -> str:
    """Return a sentence each for AMQP 1.0, AMQP 0-9-1 and queues, as far as measured."""

    def medians(row: str, what: str) -> list[tuple[str, str]]:
        figures = measured.get(row, {}).get("figures", {})
        return [(_NAMES[who], figure(ones[what]["median"])) for who, ones in figures.items() if what in ones]

    def beside(found: list[tuple[str, str]], unit: str) -> str:
        (ours, ours_figure), *others = found
        return f"{ours_figure} {unit} {ours} (" + ", ".join(f"{value} {who}" for who, value in others) + ")"

    sentences = []
    sent, received = medians("direct-rate", "sender us"), medians("direct-rate", "receiver us")
    if len(sent) > 1 and len(received) > 1:
        sentences.append(
            f"A full message of AMQP 1.0, at least once, costs its sender {beside(sent, 'microseconds of processor time')}, and its receiver"
            f" {beside(received, 'microseconds')}."
        )
    published, consumed = medians("091-publish", "client us"), medians("091-consume", "client us")
    if len(published) > 1 and len(consumed) > 1:
        sentences.append(
            f"In AMQP 0-9-1, publishing 100 octets without confirms costs a client {beside(published, 'microseconds')}, and consuming them"
            f" {beside(consumed, 'microseconds')}."
        )
    queued, alone = medians("queue-full", "messages a second"), medians("queue-lone", "p50 us")
    if len(queued) > 1 and len(alone) > 1:
        sentences.append(
            f"With our client at both ends, a queue passes on {beside(queued, 'full messages a second')}; if each durable message waits for the one before, it takes"
            f" {beside(alone, 'microseconds')}."
        )
    return "".join(f"{sentence}\n" for sentence in sentences) + "\n"


def _machine(results: dict[str, Any]) -> str:
    if "machine" not in results:
        return ""
    machine, versions = results["machine"], results["versions"]
    told = ", ".join(f"{name} {version.removeprefix('v')}" for name, version in versions.items())
    return (
        f"The machine: {machine['processor']}, {machine['cores']} processors, {machine['memory GiB']} GiB, {machine['system']}."
        f" The versions: {told}.\n\n"
    )


def _gate(gate: dict[str, Any]) -> tuple[str, str, str]:
    value = f"{figure(gate['value'])} ({figure(gate['least'])} to {figure(gate['most'])})"
    return value, f"{gate['wanted']} {gate['bound']:g}", "yes" if gate["met"] else "**no**"


def _image(plot: str, words: str) -> str:
    """Return the image twice: for light pages and for dark ones."""
    return "".join(
        f".. image:: plots/{plot}-{theme}.svg\n   :class: only-{theme}\n   :alt: {words}\n\n"
        for theme in ("light", "dark")
    )


def _chapter(row: Row, found: dict[str, Any] | None) -> Iterable[str]:
    yield title(row.name, "~")
    yield f"\n{row.about}{' Wall time.' if row.quiet else ''}\n\n"
    if found is None:
        yield "No figures yet.\n\n"
        return
    yield f"{found['date']}, at {found['commit']}, {found['rounds']} rounds, load average {found['load'][0]}:\n\n"
    what = columns(found["figures"])
    lines = [
        [who if row.curve is None else f"{int(who):,}", *(_cell(ones.get(each)) for each in what)]
        for who, ones in found["figures"].items()
    ]
    yield table((row.curve or "", *what), lines, (30, *(70 // len(what) for _ in what)))
    yield "\n"
    if found["slopes"]:
        slopes = ", ".join(f"{name} {value:+.3g}" for name, value in found["slopes"].items())
        yield f"For each tenfold growth of the first column: {slopes}.\n\n"


def _cell(spread: dict[str, float] | None) -> str:
    if spread is None:
        return ""
    return f"{figure(spread['median'])} ({figure(spread['least'])} to {figure(spread['most'])})"


def with_paragraph(readme: str, results: dict[str, Any]) -> str:
    """Return the README with the paragraph about these results."""
    marks = ("<!-- speed: made by python -m bench.page -->\n", "<!-- /speed -->\n")
    return between(readme, marks, _paragraph(results["rows"]))


def with_sizes(page: str, results: dict[str, Any]) -> str:
    """Return the page about the limits of one process, with its table."""
    marks = (".. sizes: made by python -m bench.page\n\n", ".. sizes end\n")
    ours, theirs = (
        results["rows"].get(name, {}).get("figures") for name in ("queue-sizes", "queue-sizes-rabbitmq")
    )
    if ours is None:
        return between(page, marks, "No figures yet.\n\n")
    head = ["octets of a body", "messages a second", "MB a second"]
    lines = [
        [f"{int(size):,}", *(figure(ones[what]["median"]) for what in head[1:])]
        for size, ones in ours.items()
    ]
    if theirs is not None:
        head.append("messages a second, RabbitMQ 4")
        for line, ones in zip(lines, theirs.values(), strict=True):
            line.append(figure(ones[head[1]]["median"]))
    return between(page, marks, table(head, lines, [100 // len(head)] * len(head)) + "\n")


def _paragraph(measured: dict[str, Any]) -> str:
    """Return a plot, and a few figures; each sentence names its row."""

    def median(row: str, who: str, what: str) -> str:
        return figure(measured[row]["figures"][who][what]["median"])

    lines = []
    if "direct-full" in measured and "proton" in measured["direct-full"]["figures"]:
        ours, theirs = (
            [median("direct-full", who, what) for what in ("sender us", "receiver us")]
            for who in ("ours", "proton")
        )
        lines += [
            "<picture>",
            '  <source media="(prefers-color-scheme: dark)" srcset="docs/reference/plots/direct-dark.svg">',
            '  <img alt="Processor time of a message, beside Qpid Proton" src="docs/reference/plots/direct-light.svg">',
            "</picture>",
            "",
            f"A full message of 100 octets, at least once, costs {ours[0]} us of processor time at our sender and {ours[1]} us at our",
            f"receiver; with Qpid Proton {theirs[0]} and {theirs[1]} us (`python -m bench direct-full`).",
        ]
    if "queue-full" in measured and "RabbitMQ 4" in measured["queue-full"]["figures"]:
        ours_, theirs_ = (median("queue-full", who, "messages a second") for who in ("ours", "RabbitMQ 4"))
        lines.append(
            f"A queue of `amqp10 serve` passes on {ours_} of them a second, a queue of RabbitMQ 4 {theirs_}, with our client at both ends"
            " (`python -m bench queue-full`)."
        )
    if "queue-lone" in measured and "RabbitMQ 4, classic" in measured["queue-lone"]["figures"]:
        ours_, theirs_ = (median("queue-lone", who, "p50 us") for who in ("ours", "RabbitMQ 4, classic"))
        lines.append(
            f"If each durable message waits for the one before, a message takes {ours_} us through it, and {theirs_} us through a classic queue of"
            " RabbitMQ 4 (`python -m bench queue-lone`)."
        )
    loads = [found["load"][0] for found in measured.values()]
    if loads and max(loads) > _OWN_LOAD:
        lines.append(f"Measured on a busy machine, at a load average of up to {max(loads)}.")
    return "".join(f"{line}\n" for line in lines)


def main(arguments: list[str] | None = None) -> None:
    """Write the page, the plots and the figures of other pages."""
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__)
    parser.add_argument(
        "--without-plots", action="store_true", help="leave the plots as they are; they need matplotlib"
    )
    results = load(FILE)
    if not parser.parse_args(arguments).without_plots:
        from . import plots

        plots.write(PLOTS, results)
    PAGE.write_text(render(results))
    README.write_text(with_paragraph(README.read_text(), results))
    LIMITS.write_text(with_sizes(LIMITS.read_text(), results))


if __name__ == "__main__":
    main()
