"""``python -m tests.machines --steps 200000``: two engines of each wire back to back, driven at random for so many steps each.

The tests do the same for some thousand steps, and the same ones each time; here each run is another. What is found is
printed with what leads there, and the command fails. The steps are those of the machine, not the frames: one may send many.
"""

from __future__ import annotations

import argparse
import itertools
import secrets
import sys
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, run_state_machine_as_test

from .amqp091.engine.test_machine import World
from .amqp10.draft_2010.test_machine import DraftMachine
from .amqp10.engine.test_machine import Machine
from .amqp_10_3.engine.test_machine import TwoEngines as Engines103
from .amqp_fast.engine.test_machine import TwoEngines as EnginesFast
from .results import add_option, write

if TYPE_CHECKING:
    from collections.abc import Callable

_LENGTH: Final = 60
"""Steps of a conversation, at most."""
_BATCH: Final = 100
"""Conversations between two looks at the count."""
_WORLD: Final = 2_000
"""Steps of one conversation of 0-9-1, which is not one of hypothesis."""


@dataclass
class _Run:
    """What came of one machine."""

    wire: str
    steps: int = 0
    conversations: int = 0
    seconds: float = 0.0
    failure: str | None = None


def _by_rules(machine: type[RuleBasedStateMachine]) -> Callable[[_Run, int, int], None]:
    def go(run: _Run, steps: int, seed: int) -> None:
        class Counted(machine):  # type: ignore[misc,valid-type]
            def __init__(self) -> None:
                super().__init__()
                run.conversations += 1

            @invariant()
            def count(self) -> None:
                run.steps += 1

        chosen = settings(
            max_examples=_BATCH,
            stateful_step_count=_LENGTH,
            phases=[Phase.generate, Phase.shrink],
            deadline=None,
            derandomize=False,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        for number in itertools.count(seed):
            if run.steps >= steps:
                return
            hypothesis.seed(number)(Counted)
            run_state_machine_as_test(Counted, settings=chosen)

    return go


def _by_chance(run: _Run, steps: int, seed: int) -> None:
    for number in itertools.count(seed):
        if run.steps >= steps:
            return
        world = World(number)
        run.conversations += 1
        try:
            for _ in range(_WORLD):
                world.step()
                run.steps += 1
            world.check()
        except Exception as error:
            error.add_note(f"World({number}), step {world.moves}")
            raise


_MACHINES: Final[dict[str, Callable[[_Run, int, int], None]]] = {
    "1.0": _by_rules(Machine),
    "0-9-1": _by_chance,
    "AMQP/Fast": _by_rules(EnginesFast),
    "10.3": _by_rules(Engines103),
    "draft of 2010": _by_rules(DraftMachine),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000, help="of each machine")
    parser.add_argument(
        "--seed", type=int, default=None, help="repeat a run; a fresh one each time otherwise"
    )
    add_option(parser)
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    runs: list[_Run] = []
    for wire, go in _MACHINES.items():
        run = _Run(wire)
        began = time.process_time()
        try:
            go(run, arguments.steps, seed)
        except Exception:
            run.failure = traceback.format_exc()
        run.seconds = round(time.process_time() - began, 1)
        print(f"{wire}: {run.steps:,} steps, {run.failure or 'no breach'}", flush=True)
        runs.append(run)
    write(arguments.results, "machines", {"seed": seed, "runs": [vars(run) for run in runs]})
    if any(run.failure for run in runs):
        sys.exit(1)


if __name__ == "__main__":
    main()
