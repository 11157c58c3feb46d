"""Sides and servers of the measurements as forks of a process that has imported them all: starting takes longer than a tiny row."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench import processes
from tests.cli import quick_start

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = [f"bench.sides.{name}" for name in ("ours", "bare", "ours091", "codec", "held")]


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What starts a module of ours as a fork: put ``-m`` and its name behind."""
    path = str(tmp_path_factory.mktemp("forks") / "socket")
    command = [sys.executable, "-m", "tests.cli.quick_start", "--serve", path, *MODULES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield [sys.executable, "-I", "-S", str(Path(quick_start.__file__)), path]
        server.stdin.close()


@pytest.fixture
def quick(forks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the measurements start what they measure so; a server's processor time is that of the clock, as its id is not known."""
    monkeypatch.setattr(processes, "PYTHON", forks)
    monkeypatch.setattr(processes.Server, "processor_seconds", lambda _: time.perf_counter())
