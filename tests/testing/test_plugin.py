"""The fixtures for pytest: beside pytest-trio, and without it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

TESTS = """
import trio
from trio.testing import trio_test

import trio_amqp10 as amqp

{mark}
async def test_container(amqp_container):
    async with amqp_container.connect() as conn:
        assert conn.remote.container_id

def test_url(amqp_url):
    async def main():
        async with amqp.open_connection(amqp_url) as conn:
            assert conn.remote.container_id

    trio.run(main)
"""


@pytest.mark.parametrize(
    ("options", "mark"),
    [
        pytest.param(["-p", "no:trio"], "@trio_test", id="without"),
        pytest.param(["-o", "trio_mode=true"], "", id="beside"),
    ],
)
def test_fixtures_work_with_and_without_pytest_trio(options: list[str], mark: str, tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(TESTS.format(mark=mark))
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "2 passed" in run.stdout, run.stdout + run.stderr
