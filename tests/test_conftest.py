"""The limit of time of every async test."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial

import pytest
import trio

from .conftest import run_limited


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
