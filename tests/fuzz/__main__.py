"""``python -m tests.fuzz``: broken octets at each target, for so many seconds or so many times, on all cores.

What goes wrong is written to ``tests/corpus`` with what went wrong; the ordinary tests replay it from then on. Scripts are
made as small as they can be first. No judgement is by the clock: of some attempts, chosen by the seed, the steps are
counted, of others the memory (``meter``), and one that does not come to its end is stopped and counted too.

``--seed`` repeats a run with ``--executions``; ``--replay FILE`` shows what a file of the corpus does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.results import add_option, write

from .corpus import load, store
from .judge import failure_of, measured
from .shrink import shrunk
from .targets import TARGETS, FuzzTarget

_ENOUGH: Final = 5
"""Different failures of one target, after which it is left alone."""
_STUCK: Final = 20.0
"""Seconds of processor time after which an attempt is stopped, and then judged by its steps."""
_STEPS_OF: Final = 32
_MEMORY_OF: Final = 128
"""One attempt of so many is measured."""


@dataclass
class Result:
    """What became of one target."""

    target: str
    attempts: int = 0
    failures: int = 0
    measured: int = 0
    seconds: float = 0.0


class _StuckError(BaseException):
    """Nobody may catch it: an attempt takes very long."""


def _stop(_number: int, _frame: object) -> None:
    raise _StuckError


def fuzz(name: str, *, seconds: float, executions: int | None, seed: int, part: int, parts: int) -> Result:
    """Every ``parts``-th attempt, from ``part`` on, until the time is over or there were so many."""
    target = TARGETS[name]
    result = Result(name)
    found: set[str] = set()
    began = time.monotonic()
    signal.signal(signal.SIGVTALRM, _stop)
    for number in range(part, sys.maxsize if executions is None else executions, parts):
        if (executions is None and time.monotonic() - began > seconds) or len(found) >= _ENOUGH:
            break
        chance = random.Random(f"{name} {seed} {number}")
        octets = target.octets(chance)
        how = (
            "steps"
            if chance.randrange(_STEPS_OF) == 0
            else "memory"
            if chance.randrange(_MEMORY_OF) == 0
            else None
        )
        result.attempts += 1
        result.measured += how is not None
        failure = _attempt(target, octets, how)
        if failure is not None and failure[0] not in found:
            found.add(failure[0])
            result.failures += 1
            _report(name, target, octets, failure[1], f"--seed {seed}, attempt {number}")
    result.seconds = round(time.monotonic() - began, 1)
    return result


def _attempt(target: FuzzTarget, octets: bytes, how: str | None) -> tuple[str, str] | None:
    signal.setitimer(signal.ITIMER_VIRTUAL, 0 if how else _STUCK)
    try:
        return failure_of(target, octets) if how is None else measured(target, octets, how)
    except _StuckError:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return measured(target, octets, "steps")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _report(name: str, target: FuzzTarget, octets: bytes, story: str, where: str) -> None:
    smaller = shrunk(target, octets) if target.make is not None else octets
    file = store(name, smaller, story)
    print(f"{name}: {story}\n    {where}; {file}", flush=True)


def _in_parts(arguments: argparse.Namespace, seed: int) -> list[Result]:
    """All targets one after another, each on all cores."""
    names = arguments.targets or list(TARGETS)
    shares = sum(TARGETS[name].share for name in names)
    results: list[Result] = []
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        for name in names:
            share = TARGETS[name].share / shares
            plan: dict[str, Any] = {
                "seconds": arguments.seconds * share,
                "executions": None
                if arguments.executions is None
                else max(1, round(arguments.executions * share)),
                "seed": seed,
                "parts": arguments.jobs,
            }
            parts = [
                pool.apply_async(fuzz, (name,), {**plan, "part": part}) for part in range(arguments.jobs)
            ]
            total = Result(name)
            for part in [each.get() for each in parts]:
                total.attempts += part.attempts
                total.failures += part.failures
                total.measured += part.measured
                total.seconds = max(total.seconds, part.seconds)
            results.append(total)
            print(
                f"{name:18}{total.attempts:>12,} attempts, {total.measured:>9,} measured, {total.failures} failures",
                flush=True,
            )
    return results


def _replay(file: Path) -> int:
    name, octets = load(file)
    failure = measured(TARGETS[name], octets, "steps")
    print(f"{name}: {'as it should be' if failure is None else failure[1]}")
    return failure is not None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument(
        "--executions", type=int, default=None, help="of all targets together, however long it takes"
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="repeat a run; a fresh one each time otherwise"
    )
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes; one for each core"
    )
    add_option(parser)
    parser.add_argument(
        "--replay", type=Path, default=None, help="throw this file of the corpus, and nothing else"
    )
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], help="all, if none is named")
    arguments = parser.parse_args()
    if arguments.replay is not None:
        return _replay(arguments.replay)
    seed = random.SystemRandom().randrange(2**32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    with suppress(KeyboardInterrupt):
        results = _in_parts(arguments, seed)
        write(arguments.results, "fuzz", {"seed": seed, "targets": [asdict(each) for each in results]})
        return 1 if any(each.failures for each in results) else 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
