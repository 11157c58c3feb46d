"""Sides and servers of the measurements as forks of a process that has imported them all: starting takes longer than a tiny row."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from bench import processes
from tests.tools.cli.forks import forking

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = [f"bench.sides.{name}" for name in ("ours", "bare", "ours091", "codec", "held")]


@pytest.fixture(scope="session")
def forks() -> Iterator[list[str]]:
    """What starts a module of ours as a fork: put ``-m`` and its name behind."""
    with forking(*MODULES) as command:
        yield command


@pytest.fixture
def quick(forks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the measurements start what they measure so; a server's processor time is that of the clock, as its id is not known."""
    monkeypatch.setattr(processes, "PYTHON", forks)
    monkeypatch.setattr(processes.Server, "processor_seconds", lambda _: time.perf_counter())
