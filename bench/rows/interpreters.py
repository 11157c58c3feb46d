"""Our ends under other interpreters, which the variable ``PYTHONS`` names: builds of Python differ as much as libraries do."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from bench.job import Job
from bench.processes import run_pair
from bench.registry import Figures, row

from .direct import RECEIVER, SENDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

_TELL = """
import platform, sys
found = platform.python_version()
if getattr(sys, "_jit", None) and sys._jit.is_enabled():
    found += ", JIT"
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    found += ", free-threaded"
print(found)
"""


@row(
    "interpreters",
    "The message of ``direct-full`` under this interpreter and those that ``PYTHONS`` names, by version; their dependencies are this environment's.",
)
def _interpreters(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="", count=lab.count(20_000))
    found = {told(each): each for each in (sys.executable, *os.environ.get("PYTHONS", "").split())}

    def measure() -> Figures:
        figures: Figures = {}
        for version, python in found.items():
            sent, received = run_pair("ours", "ours", job, python=python)
            figures |= {(version, SENDER): sent["us"], (version, RECEIVER): received["us"]}
        return figures

    yield measure


def told(python: str) -> str:
    """What an interpreter says of itself: its version, and what makes it faster."""
    said = subprocess.run([python, "-c", _TELL], capture_output=True, text=True, check=True)
    return said.stdout.strip()
