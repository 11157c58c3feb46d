"""Alarms are called in time, and leave nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_amqp10.net.scheduled_call import ScheduledCall, _timers

if TYPE_CHECKING:
    from collections.abc import Callable


def noting(rung: list[tuple[str, float]], name: str) -> Callable[[], None]:
    began = trio.current_time()
    return lambda: rung.append((name, round(trio.current_time() - began, 6)))


async def test_alarms_are_called_in_their_order_and_in_time(autojump_clock: MockClock) -> None:
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


async def test_alarm_is_not_called_when_it_is_off(autojump_clock: MockClock) -> None:
    rung: list[tuple[str, float]] = []
    now = trio.current_time()
    first, second, third = [ScheduledCall(now + each, noting(rung, str(each))) for each in (1, 2, 3)]
    first.off()
    first.off()
    await trio.sleep(2.5)
    second.off()  # it was called: nothing happens
    third.off()
    await trio.sleep(10)
    assert rung == [("2", 2.0)]


async def test_alarm_at_no_time_is_never_called(autojump_clock: MockClock) -> None:
    rung: list[tuple[str, float]] = []
    alarm = ScheduledCall(float("inf"), noting(rung, "never"))
    await trio.sleep(20)
    alarm.off()
    assert not rung
    assert alarm.call is None


async def test_alarms_that_are_off_are_let_go(autojump_clock: MockClock) -> None:
    later = trio.current_time() + 3600
    kept = ScheduledCall(later, lambda: None)
    for _ in range(1000):
        ScheduledCall(later, lambda: None).off()
    assert len(_timers().due) + _timers().due.empty < 50
    kept.off()
    assert not _timers().due


async def test_alarms_have_no_task_when_there_are_none(autojump_clock: MockClock) -> None:
    def tasks() -> int:
        return trio.lowlevel.current_statistics().tasks_living

    before = tasks()
    rung: list[tuple[str, float]] = []
    for _ in range(2):
        alarm = ScheduledCall(trio.current_time() + 1, noting(rung, "rung"))
        other = ScheduledCall(trio.current_time() + 2, noting(rung, "other"))
        await wait_all_tasks_blocked()
        assert tasks() == before + 1
        other.off()
        await trio.sleep(1.5)
        assert tasks() == before
        assert alarm.call is None
        ScheduledCall(trio.current_time() + 1, noting(rung, "off")).off()
        await wait_all_tasks_blocked()
        assert tasks() == before
    assert rung == [("rung", 1.0)] * 2
