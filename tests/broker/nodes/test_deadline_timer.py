"""One timer for the first that is due of many."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.broker.nodes.deadline_timer import DeadlineTimer
from trio_amqp10.container import Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock


class Calls:
    """Timers that ring when they are told to."""

    def __init__(self) -> None:
        self.set: list[tuple[float, Callable[[], object]]] = []

    def call_at(self, deadline: float, call: Callable[[], object]) -> Calls:
        self.set.append((deadline, call))
        return self

    def cancel(self) -> None:
        self.set.pop()

    def wake_writer(self) -> None:
        self.set.pop()[1]()


def test_deadline_timer_has_one_timer_for_the_first_that_is_due() -> None:
    calls = Calls()
    due = [inf]
    timer = DeadlineTimer(lambda: due[0], lambda: None, calls.call_at)
    for at, expected in ((inf, []), (5.0, [5.0]), (7.0, [5.0]), (3.0, [3.0])):
        due[0] = at
        timer.check()
        assert [deadline for deadline, _ in calls.set] == expected
    timer.cancel()
    assert not calls.set


def test_deadline_timer_makes_a_pause_where_much_is_due() -> None:
    calls = Calls()
    rung: list[str] = []
    timer = DeadlineTimer(lambda: 1.0, lambda: rung.append("x"), calls.call_at)
    timer.check()
    calls.wake_writer()
    assert rung == ["x"]
    assert [deadline for deadline, _ in calls.set] == [1.01]


def test_deadline_timer_is_set_again_where_what_is_due_fails() -> None:
    calls = Calls()

    def fail() -> None:
        raise RuntimeError("no")

    timer = DeadlineTimer(lambda: 9.0, fail, calls.call_at)
    timer.schedule(1.0)
    with pytest.raises(RuntimeError):
        calls.wake_writer()
    assert [deadline for deadline, _ in calls.set] == [9.0]


async def test_deadline_timer_without_timers_calls_nobody(autojump_clock: MockClock) -> None:
    topic = Topic("t")
    topic._deadline_timer.schedule(1.0)
    await trio.sleep(2)
    assert topic._deadline_timer._timer is None
