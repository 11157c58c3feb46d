"""Tasks of a container run in the nursery that it was given, and fail alone."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from trio_amqp10.broker.background_tasks import TaskRunner


class Hub:
    """A container, as far as its runner asks."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def check_idle(self, runner: Any) -> None:
        self.told.append(runner.working)


async def test_tasks_are_counted_while_they_run_and_the_container_is_told_of_each_end() -> None:
    hub: Any = Hub()
    runner = TaskRunner(hub)
    assert not runner.open
    done: list[str] = []
    go = trio.Event()

    async def work(name: str) -> None:
        await go.wait()
        done.append(name)

    async with trio.open_nursery() as nursery:
        runner.begin(nursery)
        assert runner.open
        runner.start_soon(work, "one")
        runner.start_soon(work, "two")
        assert runner.working == 2
        go.set()
    assert sorted(done) == ["one", "two"]
    assert runner.working == 0
    assert hub.told == [1, 0]


@pytest.mark.logs_errors
async def test_task_that_fails_is_logged_and_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    hub: Any = Hub()
    runner = TaskRunner(hub)
    done: list[str] = []

    async def fail() -> None:
        raise ValueError("a bug")

    async def work() -> None:
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        done.append("work")

    async with trio.open_nursery() as nursery:
        runner.begin(nursery)
        runner.start_soon(fail)
        runner.start_soon(work)
    assert done == ["work"]
    assert runner.working == 0
    assert "a bug" in caplog.text


async def test_task_that_is_cancelled_is_counted_no_more() -> None:
    hub: Any = Hub()
    runner = TaskRunner(hub)
    async with trio.open_nursery() as nursery:
        runner.begin(nursery)
        runner.start_soon(trio.sleep_forever)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert runner.working == 0
    assert hub.told == [0]
