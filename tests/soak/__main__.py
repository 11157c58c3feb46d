"""``python -m tests.soak``: kill a container again and again, and print what came of it."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import trio

from .kills import Plan, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--receivers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    plan = Plan(
        kills=arguments.kills,
        senders=arguments.senders,
        receivers=arguments.receivers,
        seed=arguments.seed,
    )
    with tempfile.TemporaryDirectory() as folder:
        tally = trio.run(run, Path(folder) / "store", plan)
    print(json.dumps(tally.counts()))
    if tally.lost or tally.unexpected or tally.unexplained or tally.torn:
        sys.exit("FAILED: see `lost`, `unexpected`, `unexplained` and `torn`")


main()
