"""``python -m tests.soak``: kill a container again and again, or load one for minutes, and print what came of it."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import trio

from tests.results import add_option, write

from . import kills, kills091, steady


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument(
        "--minutes", type=float, default=None, help="load a container that is not killed, for so long"
    )
    parser.add_argument(
        "--dialect", choices=["1.0", "0-9-1"], default="1.0", help="of those that send to what is killed"
    )
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--receivers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    add_option(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        if arguments.minutes is None:
            figures, faults = _kill(store, arguments)
        else:
            outcome = trio.run(steady.run, store, arguments.minutes)
            figures, faults = outcome.figures(), outcome.faults()
    print(json.dumps(figures))
    kind = "kills" if arguments.dialect == "1.0" else "kills091"
    write(arguments.results, kind if arguments.minutes is None else "steady", figures)
    if faults:
        sys.exit("\n".join(f"FAILED: {fault}" for fault in faults))


def _kill(store: Path, arguments: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    plan = kills.Plan(
        kills=arguments.kills,
        senders=arguments.senders,
        receivers=arguments.receivers,
        seed=arguments.seed,
    )
    if arguments.dialect == "1.0":
        tally = trio.run(kills.run, store, plan)
    else:
        tally = trio.run(partial(kills091.run, store, plan, pika=kills091.PIKA.exists()))
    faults = [name for name in ("lost", "unexpected", "unexplained", "torn") if getattr(tally, name)]
    return tally.counts(), [f"see `{name}`" for name in faults]


main()
