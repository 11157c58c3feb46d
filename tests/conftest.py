"""How tests run: ``async def`` tests by pytest-trio, and no longer than two minutes of their clock.

A test that takes the fixture ``autojump_clock`` of pytest-trio runs on a clock that jumps when all tasks wait, so that
time-outs take no time; it may last an hour of that clock. Only over memory streams: sockets and threads do not stop that clock.

The library logs an error where something failed that no peer is to blame for. A test in which it does fails, unless it is
marked ``logs_errors``; and one that is marked fails if it passes and the library logs none.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import settings
from trio.testing import MockClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A script that starts a job in the background has it, and all that it starts, ignore Ctrl-C; tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, so that the coverage gate does not depend on luck, and few of them where it is
# measured; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("few", deadline=None, derandomize=True, max_examples=10)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

LIMIT = float(os.environ.get("AMQP10_TEST_LIMIT", "120"))
"""Seconds. It ends what hangs; it is no measure of speed, so a busy machine has to be far from it."""
JUMPING_LIMIT = 3600.0

_PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have pytest-trio run each async test with a limit of time, unless the test brings a runner of its own."""
    for item in items:
        marker = item.get_closest_marker("trio")
        if marker is not None and marker.kwargs.get("run", trio.run) is trio.run:
            item.add_marker(pytest.mark.trio(run=run_limited), append=False)


def pytest_collection() -> None:
    """Keep the garbage collector off what is imported and collected: it stays to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Have the garbage collector see what is made from now on alone."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def no_collector() -> Generator[None]:
    """Keep pauses of the garbage collector out of what a test measures; it collects where the test asks for it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether the test itself has passed: one that was skipped may have logged nothing."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture(autouse=True)
def _errors_that_nobody_expects(request: pytest.FixtureRequest) -> Generator[None]:
    library, kept = logging.getLogger("trio_amqp10"), _Kept()
    library.addHandler(kept)
    try:
        yield
    finally:
        library.removeHandler(kept)
    expected = request.node.get_closest_marker("logs_errors") is not None
    if kept.records and not expected:
        told = "\n".join(f"{record.name}: {record.getMessage()}" for record in kept.records)
        pytest.fail(f"the library logged meanwhile:\n{told}", pytrace=False)
    if expected and not kept.records and request.node.stash.get(_PASSED, False):
        pytest.fail("it is marked logs_errors, and the library logged none", pytrace=False)


def run_limited(
    test: Callable[[], Awaitable[Any]], clock: Any = None, *, limit: float = LIMIT, **options: Any
) -> Any:
    """``trio.run`` that fails if the test is not over in time."""

    async def limited() -> Any:
        with trio.fail_after(JUMPING_LIMIT if isinstance(clock, MockClock) else limit):
            return await test()

    return trio.run(limited, clock=clock, **options)
