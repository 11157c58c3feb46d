"""``python -m tests.soak``: kill a container again and again, or load one for minutes, and print what came of it."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import trio

from tests.results import add_option, write

from . import kills, kills_dialects, steady


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument(
        "--minutes", type=float, default=None, help="load a container that is not killed, for so long"
    )
    parser.add_argument(
        "--dialects",
        nargs="+",
        choices=kills_dialects.DIALECTS,
        default=[],
        help="of those that send to what is killed, each in turn; without it 1.0",
    )
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--receivers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--slow", type=float, default=0.0, metavar="MILLISECONDS", help="that each commit of the store waits"
    )
    add_option(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        if arguments.minutes is not None:
            kind = "steady"
            outcome = trio.run(steady.run, store, arguments.minutes)
            figures, faults = outcome.figures(), outcome.faults()
        elif arguments.dialects:
            kind = "kills_dialects"
            figures, faults = _kill_dialects(Path(folder), arguments)
        else:
            kind = "kills"
            tally = trio.run(kills.run, store, _plan(arguments))
            figures, faults = tally.counts(), tally.faults()
    print(json.dumps(figures))
    write(arguments.results, kind, figures)
    if faults:
        sys.exit("\n".join(f"FAILED: see `{fault}`" for fault in faults))


def _plan(arguments: argparse.Namespace) -> kills.Plan:
    return kills.Plan(
        kills=arguments.kills,
        senders=arguments.senders,
        receivers=arguments.receivers,
        seed=arguments.seed,
        slow=arguments.slow,
    )


def _kill_dialects(folder: Path, arguments: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    runs: list[dict[str, Any]] = []
    faults: list[str] = []
    for dialect in arguments.dialects:
        tally = trio.run(
            kills_dialects.run, folder / dialect, dialect, _plan(arguments), kills_dialects.PIKA.exists()
        )
        runs.append({"dialect": dialect, **tally.counts()})
        faults += [f"{fault} of {dialect}" for fault in tally.faults()]
    return {"runs": runs}, faults


main()
