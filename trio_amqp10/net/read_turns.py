"""Fair queueing of reads between the connections of a process.

Trio runs every task that can run once in a pass. With a slice of work for each busy connection a pass takes as long as there are busy
connections, and each message of an idle one takes several passes. So no more than one slice of a busy connection runs in
a pass, whatever the number of these.

Which connection is next is decided by start-time fair queueing. The clock of the queue is the work, in seconds, that each of the
waiting connections has had. A connection has an account on this clock: where its last slice ended. Work moves the account on; the
connection with the lowest account is next, and serving it sets the clock to its account. An account never lags behind
the clock: nobody saves up. A connection that is less than ``_AHEAD`` ahead of the clock has used less than its
fair share, and its next read is taken at once, unless its peer has not opened it yet: the pump has all strangers take turns,
and since an account begins at the clock, they are served before those that are busy.

Knows nothing of engines and streams. There is one ``ReadTurns`` for each ``trio.run``, since that is what its tasks share.
"""

from __future__ import annotations

from heapq import heappop, heappush
from time import perf_counter
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ReadTurn", "ReadTurns"]

_AHEAD: Final = 0.002
"""Seconds of work that a connection may have had more than others before it waits for its turn: a few slices.

What it takes to open a connection and some links, or to send a message and settle another, must be less. Where five
hundred busy connections wait, the clock takes as long to move on by this as all of them to do so much work: about a second.
"""

_MOST: Final = 0.001
"""Seconds that one slice may be charged with: what is longer was not the work of the peer's frames alone."""


class ReadTurns:
    """Whose turn it is.

    Args:
        clock: seconds; what is charged is the difference of two. ``perf_counter`` if None.

    Attributes:
        clock: as given.
        served: seconds of work that each connection that waits has had: the clock of the queue.
        holder: the connection whose turn it is; never None while others wait.
    """

    __slots__ = ("_numbered", "_waiting", "clock", "holder", "served")

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock: Final = perf_counter if clock is None else clock
        self.served: float = 0.0
        self.holder: ReadTurn | None = None
        self._waiting: list[tuple[float, int, ReadTurn]] = []
        self._numbered = 0

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
    """

    __slots__ = ("_turns", "account", "task")

    def __init__(self, turns: ReadTurns | None = None) -> None:
        self._turns = turns = turns or _turns()
        self.account: float = turns.served
        self.task: trio.lowlevel.Task | None = None

    @property
    def held(self) -> bool:
        """Whether it is its turn."""
        return self._turns.holder is self

    @property
    def due(self) -> bool:
        """Whether it has had more than its share, and has to take turns."""
        return self.account - self._turns.served >= _AHEAD

    def began(self) -> float:
        """Work begins now; see ``charge``."""
        return self._turns.clock()

    def charge(self, began: float) -> None:
        """Charge the work that began then."""
        turns = self._turns
        self.account = max(self.account, turns.served) + min(_MOST, turns.clock() - began)

    async def take(self) -> None:
        """Wait for its turn: not at all, if no other has it. Cancelled: it has no turn."""
        turns = self._turns
        if turns.holder is None:
            turns.holder = self
        else:
            await turns.wait(self)
        self._serve()

    async def next(self) -> None:
        """Let others have their turn, then take another. Cancelled: as it is, see ``release``."""
        turns = self._turns
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
        if self._turns.first() is None:
            await trio.lowlevel.checkpoint()
        self.release()

    def release(self) -> None:
        """Give up the turn, if it has it."""
        if self._turns.holder is self:
            self._turns.hand_on()

    def _serve(self) -> None:
        turns = self._turns
        turns.served = max(turns.served, self.account)


_OF_THIS_RUN: Final[trio.lowlevel.RunVar[ReadTurns]] = trio.lowlevel.RunVar("trio_amqp10.turns")


def _turns() -> ReadTurns:
    try:
        return _OF_THIS_RUN.get()
    except LookupError:
        made = ReadTurns()
        _OF_THIS_RUN.set(made)
        return made
