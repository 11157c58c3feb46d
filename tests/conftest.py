"""How ``async def`` tests run: each under ``trio.run``, and no longer than half a minute of its clock.

A test that takes the fixture ``autojump_clock`` runs on a clock that jumps whenever all tasks wait,
so that time-outs take no time; it may last an hour of that clock. Only over memory streams: sockets and threads do not hold it still.
"""

from __future__ import annotations

import inspect
import os
from functools import partial
from typing import Any

import pytest
import trio
from hypothesis import settings
from trio.testing import MockClock

# The same examples in every run, so that the coverage gate does not depend on luck;
# HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

LIMIT = 30.0
JUMPING_LIMIT = 3600.0


@pytest.fixture
def autojump_clock() -> MockClock:
    """The clock of this test; ``trio.current_time()`` starts anywhere and jumps to the next deadline."""
    return MockClock(autojump_threshold=0)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine function to its end; leave all others alone."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    clock = next((value for value in arguments.values() if isinstance(value, MockClock)), None)
    limit = LIMIT if clock is None else JUMPING_LIMIT
    trio.run(partial(_limited, pyfuncitem.obj, arguments, limit), clock=clock)
    return True


async def _limited(test: Any, arguments: dict[str, Any], limit: float) -> None:
    with trio.fail_after(limit):
        await test(**arguments)
