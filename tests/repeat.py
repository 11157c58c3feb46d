"""``python -m tests.repeat --runs 20``: all tests again and again on a busy machine, and which of them failed how often.

Two processes that do nothing but count keep the cores busy meanwhile. A test that fails in some runs depends on who runs
first, or on how fast: it is wrong, whatever it tests. Each run is ``make test`` by default; what follows ``--`` runs instead.

With ``--results`` each run is kept as soon as it is over, beside those of other commits that the file has. Where other
work keeps the machine busy, ``--loops 0`` does without those two: the load of the last five minutes is kept with each run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.results import add_option, commit, earlier, write

if TYPE_CHECKING:
    from collections.abc import Generator

_ROOT: Final = Path(__file__).resolve().parents[1]
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_LONGEST: Final = 1800.0
"""Seconds after which a run hangs."""


def _count() -> None:
    number = 0
    while True:
        number += 1


@contextmanager
def _busy(loops: int) -> Generator[None]:
    processes = [
        multiprocessing.get_context("fork").Process(target=_count, daemon=True) for _ in range(loops)
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def _run(command: list[str]) -> tuple[bool, str]:
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST,
        )
    except subprocess.TimeoutExpired as hung:
        return False, f"{hung.stdout or ''}\nERROR hung"
    return done.returncode == 0, done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--loops", type=int, default=2, help="processes that keep the cores busy")
    add_option(parser)
    parser.add_argument("command", nargs="*", help="what to run; make test if nothing is named")
    arguments = parser.parse_args()
    failed: Counter[str] = Counter()
    bad = 0
    kept = earlier(arguments.results, "runs")
    with _busy(arguments.loops):
        for number in range(1, arguments.runs + 1):
            began = time.monotonic()
            good, said = _run(arguments.command or ["make", "test"])
            names = set(_FAILED.findall(said))
            failed.update(names)
            bad += not good
            busy = {"loops": arguments.loops, "load": round(os.getloadavg()[1], 1)}
            kept.append({"commit": commit(), **busy, "good": good, "failed": sorted(names)})
            write(arguments.results, "repeat", {"runs": kept})
            print(
                f"run {number}: {'passed' if good else 'FAILED'} in {time.monotonic() - began:.0f} s",
                flush=True,
            )
            if not good:
                print("\n".join(f"    {name}" for name in sorted(names)) or said[-2000:], flush=True)
    for name, count in failed.most_common():
        print(f"{count:>4} of {arguments.runs}  {name}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
