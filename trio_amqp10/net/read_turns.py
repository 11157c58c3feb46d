"""Fair queueing of work between the connections of a process.

In one pass trio runs every task that is ready. If each busy connection did a slice of work in each pass, a pass would take as
long as there are busy connections, and each message of an idle connection takes several passes. So at most one slice of a busy
connection runs in a pass, whatever the number of busy connections.

Start-time fair queueing selects the next connection. The clock of the queue counts the work, in seconds, that each waiting
connection has had. Each connection has an account on this clock: the point where its last slice ended. Work moves the account
forward; the connection with the lowest account is next, and serving it sets the clock to its account. An account never lags
behind the clock: an idle connection does not save up time. A connection that is less than ``_AHEAD`` ahead of the clock has
used less than its fair share, and its next read is taken at once, unless its peer has not opened it yet: the pump lets all
unopened connections take turns, and because an account begins at the clock, they are served before the busy ones.

A slice bounds the work of one engine, but the work that follows from it may take longer. So each turn ends a little after it
began: code that does long work calls ``is_over`` between its steps, and passes the rest to ``later``. One task does all
work left, piece by piece, and takes turns with the connections. A turn is measured by the work of this thread: time that
another process had the processor does not count. The clock for that is read only when time is up on the usual clock, which costs a
quarter as much. Outside of any turn, as in a task of the user, ``is_over`` is always False.

Knows neither engines nor streams. There is one ``ReadTurns`` for each ``trio.run``, because its tasks share one loop.
"""

from __future__ import annotations

import logging
from collections import deque
from heapq import heappop, heappush
from math import inf
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("trio_amqp10.pump")

_AHEAD: Final = 0.002
"""Seconds of work by which a connection may be ahead without taking turns.

This is a few slices. It must be more than the work to open a connection and some links, or to send a message and
settle another. If five hundred busy connections wait, the clock moves by this amount in the time in which all of them do so
much work: about a second.
"""

_MOST: Final = 0.001
"""The most seconds charged for one slice.

A longer slice contained other work than that of the peer's frames.
"""


_LENGTH: Final = 0.001
"""Seconds after which a turn is over."""


class ReadTurns:
    """The queue of connections for turns, and the work left for later turns.

    Args:
        clock: returns seconds; the difference of two readings is charged. If None, ``perf_counter`` is used, and
            ``thread_time`` ends a turn.

    Attributes:
        clock: as given.
        served: seconds of work that each waiting connection has had: the clock of the queue.
        holder: the connection whose turn it is; never None while others wait.
    """

    __slots__ = (
        "_idle",
        "_later",
        "_numbered",
        "_until",
        "_waiting",
        "_work_clock",
        "_worked_until",
        "_works",
        "clock",
        "holder",
        "served",
    )

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock: Final = perf_counter if clock is None else clock
        self.served: float = 0.0
        self.holder: ReadTurn | None = None
        self._waiting: list[tuple[float, int, ReadTurn]] = []
        self._numbered = 0
        self._until = inf
        self._work_clock: Callable[[], float] = thread_time if clock is None else clock
        self._worked_until = inf
        self._later: deque[Callable[[], object]] = deque()
        self._works = False
        self._idle = trio.lowlevel.ParkingLot()

    # -- the end of a turn ------------------------------------------------------------------

    def begin(self) -> float:
        """Begin a turn in this task, and return the time of the clock.

        Call ``end`` before the task waits.
        """
        now = self.clock()
        self._until = now + _LENGTH
        self._worked_until = self._work_clock() + _LENGTH
        return now

    def end(self) -> None:
        """End the turn: the code that runs next is part of no turn."""
        self._until = inf

    def run(self, call: Callable[[], object]) -> None:
        """Call a function as a turn of its own, or within the turn that runs.

        Work that the function leaves is done later.
        """
        if self._until != inf:
            call()
            return
        self.begin()
        try:
            call()
        finally:
            self.end()

    def is_over(self) -> bool:
        """Whether the current turn's time is used up; then leave the rest to ``later``.

        False while no turn runs.
        """
        now = self.clock()
        if now < self._until:
            return False
        left = self._worked_until - self._work_clock()
        if left <= 0:
            return True
        self._until = now + left
        return False

    def later(self, call: Callable[[], object]) -> None:
        """Call ``call`` in a later turn, after all work that was left before.

        Its exceptions are logged. It may leave more work to ``later``. Work still left at the end of the ``trio.run`` is dropped.
        """
        self._later.append(call)
        if not self._works:
            self._works = True
            trio.lowlevel.spawn_system_task(self._work, name="trio_amqp10 work of later turns")

    async def until_idle(self) -> None:
        """Wait until no work is left. Cancelled: the work is done anyway."""
        await trio.lowlevel.checkpoint()
        while self._works:
            await self._idle.park()

    async def _work(self) -> None:
        turn = ReadTurn(self)
        try:
            await turn.take()
            while self._later:
                began = turn.began()
                while True:
                    try:
                        self._later.popleft()()
                    except Exception:
                        _log.exception("work that was left for later failed")
                    if not self._later or self.is_over():
                        break
                turn.charge(began)
                await turn.next()
        finally:
            self._works = False
            turn.release()
            self._idle.unpark_all()

    # -- whose turn it is -------------------------------------------------------------------

    def first(self) -> ReadTurn | None:
        """Return the next connection in the queue; None if none waits."""
        waiting = self._waiting
        while waiting:
            turn = waiting[0][2]
            if turn.task is not None:
                return turn
            heappop(waiting)  # its task was cancelled
        return None

    def hand_on(self) -> None:
        """Give the turn to the next connection."""
        self.holder = turn = self.first()
        if turn is not None:
            heappop(self._waiting)
            assert turn.task is not None
            trio.lowlevel.reschedule(turn.task)
            turn.task = None

    async def wait(self, turn: ReadTurn) -> None:
        """Wait for ``turn``. Cancelled: it is no longer in the queue."""
        self._numbered += 1
        turn.task = trio.lowlevel.current_task()
        heappush(self._waiting, (turn.account, self._numbered, turn))

        def abort(_: object) -> trio.lowlevel.Abort:
            turn.task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)


