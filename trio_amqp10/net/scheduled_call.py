"""Have something called at a time, without a task that waits for it.

A connection that is idle has nothing to do but to keep time (2.4.5), and a task that only waits costs more
memory than all the rest of it. So one task for each ``trio.run`` waits for the earliest of
all deadlines, while there are any. It belongs to trio's own nursery, which outlives every connection.

Knows trio's clock; does not know what is due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.timer_heap import TimerHeap

from .waiters import Waiter

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ScheduledCall"]


class ScheduledCall:
    """Calls ``call`` at ``deadline`` or soon after, on trio's clock, never if that is infinite; it must not raise, nor wait."""

    __slots__ = ("_timer",)

    def __init__(self, deadline: float, call: Callable[[], object]) -> None:
        calls = _scheduled_calls()
        next_before = calls.due.next()
        self._timer = calls.due.add(deadline, call)
        if deadline < next_before:
            calls.wait_until_next()

    @property
    def call(self) -> Callable[[], object] | None:
        """What is to be called; None once it was called, or the call is cancelled."""
        return self._timer.item

    def cancel(self) -> None:
        """Do not call it, if it was not called yet."""
        self._timer.cancel()
        _scheduled_calls().check_empty()


class _ScheduledCalls:
    """What is due in one ``trio.run``, and the task that waits for it."""

    def __init__(self) -> None:
        self.due: TimerHeap[Callable[[], object]] = TimerHeap()
        self._bell = Waiter()
        self._runs = False

    def wait_until_next(self) -> None:
        """Something is due earlier than before."""
        if self._runs:
            self._bell.wake()
        else:
            self._runs = True
            trio.lowlevel.spawn_system_task(self._run, name="trio_amqp10 scheduled calls")

    def check_empty(self) -> None:
        """End the task if nothing is due any more."""
        if not self.due:
            self._bell.wake()

    async def _run(self) -> None:
        try:
            while self.due:
                with trio.CancelScope(deadline=self.due.next()):
                    await self._bell.wait()
                for call in self.due.pop_due(trio.current_time()):
                    call()
        finally:
            self._runs = False


_OF_THIS_RUN: Final[trio.lowlevel.RunVar[_ScheduledCalls]] = trio.lowlevel.RunVar(
    "trio_amqp10.scheduled_calls"
)


def _scheduled_calls() -> _ScheduledCalls:
    try:
        return _OF_THIS_RUN.get()
    except LookupError:
        made = _ScheduledCalls()
        _OF_THIS_RUN.set(made)
        return made
