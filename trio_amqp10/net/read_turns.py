"""Fair queueing of work between the connections of a process.

Trio runs every task that can run once in a pass. With a slice of work for each busy connection a pass takes as long as there are busy
connections, and each message of an idle one takes several passes. So no more than one slice of a busy connection runs in
a pass, whatever the number of these.

Which connection is next is decided by start-time fair queueing. The clock of the queue is the work, in seconds, that each of the
waiting connections has had. A connection has an account on this clock: where its last slice ended. Work moves the account on; the
connection with the lowest account is next, and serving it sets the clock to its account. An account never lags behind
the clock: nobody saves up. A connection that is less than ``_AHEAD`` ahead of the clock has used less than its
fair share, and its next read is taken at once, unless its peer has not opened it yet: the pump has all strangers take turns,
and since an account begins at the clock, they are served before those that are busy.

A slice is so much that one engine reads, and what it leads to may take longer. So each turn has an end, a little after it began:
who does long work asks ``is_over`` between its steps, and leaves the rest to ``later``. All that was left is done, piece by piece, by one
task that takes turns with the connections. What ends a turn is the work of this thread: that another process had the processor meanwhile does not
count, and the clock that tells it is asked only when time is up on the usual one, which costs a quarter. Where no turn runs, as in a task of the user's, no turn is over.

Knows nothing of engines and streams. There is one ``ReadTurns`` for each ``trio.run``, since that is what its tasks share.
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

__all__ = ["ReadTurn", "ReadTurns", "current_turns"]

_log = logging.getLogger("trio_amqp10.pump")

_AHEAD: Final = 0.002
"""Seconds of work that a connection may have had more than others before it waits for its turn: a few slices.

What it takes to open a connection and some links, or to send a message and settle another, must be less. Where five
hundred busy connections wait, the clock takes as long to move on by this as all of them to do so much work: about a second.
"""

_MOST: Final = 0.001
"""Seconds that one slice may be charged with: what is longer was not the work of the peer's frames alone."""


_LENGTH: Final = 0.001
"""Seconds after which a turn is over."""


class ReadTurns:
    """Whose turn it is, and what was left for later turns.

    Args:
        clock: seconds; what is charged is the difference of two. ``perf_counter`` if None, and what ends a turn is ``thread_time``.

    Attributes:
        clock: as given.
        served: seconds of work that each connection that waits has had: the clock of the queue.
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
        """A turn begins now, in this task; returns the time of the clock. Call ``end`` before the task waits."""
        now = self.clock()
        self._until = now + _LENGTH
        self._worked_until = self._work_clock() + _LENGTH
        return now

    def end(self) -> None:
        """The turn has ended, and what runs next is part of none."""
        self._until = inf

    def run(self, call: Callable[[], object]) -> None:
        """Call a function as a turn of its own, or as part of the turn that runs: what it leaves is done later."""
        if self._until != inf:
            call()
            return
        self.begin()
        try:
            call()
        finally:
            self.end()

    def is_over(self) -> bool:
        """Whether the turn that runs has had its time: leave the rest to ``later``. False while none runs."""
        now = self.clock()
        if now < self._until:
            return False
        left = self._worked_until - self._work_clock()
        if left <= 0:
            return True
        self._until = now + left
        return False

    def later(self, call: Callable[[], object]) -> None:
        """Have ``call`` called in a later turn, after all others that were left before; what it raises is logged.

        It may leave work to ``later`` in its turn. At the end of the ``trio.run``, what is still left is not done.
        """
        self._later.append(call)
        if not self._works:
            self._works = True
            trio.lowlevel.spawn_system_task(self._work, name="trio_amqp10 work of later turns")

    async def until_idle(self) -> None:
        """Wait until nothing is left. Cancelled: it is done all the same."""
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
        """The connection that is next; None if none waits."""
        waiting = self._waiting
        while waiting:
            turn = waiting[0][2]
            if turn.task is not None:
                return turn
            heappop(waiting)  # it was cancelled
        return None

    def hand_on(self) -> None:
        """Let the next one have its turn."""
        self.holder = turn = self.first()
        if turn is not None:
            heappop(self._waiting)
            assert turn.task is not None
            trio.lowlevel.reschedule(turn.task)
            turn.task = None

    async def wait(self, turn: ReadTurn) -> None:
        """Until it is its turn. Cancelled: it waits no more."""
        self._numbered += 1
        turn.task = trio.lowlevel.current_task()
        heappush(self._waiting, (turn.account, self._numbered, turn))

        def abort(_: object) -> trio.lowlevel.Abort:
            turn.task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)


class ReadTurn:
    """What one connection has had of a ``ReadTurns``, by default that of this ``trio.run``.

    Attributes:
        account: where its last slice ended, on the clock of the queue.
        task: that waits for its turn, or None.
        turns: where it takes its turns.
    """

    __slots__ = ("account", "task", "turns")

    def __init__(self, turns: ReadTurns | None = None) -> None:
        self.turns: Final = turns or current_turns()
        self.account: float = self.turns.served
        self.task: trio.lowlevel.Task | None = None

    @property
    def held(self) -> bool:
        """Whether it is its turn."""
        return self.turns.holder is self

    @property
    def due(self) -> bool:
        """Whether it has had more than its share, and has to take turns."""
        return self.account - self.turns.served >= _AHEAD

    def began(self) -> float:
        """Work begins now, and with it a turn of limited length; see ``charge``."""
        return self.turns.begin()

    def charge(self, began: float) -> None:
        """Charge the work that began then, and end the turn."""
        turns = self.turns
        turns.end()
        self.account = max(self.account, turns.served) + min(_MOST, turns.clock() - began)

    async def take(self) -> None:
        """Wait for its turn: not at all, if no other has it. Cancelled: it has no turn."""
        turns = self.turns
        if turns.holder is None:
            turns.holder = self
        else:
            await turns.wait(self)
        self._serve()

    async def next(self) -> None:
        """Let others have their turn, then take another. Cancelled: as it is, see ``release``."""
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
        """No more work: give up the turn, but in this pass only to one that waits already. Cancelled: see ``release``."""
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
    """The turns of this ``trio.run``.

    Raises:
        RuntimeError: no trio runs in this thread.
    """
    try:
        return _OF_THIS_RUN.get()
    except LookupError:
        made = ReadTurns()
        _OF_THIS_RUN.set(made)
        return made
