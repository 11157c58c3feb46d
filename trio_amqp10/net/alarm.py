"""Have something called at a time, without a task that waits for it.

A connection that is idle has nothing to do but to keep time (2.4.5), and a task that only waits costs more
memory than all the rest of it that is ours. So one task for each ``trio.run`` waits for the earliest of
all deadlines, while there are any. It belongs to trio's own nursery, which outlives every connection.

Knows trio's clock; does not know what is due.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final

import trio

from .waiting import Waiter

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Alarm"]


class Alarm:
    """Calls ``call`` at ``deadline`` or soon after, on trio's clock; it must not raise, nor wait.

    Attributes:
        deadline: when; never, where it is infinite.
        call: what; None once it was called, or the alarm is off.
    """

    __slots__ = ("call", "deadline")

    def __init__(self, deadline: float, call: Callable[[], object]) -> None:
        self.deadline = deadline
        self.call: Callable[[], object] | None = call
        if deadline < inf:
            _alarms().add(self)

    def off(self) -> None:
        """Do not call it, if it was not called yet."""
        if self.call is not None:
            self.call = None
            if self.deadline < inf:
                _alarms().drop()

    def __lt__(self, other: Alarm) -> bool:
        return self.deadline < other.deadline


class _Alarms:
    """All alarms of one ``trio.run``, the earliest first. Those that are off stay until they are half of all."""

    def __init__(self) -> None:
        self._due: list[Alarm] = []
        self._off = 0
        self._bell = Waiter()
        self._runs = False

    def add(self, alarm: Alarm) -> None:
        heappush(self._due, alarm)
        if not self._runs:
            self._runs = True
            trio.lowlevel.spawn_system_task(self._run, name="trio_amqp10 alarms")
        elif self._due[0] is alarm:
            self._bell.wake()

    def drop(self) -> None:
        self._off += 1
        if 2 * self._off > len(self._due):
            self._due = [alarm for alarm in self._due if alarm.call is not None]
            heapify(self._due)
            self._off = 0
            if not self._due:
                self._bell.wake()

    async def _run(self) -> None:
        try:
            while self._due:
                with trio.CancelScope(deadline=self._due[0].deadline):
                    await self._bell.wait()
                self._call_due(trio.current_time())
        finally:
            self._runs = False

    def _call_due(self, now: float) -> None:
        while self._due and (self._due[0].deadline <= now or self._due[0].call is None):
            alarm = heappop(self._due)
            if alarm.call is None:
                self._off -= 1
            else:
                call, alarm.call = alarm.call, None
                call()


_OF_THIS_RUN: Final[trio.lowlevel.RunVar[_Alarms]] = trio.lowlevel.RunVar("trio_amqp10.alarms")


def _alarms() -> _Alarms:
    try:
        return _OF_THIS_RUN.get()
    except LookupError:
        made = _Alarms()
        _OF_THIS_RUN.set(made)
        return made
