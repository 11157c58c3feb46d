"""Timers of a container: things to do at a time, while anybody is connected to see them done.

A container has no task but those of its connections. So the one that waits for the next deadline runs
beside the handlers of one of them, only while there is a deadline, and moves to another when that
connection ends. Where nobody is connected nobody can tell: what is due by then is done first of all
when somebody comes.

Knows the time; does not know what is done.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from math import inf
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .conversation import Conversation

__all__ = ["Timers"]

_log = logging.getLogger("trio_amqp10.container")


class Timers:
    """Calls functions when their time has come.

    Args:
        now: seconds on trio's clock.
        conversations: beside whose handlers the task may run.
    """

    def __init__(self, now: Callable[[], float], conversations: Iterable[Conversation]) -> None:
        self._now = now
        self._conversations = conversations
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._count = itertools.count()
        self._host: Conversation | None = None
        self._scope = trio.CancelScope()

    def call_at(self, deadline: float, call: Callable[[], object]) -> None:
        """Have ``call`` called, synchronously, at ``deadline`` or soon after; what it raises is logged."""
        if deadline < inf:
            heapq.heappush(self._due, (deadline, next(self._count), call))
            if self._host is None:
                self._move()
            else:
                self._scope.deadline = self._due[0][0]

    def join(self, conversation: Conversation) -> None:
        """Somebody is connected."""
        self._run_due()
        if self._host is None and self._due:
            self._start(conversation)

    def leave(self, conversation: Conversation) -> None:
        """This connection ends."""
        if self._host is conversation:
            self._host = None
            self._scope.cancel()
            self._scope = trio.CancelScope()
            self._move()

    def _move(self) -> None:
        if self._due:
            host = next((each for each in self._conversations if each.open), None)
            if host is not None:
                self._start(host)

    def _start(self, host: Conversation) -> None:
        assert host.nursery is not None
        self._host = host
        self._scope = trio.CancelScope(deadline=self._due[0][0])
        host.nursery.start_soon(self._wait, self._scope)

    async def _wait(self, scope: trio.CancelScope) -> None:
        while True:
            with scope:
                await trio.sleep_forever()
            if self._scope is not scope:
                return  # its connection ends, and the next waits
            self._run_due()
            if not self._due:
                self._host = None
                return
            scope = self._scope = trio.CancelScope(deadline=self._due[0][0])

    def _run_due(self) -> None:
        now = self._now()
        while self._due and self._due[0][0] <= now:
            call = heapq.heappop(self._due)[2]
            try:
                call()
            except Exception:
                _log.exception("a timer failed")
