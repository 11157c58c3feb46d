"""Timers of a container: functions that are called at a time.

A container has no task of its own. So the task that waits for the next deadline runs beside ``serve`` or a connection,
only while there is a deadline, and moves to another when that one ends. If there is neither, what is due is
done first of all when there is one again.

Knows the time; does not know what is done.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from trio_amqp10.timer_heap import Timer, TimerHeap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .background_tasks import TaskRunner
    from .connected_peer import ConnectedPeer

__all__ = ["Timers"]

_log = logging.getLogger("trio_amqp10.container")


class Timers:
    """Calls functions when their time has come.

    Args:
        now: seconds on trio's clock.
        runners: beside which the task may run.
    """

    def __init__(self, now: Callable[[], float], runners: Iterable[TaskRunner | ConnectedPeer]) -> None:
        self._now = now
        self._runners = runners
        self._due: TimerHeap[Callable[[], object]] = TimerHeap()
        self._runner: TaskRunner | ConnectedPeer | None = None
        self._scope = trio.CancelScope()

    def call_at(self, deadline: float, call: Callable[[], object]) -> Timer[Callable[[], object]]:
        """Have ``call`` called, synchronously, at ``deadline`` or soon after; what it raises is logged.

        Returns:
            What cancels it. A function that waits for its time keeps nothing open.
        """
        timer = self._due.add(deadline, call)
        if self._runner is None:
            self._move()
        elif deadline < self._scope.deadline:
            self._scope.deadline = deadline
        return timer

    def join(self, runner: TaskRunner | ConnectedPeer) -> None:
        """This one is open: tasks may run beside it."""
        self._run_due()
        if self._runner is None and self._due:
            self._start(runner)

    def leave(self, runner: TaskRunner | ConnectedPeer) -> None:
        """This one ends."""
        if self._runner is runner:
            self._runner = None
            self._scope.cancel()
            self._scope = trio.CancelScope()
            self._move()

    def _move(self) -> None:
        if self._due:
            runner = next((each for each in self._runners if each.open), None)
            if runner is not None:
                self._start(runner)

    def _start(self, runner: TaskRunner | ConnectedPeer) -> None:
        assert runner.nursery is not None
        self._runner = runner
        self._scope = trio.CancelScope(deadline=self._due.next())
        runner.nursery.start_soon(self._wait, self._scope)

    async def _wait(self, scope: trio.CancelScope) -> None:
        while True:
            with scope:
                await trio.sleep_forever()
            if self._scope is not scope:
                return  # its host ends, and the next waits
            self._run_due()
            if not self._due:
                self._runner = None
                return
            scope = self._scope = trio.CancelScope(deadline=self._due.next())

    def _run_due(self) -> None:
        for call in self._due.pop_due(self._now()):
            try:
                call()
            except Exception:
                _log.exception("a timer failed")
