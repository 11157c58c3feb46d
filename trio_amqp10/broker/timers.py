"""Timers of a container: functions that are called at a time.

A container has no task of its own. So the task that waits for the next deadline runs beside ``serve`` or a connection, only
while there is a deadline, and moves to another one when that ends. If there is none, due functions are called first when
there is one again.

Knows the time; does not know what is done.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from trio_amqp10.core.timer_heap import Timer, TimerHeap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .background_tasks import TaskRunner
    from .peer_interfaces import ConnectedPeer

_log = logging.getLogger("trio_amqp10.container")


class Timers:
    """Calls functions when their time has come.

    Args:
        now: returns seconds on trio's clock.
        runners: the connections and listeners beside which the task may run.
    """

    def __init__(self, now: Callable[[], float], runners: Iterable[TaskRunner | ConnectedPeer]) -> None:
        self._now = now
        self._runners = runners
        self._due: TimerHeap[Callable[[], object]] = TimerHeap()
        self._runner: TaskRunner | ConnectedPeer | None = None
        self._scope = trio.CancelScope()

    def call_at(self, deadline: float, call: Callable[[], object]) -> Timer[Callable[[], object]]:
        """Call ``call``, synchronously, at ``deadline`` or soon after.

        An exception is logged. A function that waits for its time keeps nothing open.

        Returns:
            The timer, which can be cancelled.
        """
        timer = self._due.add(deadline, call)
        if self._runner is None:
            self._move()
        elif deadline < self._scope.deadline:
            self._scope.deadline = deadline
        return timer

    def join(self, runner: TaskRunner | ConnectedPeer) -> None:
        """Note a runner that is open, so that the task may run there."""
        self._run_due()
        if self._runner is None and self._due:
            self._start(runner)

    def leave(self, runner: TaskRunner | ConnectedPeer) -> None:
        """Leave a runner that ends; the wait continues beside another."""
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
                return  # The runner of this task ends; a task beside another runner waits now.
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
