"""What every test is held to: a limit of time, and no error in the log that it does not expect."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from .conftest import run_limited

ROOT = Path(__file__).resolve().parents[1]
LOGGING = """
import logging, pytest

def fail():
    logging.getLogger("trio_amqp10.container").error("it failed")

def test_silent(): pass

def test_surprised(): fail()

@pytest.mark.logs_errors
def test_prepared(): fail()

@pytest.mark.logs_errors
def test_deceived(): pass

@pytest.mark.logs_errors
def test_skipped(): pytest.skip("its peer is missing")

@pytest.fixture
def peer(): pytest.skip("its peer is missing")

@pytest.mark.logs_errors
def test_without_peer(peer): pass
"""


async def test_async_test_runs_with_the_limit(request: pytest.FixtureRequest) -> None:
    marker = request.node.get_closest_marker("trio")
    assert marker.kwargs["run"] is run_limited


def test_limit_ends_what_hangs() -> None:
    with pytest.raises(trio.TooSlowError):
        run_limited(trio.sleep_forever, limit=0.0)


def test_tests_can_be_interrupted_where_whoever_started_them_cannot() -> None:
    told = (
        "import signal, tests.conftest; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    ignoring = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    done = subprocess.run(
        [sys.executable, "-c", told], preexec_fn=ignoring, stdout=subprocess.PIPE, check=True
    )
    assert done.stdout == b"True\n"


def test_error_in_the_log_fails_a_test_unless_it_is_expected_and_then_its_absence_does(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_logging.py").write_text(LOGGING)
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "tests.conftest",
        str(tmp_path),
    ]
    done = subprocess.run(run, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    assert "4 passed, 2 skipped, 2 errors" in done.stdout
    assert "at teardown of test_surprised _" in done.stdout
    assert "trio_amqp10.container: it failed" in done.stdout
    assert "at teardown of test_deceived _" in done.stdout
