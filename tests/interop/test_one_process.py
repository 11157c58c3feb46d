"""The program of the page about the limits of one process: the same against our container and RabbitMQ 4, but for its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bench.processes import serve
from tests.test_docs import ROOT, blocks, promises

if TYPE_CHECKING:
    from pathlib import Path

    from .rabbitmq import Broker

PAGE = ROOT / "docs/how-to/one-process.rst"


def run(folder: Path, **environment: str) -> str:
    """What the program prints."""
    (program,) = [block.text for block in blocks(PAGE) if block.kind == "python"]
    (folder / "orders.py").write_text(program)
    done = subprocess.run(
        [sys.executable, str(folder / "orders.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_program_of_the_page_runs_against_rabbitmq(rabbitmq4: Broker, tmp_path: Path) -> None:
    printed = run(tmp_path, AMQP_URL=rabbitmq4.url, ORDERS=rabbitmq4.new_queue())
    assert promises(PAGE) == [printed]


@pytest.mark.parametrize("store", [False, True])
def test_program_of_the_page_runs_against_a_container(store: bool, tmp_path: Path) -> None:
    with serve(store=store) as server:
        assert promises(PAGE) == [run(tmp_path, AMQP_URL=server.url)]
