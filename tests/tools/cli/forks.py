"""The server that forks commands (``quick_start``), for as long as tests need it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def forking(*modules: str, environment: Mapping[str, str] | None = None) -> Generator[list[str]]:
    """Start a server that has imported the command and these modules.

    Yields:
        what starts a fork: put the arguments of ``amqp10`` behind, or ``-m`` and a module.
    """
    script = str(Path(__file__).with_name("quick_start.py"))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "socket"))
        with subprocess.Popen(
            [sys.executable, "-m", "tests.tools.cli.quick_start", "--serve", path, *modules],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            try:
                yield [sys.executable, "-I", "-S", script, path]
            finally:
                server.stdin.close()


@contextmanager
def amqp10_that_forks() -> Generator[str]:
    """Yield a value of ``PATH`` with a folder in front in which ``amqp10`` is a fork."""
    with (
        forking(environment={**os.environ, "PYTHONWARNINGS": "error"}) as command,
        tempfile.TemporaryDirectory() as folder,
    ):
        program = Path(folder, "amqp10")
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)
        yield f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