class ReadTurn:
    """The share of one connection in a ``ReadTurns``.

    Args:
        turns: the queue; that of this ``trio.run`` if None.

    Attributes:
        account: where its last slice ended, on the clock of the queue.
        task: the task that waits for the turn, or None.
        turns: the queue.
    """

    __slots__ = ("account", "task", "turns")

    def __init__(self, turns: ReadTurns | None = None) -> None:
        self.turns: Final = turns or current_turns()
        self.account: float = self.turns.served
        self.task: trio.lowlevel.Task | None = None

    @property
    def held(self) -> bool:
        """Whether this connection has the turn."""
        return self.turns.holder is self

    @property
    def due(self) -> bool:
        """Whether it has used more than its share, and must take turns."""
        return self.account - self.turns.served >= _AHEAD

    def began(self) -> float:
        """Begin a turn of limited length, and return its time for ``charge``."""
        return self.turns.begin()

    def charge(self, began: float) -> None:
        """Charge the work since ``began``, and end the turn."""
        turns = self.turns
        turns.end()
        self.account = max(self.account, turns.served) + min(_MOST, turns.clock() - began)

    async def take(self) -> None:
        """Wait for the turn, unless no other connection has it.

        Cancelled: it does not have the turn.
        """
        turns = self.turns
        if turns.holder is None:
            turns.holder = self
        else:
            await turns.wait(self)
        self._serve()

    async def next(self) -> None:
        """Give the turn to others, then wait for the next one.

        Cancelled: it may still have the turn; call ``release``.
        """
        turns = self.turns
        if turns.holder is None:
            turns.holder = self
        if turns.holder is self:
            first = turns.first()
            if first is None or self.account <= first.account:
                await trio.lowlevel.checkpoint()
                self._serve()
                return
            turns.hand_on()
        await turns.wait(self)
        self._serve()

    async def rest(self) -> None:
        """Give up the turn; in this pass only to a connection that already waits.

        Cancelled: it may still have the turn; call ``release``.
        """
        if self.turns.first() is None:
            await trio.lowlevel.checkpoint()
        self.release()

    def release(self) -> None:
        """Give up the turn, if it has it."""
        if self.turns.holder is self:
            self.turns.hand_on()

    def _serve(self) -> None:
        turns = self.turns
        turns.served = max(turns.served, self.account)


_OF_THIS_RUN: Final[trio.lowlevel.RunVar[ReadTurns]] = trio.lowlevel.RunVar("trio_amqp10.turns")


def current_turns() -> ReadTurns:
    """Return the queue of this ``trio.run``.

    Raises:
        RuntimeError: no trio runs in this thread.
    """
    try:
        return _OF_THIS_RUN.get()
    except LookupError:
        made = ReadTurns()
        _OF_THIS_RUN.set(made)
        return made
