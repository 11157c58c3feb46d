"""Timers of a container: things to do at a time, while anybody is there to see them done.

A container has no task of its own. So the one that waits for the next deadline runs with one of its hosts, ``serve``
or a connection, only while there is a deadline, and moves to another when that one ends. Where there is
none nobody can tell: what is due by then is done first of all when somebody comes.

Knows the time; does not know what is done.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from trio_amqp10.timer_heap import Timer, TimerHeap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .connected import ConnectedPeer
    from .host import Host

__all__ = ["Timers"]

_log = logging.getLogger("trio_amqp10.container")


class Timers:
    """Calls functions when their time has come.

    Args:
        now: seconds on trio's clock.
        hosts: beside whose handlers the task may run.
    """

    def __init__(self, now: Callable[[], float], hosts: Iterable[Host | ConnectedPeer]) -> None:
        self._now = now
        self._hosts = hosts
        self._due: TimerHeap[Callable[[], object]] = TimerHeap()
        self._host: Host | ConnectedPeer | None = None
        self._scope = trio.CancelScope()

    def call_at(self, deadline: float, call: Callable[[], object]) -> Timer[Callable[[], object]]:
        """Have ``call`` called, synchronously, at ``deadline`` or soon after; what it raises is logged.

        Returns:
            What cancels it. A function that is not called holds up nothing and nobody.
        """
        timer = self._due.add(deadline, call)
        if self._host is None:
            self._move()
        elif deadline < self._scope.deadline:
            self._scope.deadline = deadline
        return timer

    def join(self, host: Host | ConnectedPeer) -> None:
        """Somebody is there."""
        self._run_due()
        if self._host is None and self._due:
            self._start(host)

    def leave(self, host: Host | ConnectedPeer) -> None:
        """This one ends."""
        if self._host is host:
            self._host = None
            self._scope.cancel()
            self._scope = trio.CancelScope()
            self._move()

    def _move(self) -> None:
        if self._due:
            host = next((each for each in self._hosts if each.open), None)
            if host is not None:
                self._start(host)

    def _start(self, host: Host | ConnectedPeer) -> None:
        assert host.nursery is not None
        self._host = host
        self._scope = trio.CancelScope(deadline=self._due.next())
        host.nursery.start_soon(self._wait, self._scope)

    async def _wait(self, scope: trio.CancelScope) -> None:
        while True:
            with scope:
                await trio.sleep_forever()
            if self._scope is not scope:
                return  # its host ends, and the next waits
            self._run_due()
            if not self._due:
                self._host = None
                return
            scope = self._scope = trio.CancelScope(deadline=self._due.next())

    def _run_due(self) -> None:
        for call in self._due.due(self._now()):
            try:
                call()
            except Exception:
                _log.exception("a timer failed")
