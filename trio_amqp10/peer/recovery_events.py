"""Changes of a recovering connection, for programs that iterate over them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Literal
from weakref import WeakSet

import trio

from trio_amqp10.net.waiters import Waiter

__all__ = ["Change", "Changes", "Watchers"]

_CHANGES: Final = 100
"""Changes that wait for who iterates over them; the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a connection that comes back.

    Attributes:
        kind: ``"lost"``; ``"failed"``, an attempt to dial it; ``"restored"``; or ``"stopped"`` for good.
        reason: why it was lost or stopped, or what the attempt failed with; None if it was restored or closed here.
        url: where it leads now, once restored.
    """

    kind: Literal["lost", "failed", "restored", "stopped"]
    reason: Exception | None = None
    url: str | None = None


class Changes:
    """Iterates over what happens to a connection; ends with the connection.

    Failures in a row that nobody has read yet are one change: the last of them.
    """

    def __init__(self, *, ended: bool, attempts: bool = False) -> None:
        """``ended``: the connection is over already; ``attempts``: each that fails is reported."""
        self.attempts = attempts
        self._changes: deque[Change] = deque(maxlen=_CHANGES)
        self._waiter = Waiter()
        self._ended = ended

    def add(self, change: Change) -> None:
        """One more."""
        changes = self._changes
        if change.kind == "failed" and changes and changes[-1].kind == "failed":
            changes.pop()
        changes.append(change)
        self._waiter.wake()

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        """The next change. Cancelled: none is lost."""
        await trio.lowlevel.checkpoint()
        while not self._changes:
            if self._ended:
                raise StopAsyncIteration
            await self._waiter.wait()
        change = self._changes.popleft()
        self._ended = change.kind == "stopped"
        return change


class Watchers:
    """All that iterate over the changes of one connection.

    Attributes:
        ended: whether the connection is over for good.
    """

    __slots__ = ("_all", "ended")

    def __init__(self) -> None:
        self._all: WeakSet[Changes] = WeakSet()
        self.ended: bool = False

    def __len__(self) -> int:
        return len(self._all)

    def changes(self, *, attempts: bool = False) -> Changes:
        """What happens from now on; with ``attempts`` each that fails, too."""
        watcher = Changes(ended=self.ended, attempts=attempts)
        self._all.add(watcher)
        return watcher

    def tell(self, change: Change) -> None:
        """Report a change to all; nothing is reported after ``"stopped"``."""
        if self.ended:
            return
        self.ended = change.kind == "stopped"
        for watcher in list(self._all):
            if watcher.attempts or change.kind != "failed":
                watcher.add(change)

    def failed(self, failure: Exception) -> None:
        """An attempt to dial has failed."""
        self.tell(Change("failed", failure))
