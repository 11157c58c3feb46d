"""``python -m tests.fuzz``: broken octets at each target, for so many seconds or so many times, on all cores.

``make fuzz`` runs all targets for a minute; each has its share of the time. ``--executions`` gives whole containers a small share of
so many (``shares``). With ``--results`` what was done is added to what the file has; ``--total`` goes on, in rounds of ``--seconds``,
until the file has that many executions, and may be stopped at any time: it writes the file after each round.

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
from typing import TYPE_CHECKING, Any, Final

from tests.results import add_option

from .corpus import load, store
from .judge import failure_of, measured
from .shares import accumulate, executions_in, executions_of
from .shrink import shrunk
from .targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .target import FuzzTarget

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


def _in_parts(
    plans: Mapping[str, int | None], jobs: int, seconds: float, seed: int, *, quiet: bool = False
) -> list[Result]:
    """All targets one after another, each on all cores: so many executions, or its share of the time."""
    shares = sum(TARGETS[name].share for name in plans)
    results: list[Result] = []
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for name, executions in plans.items():
            plan: dict[str, Any] = {
                "seconds": seconds * TARGETS[name].share / shares,
                "executions": executions,
                "seed": seed,
                "parts": jobs,
            }
            parts = [pool.apply_async(fuzz, (name,), {**plan, "part": part}) for part in range(jobs)]
            total = Result(name)
            for part in [each.get() for each in parts]:
                total.attempts += part.attempts
                total.failures += part.failures
                total.measured += part.measured
                total.seconds = max(total.seconds, part.seconds)
            results.append(total)
            if not quiet:
                print(
                    f"{name:22}{total.attempts:>12,} attempts, {total.measured:>9,} measured, {total.failures} failures",
                    flush=True,
                )
    return results


def _in_rounds(names: Sequence[str], arguments: argparse.Namespace, seed: int) -> bool:
    """Until the file of results has ``--total`` executions; whether none failed. The results are written after each round."""
    failed = False
    plans: dict[str, int | None] = dict.fromkeys(names)
    while (done := executions_in(arguments.results)) < arguments.total:
        print(f"seed {seed}: {done:,} of {arguments.total:,} executions", flush=True)
        results = _in_parts(plans, arguments.jobs, arguments.seconds, seed, quiet=True)
        failed |= any(each.failures for each in results)
        accumulate(arguments.results, seed, [asdict(each) for each in results])
        seed = random.Random(seed).randrange(2**32)
    return not failed


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
    parser.add_argument(
        "--total", type=int, default=None, help="go on until the results file has so many executions"
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
    names = arguments.targets or list(TARGETS)
    with suppress(KeyboardInterrupt):
        if arguments.total is not None:
            if arguments.results is None:
                parser.error("--total counts what --results has")
            return 0 if _in_rounds(names, arguments, seed) else 1
        many = arguments.executions
        plans = dict.fromkeys(names) if many is None else executions_of(names, many)
        results = _in_parts(plans, arguments.jobs, arguments.seconds, seed)
        accumulate(arguments.results, seed, [asdict(each) for each in results])
        return 1 if any(each.failures for each in results) else 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
