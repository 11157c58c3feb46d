"""The changes of a connection, for a program that runs outside of trio."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import finalize

import trio

from .portal import result_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.net.recovery_events import Change, Changes

    from .portal import Portal


class ChangesInTrio:
    """An iterator in trio.

    It is made and dropped in trio's thread, which alone may change the set of iterators.

    Args:
        portal: the way to trio.
        make: makes the iterator.
    """

    def __init__(self, portal: Portal, make: Callable[[], Changes]) -> None:
        self._made: list[tuple[Changes | None, Exception | None]] = []
        made = self._made
        with suppress(trio.ClosedResourceError):
            portal.post(lambda: made.append(result_of(make)))
            finalize(self, _drop, portal, made).atexit = False

    async def next(self) -> Change | None:
        """Return the next change in trio; None if the connection has ended.

        Cancelled: no change is lost.
        """
        changes, failure = self._made[0]
        if failure is not None:
            raise failure
        assert changes is not None
        return await anext(changes, None)

    def put_back(self, change: Change | None) -> None:
        """Put back what the program did not take, in trio's thread."""
        changes, _ = self._made[0]
        if changes is not None and change is not None:
            changes.put_back(change)

    def rest(self) -> Change | None:
        """Return a change that is left after the connection was closed, or None."""
        changes = self._made[0][0] if self._made else None
        return None if changes is None else changes.take()


def _drop(portal: Portal, made: list[tuple[Changes | None, Exception | None]]) -> None:
    with suppress(trio.ClosedResourceError, RuntimeError):  # closed, also the loop, or a child process
        portal.post(made.clear)
