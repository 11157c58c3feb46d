"""What happens to a connection that comes back, for who wants to know (``recovery`` makes it happen)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Literal

import trio

from trio_amqp10.net.waiting import Waiter

__all__ = ["Change", "Changes"]

_CHANGES: Final = 100
"""Changes that wait for who iterates over them; the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a connection that comes back.

    Attributes:
        kind: ``"lost"``, ``"restored"``, or ``"stopped"`` for good.
        reason: why it was lost or stopped; None where it was restored or closed here.
        url: where it leads now, once restored.
    """

    kind: Literal["lost", "restored", "stopped"]
    reason: Exception | None = None
    url: str | None = None


class Changes:
    """Iterates over what happens to a connection; ends with the connection."""

    def __init__(self, *, ended: bool) -> None:
        """``ended``: the connection is over already."""
        self._changes: deque[Change] = deque(maxlen=_CHANGES)
        self._waiter = Waiter()
        self._ended = ended

    def add(self, change: Change) -> None:
        """One more."""
        self._changes.append(change)
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
