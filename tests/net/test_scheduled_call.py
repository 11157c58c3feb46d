"""Scheduled calls are made in time, and leave nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_amqp10.net.scheduled_call import ScheduledCall, _scheduled_calls

if TYPE_CHECKING:
    from collections.abc import Callable


def noting(rung: list[tuple[str, float]], name: str) -> Callable[[], None]:
    began = trio.current_time()
    return lambda: rung.append((name, round(trio.current_time() - began, 6)))


async def test_scheduled_calls_are_made_in_their_order_and_in_time(autojump_clock: MockClock) -> None:
    rung: list[tuple[str, float]] = []
    now = trio.current_time()
    for seconds in (5, 1, 3):
        ScheduledCall(now + seconds, noting(rung, f"after {seconds}"))
    await trio.sleep(2)
    ScheduledCall(now + 2.5, noting(rung, "a later one that is earlier"))
    await trio.sleep(10)
    assert rung == [
        ("after 1", 1.0),
        ("a later one that is earlier", 0.5),
        ("after 3", 3.0),
        ("after 5", 5.0),
    ]


async def test_scheduled_call_is_not_made_when_it_is_cancelled(autojump_clock: MockClock) -> None:
    rung: list[tuple[str, float]] = []
    now = trio.current_time()
    first, second, third = [ScheduledCall(now + each, noting(rung, str(each))) for each in (1, 2, 3)]
    first.cancel()
    first.cancel()
    await trio.sleep(2.5)
    second.cancel()  # it was called: nothing happens
    third.cancel()
    await trio.sleep(10)
    assert rung == [("2", 2.0)]


async def test_call_at_no_time_is_never_made(autojump_clock: MockClock) -> None:
    rung: list[tuple[str, float]] = []
    scheduled = ScheduledCall(float("inf"), noting(rung, "never"))
    await trio.sleep(20)
    scheduled.cancel()
    assert not rung
    assert scheduled.call is None


async def test_cancelled_calls_are_let_go(autojump_clock: MockClock) -> None:
    later = trio.current_time() + 3600
    kept = ScheduledCall(later, lambda: None)
    for _ in range(1000):
        ScheduledCall(later, lambda: None).cancel()
    assert len(_scheduled_calls().due) + _scheduled_calls().due.empty < 50
    kept.cancel()
    assert not _scheduled_calls().due


async def test_scheduled_calls_have_no_task_when_there_are_none(autojump_clock: MockClock) -> None:
    def tasks() -> int:
        return trio.lowlevel.current_statistics().tasks_living

    before = tasks()
    rung: list[tuple[str, float]] = []
    for _ in range(2):
        scheduled = ScheduledCall(trio.current_time() + 1, noting(rung, "rung"))
        other = ScheduledCall(trio.current_time() + 2, noting(rung, "other"))
        await wait_all_tasks_blocked()
        assert tasks() == before + 1
        other.cancel()
        await trio.sleep(1.5)
        assert tasks() == before
        assert scheduled.call is None
        ScheduledCall(trio.current_time() + 1, noting(rung, "cancelled")).cancel()
        await wait_all_tasks_blocked()
        assert tasks() == before
    assert rung == [("rung", 1.0)] * 2
