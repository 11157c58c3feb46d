"""``python -m bench``: measure all rows, or those that are named, print a table, and with ``--results`` keep the figures as JSON.

``--list`` says what rows there are. ``--missing`` leaves out those that the file of ``--results`` has of this commit, so that a run that was broken off can go
on. ``--quick`` runs each at a tiny size: its figures mean nothing, but that all works.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from . import rows
from .lab import Lab
from .registry import ROWS
from .results import commit, load, save, summary
from .table import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .registry import Figures, Row

assert rows
QUICK = 0.004


def measure(row: Row, lab: Lab, rounds: int) -> list[Figures]:
    """The figures of each round."""
    with row.open(lab) as once:
        return [once() for _ in range(rounds)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 1 if a row could not be measured. A gate that is not met is told, and fails nothing."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", metavar="ROW", nargs="*", help="its name, or how it begins; all without one")
    parser.add_argument("--list", action="store_true", help="say what rows there are")
    parser.add_argument("--quick", action="store_true", help="one round of each, tiny")
    parser.add_argument(
        "--missing", action="store_true", help="only rows that were not measured at this commit"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without", metavar="PEER", action="append", default=[], help="leave a peer out")
    parser.add_argument(
        "--results",
        type=Path,
        default=None,
        metavar="FILE",
        help="keep figures there, beside those of other rows",
    )
    given = parser.parse_args(arguments)
    chosen = [row for name, row in ROWS.items() if not given.names or name.startswith(tuple(given.names))]
    if not chosen:
        parser.error(f"no row begins so: {', '.join(given.names)}; --list shows all")
    if given.list:
        for row in chosen:
            print(f"{row.name:24} {row.about}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are ended
    file: Path | None = given.results
    results = {"rows": {}} if file is None else load(file)
    failed = []
    with Lab(QUICK if given.quick else 1.0, without=frozenset(given.without)) as lab:
        for peer in sorted({peer for row in chosen for peer in row.peers}):
            if reason := lab.missing(peer):
                print(f"not measured beside {peer}: {reason}")
        for row in chosen:
            if given.missing and results["rows"].get(row.name, {}).get("commit") == commit():
                continue
            began = time.monotonic()
            try:
                rounds = measure(row, lab, 1 if given.quick else given.rounds)
            except (RuntimeError, OSError) as failure:
                print(f"{row.name}: {failure}", file=sys.stderr)
                failed.append(row.name)
                continue
            if not rounds[0]:
                print(f"\n{row.name}: not measured, for want of {', '.join(row.peers)}")
                continue
            results["rows"][row.name] = summary(row, rounds, time.monotonic() - began)
            print(shown(row, results["rows"][row.name]), flush=True)
            if file is not None:
                save(file, results)
    if failed:
        print(f"could not be measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
