"""Calls at a given time, without a waiting task for each of them.

An idle connection only has to keep its deadlines (2.4.5), and a task that waits for them would need more memory than the rest
of the connection. So one task for each ``trio.run`` waits for the earliest of all deadlines, while there are any. It belongs
to trio's own nursery, which outlives every connection.

Knows trio's clock; does not know the purpose of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.core.timer_heap import TimerHeap

from .waiters import Waiter

if TYPE_CHECKING:
    from collections.abc import Callable


class ScheduledCall:
    """One call of ``call``, at ``deadline`` or soon after, on trio's clock.

    With an infinite deadline it is never made. ``call`` must neither raise nor wait.
    """

    __slots__ = ("_timer",)

    def __init__(self, deadline: float, call: Callable[[], object]) -> None:
        calls = _scheduled_calls()
        next_before = calls.due.next()
        self._timer = calls.due.add(deadline, call)
        if deadline < next_before:
            calls.wait_until_next()

    @property
    def call(self) -> Callable[[], object] | None:
        """The function to call; None if it was called or cancelled."""
        return self._timer.item

    def cancel(self) -> None:
        """Do not make the call, if it was not made yet."""
        self._timer.cancel()
        _scheduled_calls().check_empty()


class _ScheduledCalls:
    """All calls of one ``trio.run``, and the task that waits for them."""

    def __init__(self) -> None:
        self.due: TimerHeap[Callable[[], object]] = TimerHeap()
        self._bell = Waiter()
        self._runs = False

    def wait_until_next(self) -> None:
        """Wait for the first deadline, which is now earlier than before."""
        if self._runs:
            self._bell.wake()
        else:
            self._runs = True
            trio.lowlevel.spawn_system_task(self._run, name="trio_amqp10 scheduled calls")

    def check_empty(self) -> None:
        """End the task if no call is left."""
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
