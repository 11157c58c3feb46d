"""``python -m tests.fuzz --seconds S``: broken octets at each target in turn, for so long.

What goes wrong is written to ``tests/corpus`` with what went wrong; the ordinary tests replay it from then on.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback

from .corpus import store
from .mutate import mutated
from .targets import TARGETS, FuzzTarget, attempt

_PER_OCTET = 50e-6
_AT_ONCE = 0.5
"""Seconds that an attempt may take, beside those for each octet: generous, for the machine is shared."""

_ENOUGH = 5
"""Different failures of one target, after which it is left alone."""


def fuzz(name: str, target: FuzzTarget, seconds: float, seed: int) -> tuple[int, int]:
    """Attempts and failures."""
    rng = random.Random(f"{name} {seed}")
    attempts = 0
    failures: set[str] = set()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and len(failures) < _ENOUGH:
        attempts += 1
        octets = mutated(rng, target.seeds, framed=target.framed)
        began = time.perf_counter()
        where = None
        try:
            attempt(target, octets)
        except Exception as failure:
            frame = traceback.extract_tb(failure.__traceback__)[-1]
            where = f"{frame.name}:{frame.lineno}"
            story = f"{type(failure).__name__} in {frame.name}: {failure}"
        else:
            took = time.perf_counter() - began
            if took > _AT_ONCE + _PER_OCTET * len(octets):
                where, story = "time", f"took {took:.2f} s for {len(octets)} octets"
        if where is not None and where not in failures:
            failures.add(where)
            file = store(name, octets, story)
            print(f"{name}: {story}\n    {file}")
    return attempts, len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument(
        "--seed", type=int, default=None, help="repeat a run; a fresh one each time otherwise"
    )
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], help="all, if none is named")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if arguments.seed is None else arguments.seed
    names = arguments.targets or list(TARGETS)
    parts = sum(TARGETS[name].share for name in names)
    print(f"seed {seed}")
    failed = 0
    for name in names:
        attempts, failures = fuzz(name, TARGETS[name], arguments.seconds * TARGETS[name].share / parts, seed)
        failed += failures
        print(f"{name:18}{attempts:>10,} attempts, {failures} failures", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
