"""The thread in which trio runs for programs that do not use trio.

A process has at most one. It starts with the first connection, and ends with the last. Knows no AMQP.
"""

from __future__ import annotations

import concurrent.futures
import os
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Protocol

import trio

from .bell import Bell

if TYPE_CHECKING:
    from collections.abc import Callable


class Host(Protocol):
    """A running trio: in a thread of its own, or as a guest.

    Attributes:
        nursery: for tasks, to be used in trio's thread only.
    """

    nursery: trio.Nursery

    def run_soon(self, work: Callable[[], None]) -> None:
        """Call ``work()`` in trio's thread.

        Raises:
            trio.RunFinishedError: trio does not run any more.
        """
        ...

    def release(self) -> None:
        """Note, in trio's thread, that one user less needs it."""
        ...

    def join(self) -> None:
        """Wait for the end of the thread, if it is ending."""
        ...


class TrioThread:
    """A thread that runs trio as long as it has users.

    Attributes:
        nursery: for tasks, to be used in trio's thread only.
        users: connections that need it.
        is_ending: whether the last user has released it.
    """

    def __init__(self) -> None:
        self.users: int = 0
        self.is_ending: bool = False
        self.nursery: trio.Nursery
        self._inbox: deque[Callable[[], None]] = deque()
        self._is_rung = self._is_over = False
        self._lock = threading.RLock()  # of ``run_soon``, which a signal handler may call too
        self._bell = Bell()
        started: concurrent.futures.Future[None] = concurrent.futures.Future()
        # A daemon thread lets a program end that has not closed its connections.
        self._thread = threading.Thread(target=trio.run, args=(self._main, started), name="amqp", daemon=True)
        self._thread.start()
        started.result()

    async def _main(self, started: concurrent.futures.Future[None]) -> None:
        try:
            async with trio.open_nursery() as self.nursery:
                started.set_result(None)
                while True:
                    await trio.lowlevel.wait_readable(self._bell.number)
                    self._bell.silence()
                    self._is_rung = False  # before the inbox is emptied: what comes later rings again
                    self._work()
        finally:
            with self._lock:
                self._is_over = True
                self._bell.close()
            self._work()

    def _work(self) -> None:
        inbox = self._inbox
        while inbox:
            inbox.popleft()()

    def run_soon(self, work: Callable[[], None]) -> None:
        """Call ``work()`` in the thread, after all earlier calls; as ``Host.run_soon``.

        The bell is rung once for any number of calls; ``TrioToken.run_sync_soon`` makes a system call for each.
        """
        with self._lock:
            if self._is_over:
                raise trio.RunFinishedError
            self._inbox.append(work)
            if not self._is_rung:
                self._is_rung = True
                self._bell.ring()

    def release(self) -> None:
        """Note, in the thread, that one user less needs it; end it after the last."""
        with _process.lock:
            self.users -= 1
            if self.users:
                return
            self.is_ending = True
            if _process.thread is self:
                _process.thread = None
        self.nursery.cancel_scope.cancel()

    def join(self) -> None:
        """Wait for the end of the thread, if it is ending."""
        if self.is_ending:
            self._thread.join()


class _Process:
    """The thread of this process, if it runs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.thread: TrioThread | None = None

    def forget(self) -> None:
        """Start again in a child process, which has inherited no thread."""
        self.__init__()  # type: ignore[misc]  # the lock may be held by a thread of the parent


_process = _Process()
if sys.platform != "win32":  # which has no fork
    os.register_at_fork(after_in_child=_process.forget)


def shared_thread() -> TrioThread:
    """Return the thread of this process, with one user more; start it if necessary."""
    with _process.lock:
        if _process.thread is None:
            _process.thread = TrioThread()
        _process.thread.users += 1
        return _process.thread
