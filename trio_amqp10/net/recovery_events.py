"""Changes of a recovering connection, for programs that iterate over them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Literal
from weakref import WeakSet

import trio

from .waiters import Waiter

_CHANGES: Final = 100
"""Changes that wait for one iterating task; then the oldest is dropped."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a connection that is restored after losses.

    Attributes:
        kind: ``"lost"``; ``"failed"``, an attempt to dial it; ``"restored"``; or ``"stopped"`` for good.
        reason: why it was lost or stopped, or the failure of the attempt; None if it was restored or closed here.
        url: its URL after it was restored.
    """

    kind: Literal["lost", "failed", "restored", "stopped"]
    reason: Exception | None = None
    url: str | None = None


class Changes:
    """An iterator over the changes of a connection; ends with the connection.

    Unread failures in a row are one change: the last of them.
    """

    def __init__(self, *, ended: bool, attempts: bool = False) -> None:
        """Make an iterator.

        Args:
            ended: whether the connection has ended already.
            attempts: whether each failed attempt is reported.
        """
        self.attempts = attempts
        self._changes: deque[Change] = deque(maxlen=_CHANGES)
        self._waiter = Waiter()
        self._ended = ended

    def add(self, change: Change) -> None:
        """Append a change."""
        changes = self._changes
        if change.kind == "failed" and changes and changes[-1].kind == "failed":
            changes.pop()
        changes.append(change)
        self._waiter.wake()

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        """Return the next change. Cancelled: no change is lost."""
        await trio.lowlevel.checkpoint()
        while not self._changes:
            if self._ended:
                raise StopAsyncIteration
            await self._waiter.wait()
        return self._taken()

    def take(self) -> Change | None:
        """Return the next change, or None if there is none now."""
        return self._taken() if self._changes else None

    def put_back(self, change: Change) -> None:
        """Put back a change that was taken, to be the next one."""
        if len(self._changes) < _CHANGES:  # otherwise it is the oldest, to be dropped
            self._changes.appendleft(change)
            self._ended = False
            self._waiter.wake()

    def _taken(self) -> Change:
        change = self._changes.popleft()
        self._ended = change.kind == "stopped"
        return change


class Watchers:
    """All iterators over the changes of one connection.

    Attributes:
        ended: whether the connection has ended for good.
    """

    __slots__ = ("_all", "ended")

    def __init__(self) -> None:
        self._all: WeakSet[Changes] | None = None  # an empty one is 750 octets
        self.ended: bool = False

    def __len__(self) -> int:
        return 0 if self._all is None else len(self._all)

    def changes(self, *, attempts: bool = False) -> Changes:
        """Return an iterator from now on; with ``attempts`` it includes failed attempts."""
        watcher = Changes(ended=self.ended, attempts=attempts)
        if self._all is None:
            self._all = WeakSet()
        self._all.add(watcher)
        return watcher

    def tell(self, change: Change) -> None:
        """Report a change to all iterators; after ``"stopped"`` do nothing."""
        if self.ended:
            return
        self.ended = change.kind == "stopped"
        for watcher in list(self._all or ()):
            if watcher.attempts or change.kind != "failed":
                watcher.add(change)

    def failed(self, failure: Exception) -> None:
        """Report a failed attempt to dial."""
        self.tell(Change("failed", failure))
