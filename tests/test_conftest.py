"""The limit of time of every async test."""

from __future__ import annotations

import pytest
import trio

from .conftest import run_limited


async def test_async_test_runs_with_the_limit(request: pytest.FixtureRequest) -> None:
    marker = request.node.get_closest_marker("trio")
    assert marker.kwargs["run"] is run_limited


def test_limit_ends_what_hangs() -> None:
    with pytest.raises(trio.TooSlowError):
        run_limited(trio.sleep_forever, limit=0.0)
