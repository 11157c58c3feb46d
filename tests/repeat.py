"""``python -m tests.repeat --runs 20``: all tests again and again on a busy machine, and which of them failed how often.

Two processes that do nothing but count keep the cores busy meanwhile. A test that fails in some runs depends on who runs
first, or on how fast: it is wrong, whatever it tests. Each run is ``make test`` by default; what follows ``--`` runs instead.

With ``--pauses`` all processes of a run stand still again and again, for half a second or so, as on a machine that is
busier than any loop makes it: what counts on the next tenth of a second does not get it.

With ``--results`` each run is kept as soon as it is over, beside those of other commits that the file has. Where other
work keeps the machine busy, ``--loops 0`` does without those two: the load of the last five minutes is kept with each run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .results import add_option, commit, earlier, write

if TYPE_CHECKING:
    from collections.abc import Generator

_ROOT: Final = Path(__file__).resolve().parents[1]
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_FAILURE: Final = re.compile(r"^=+ (?:FAILURES|ERRORS) =+$", re.MULTILINE)
_MOST: Final = 20_000
"""Characters that are shown of a run that failed."""
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


@contextmanager
def _pausing(group: int) -> Generator[None]:
    """Stop the processes of a group, and have them go on, again and again."""
    over, chance = threading.Event(), random.Random(0)

    def pause() -> None:
        while not over.wait(chance.uniform(0.2, 0.6)):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGSTOP)
                over.wait(chance.uniform(0.3, 0.7))
                os.killpg(group, signal.SIGCONT)

    thread = threading.Thread(target=pause)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _run(command: list[str], *, pauses: bool) -> tuple[bool, str]:
    process = subprocess.Popen(
        command,
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        with _pausing(process.pid) if pauses else nullcontext():
            said, _ = process.communicate(timeout=_LONGEST)
    except subprocess.TimeoutExpired as hung:
        so_far: Any = hung.stdout or b""  # octets, whatever was asked for
        return False, f"{so_far.decode(errors='replace')}\nERROR hung"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode == 0, said


def _why(said: str) -> str:
    """The part of what a run said that tells why it failed: from the first failure on, or its end."""
    begin = _FAILURE.search(said)
    return said[-_MOST:] if begin is None else said[begin.start() :][:_MOST]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--loops", type=int, default=2, help="processes that keep the cores busy")
    parser.add_argument("--pauses", action="store_true", help="have the tests stand still again and again")
    add_option(parser)
    parser.add_argument("command", nargs="*", help="what to run; make test if nothing is named")
    arguments = parser.parse_args()
    failed: Counter[str] = Counter()
    bad = 0
    kept = earlier(arguments.results, "runs")
    with _busy(arguments.loops):
        for number in range(1, arguments.runs + 1):
            began = time.monotonic()
            good, said = _run(arguments.command or ["make", "test"], pauses=arguments.pauses)
            names = set(_FAILED.findall(said))
            failed.update(names)
            bad += not good
            load = round(os.getloadavg()[1], 1)
            busy = {"loops": arguments.loops, "pauses": arguments.pauses, "load": load}
            kept.append({"commit": commit(), **busy, "good": good, "failed": sorted(names)})
            write(arguments.results, "repeat", {"runs": kept})
            print(
                f"run {number}: {'passed' if good else 'FAILED'} in {time.monotonic() - began:.0f} s",
                flush=True,
            )
            if not good:
                print(_why(said), flush=True)
    for name, count in failed.most_common():
        print(f"{count:>4} of {arguments.runs}  {name}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
