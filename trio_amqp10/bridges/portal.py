"""Calls and blocks that run in trio for other programs: the half in trio.

Each connection has a portal. Work is posted to it from the program's thread, and runs in order. A function that is called in trio's
thread passes the results on; the bridges know how their programs wait.

A call that the program has given up is cancelled. If its result was on its way by then, the result is undone: a delivery
goes back to the receiver.
"""

from __future__ import annotations

import os
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import trio

from trio_amqp10.net.errors import TimedOutError, time_limit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from .trio_thread import Host

    Report = Callable[["T | None", Exception | None], object]

T = TypeVar("T")

_WATCH: Final = 0.25
"""Seconds after which a portal looks again whether its program is still there."""


def closed_here() -> trio.ClosedResourceError:
    """Return the error of a call on a connection that was closed."""
    return trio.ClosedResourceError("this connection was closed here")


def no_outcome(seconds: float, *, sent: bool | None) -> TimedOutError:
    """Return the error of a call that has waited for the outcome of a message."""
    unknown = "accepted" if sent else "sent"
    return TimedOutError(
        f"no outcome of the message within {seconds:g} s: it is not known whether it was {unknown}", sent=sent
    )


async def within(
    seconds: float | None, call: Callable[[], Awaitable[T]], late: Callable[[float], TimedOutError]
) -> T:
    """Await ``call()`` for at most ``seconds``; None for any time.

    Raises: as ``call``, and what ``late(seconds)`` returns.
    """
    if seconds is None:
        return await call()
    with time_limit(seconds, lambda: late(seconds)):
        return await call()


def result_of(function: Callable[[], T]) -> tuple[T | None, Exception | None]:
    """Call ``function()``; return its result, or its exception."""
    try:
        return function(), None
    except Exception as failure:
        return None, failure


class Portal:
    """The way from a program's thread to the tasks of one connection.

    Args:
        host: the trio in which they run, with this portal as a user.
        is_deserted: whether the program has gone without closing; asked in trio's thread.
    """

    def __init__(self, host: Host, is_deserted: Callable[[], bool] | None = None) -> None:
        self.host: Host = host
        self.is_deserted: Callable[[], bool] | None = is_deserted
        self.is_over: bool = False
        self.active: dict[Call[Any] | Block[Any], None] = {}
        self._process = os.getpid()

    def check_process(self) -> None:
        """Raise ``RuntimeError`` in a child process, which has no part in the connection."""
        if os.getpid() != self._process:
            raise RuntimeError(
                "this connection belongs to the parent process: open another after the fork, in each process"
            )

    def post(self, work: Callable[[], None]) -> None:
        """Call ``work()`` in trio's thread, after all that was posted before.

        Raises:
            trio.ClosedResourceError: the connection is closed.
            RuntimeError: the connection belongs to the parent process.
        """
        if self.is_over or os.getpid() != self._process:
            self.check_process()
            raise closed_here()
        try:
            self.host.run_soon(work)
        except trio.RunFinishedError:
            raise closed_here() from None

    def end(self) -> None:
        """End all calls and blocks: the connection is closed."""
        self.is_over = True
        for one in tuple(self.active):
            one.cancel()
        self.host.release()


class Call(Generic[T]):
    """One call: ``function()`` in a task of its own.

    Args:
        portal: the way to trio.
        function: to be awaited in trio.
        report: called in trio's thread with the result, or None and the exception, unless the call was abandoned.
        undo: called in trio's thread with a result that the program does not take.
    """

    __slots__ = (
        "_context",
        "_failure",
        "_function",
        "_is_abandoned",
        "_is_over",
        "_portal",
        "_report",
        "_scope",
        "_undo",
        "_value",
    )

    def __init__(
        self,
        portal: Portal,
        function: Callable[[], Awaitable[T]],
        report: Report[T],
        undo: Callable[[T], None] | None = None,
    ) -> None:
        self._value: T | None = None
        self._failure: Exception | None = None
        self._portal = portal
        self._function = function
        self._report = report
        self._undo = undo
        self._scope = trio.CancelScope()
        self._context = copy_context()
        self._is_over = self._is_abandoned = False

    def start(self) -> None:
        """Start the task, in trio's thread."""
        if self._portal.is_over:
            self._end(closed_here())
        else:
            self._portal.active[self] = None
            self._context.run(self._portal.host.nursery.start_soon, self._run)

    async def _run(self) -> None:
        failure: Exception | None = closed_here()
        try:
            with self._scope:
                self._value = await self._function()
                failure = None
        except Exception as raised:
            failure = raised
        finally:
            self._portal.active.pop(self, None)
            self._end(failure)

    def _end(self, failure: Exception | None) -> None:
        self._failure = failure
        self._is_over = True
        if self._is_abandoned:
            self._give_back()
        else:
            self._report(self._value, failure)

    def cancel(self) -> None:
        """Cancel the task, in trio's thread."""
        self._scope.cancel()

    def abandon(self) -> None:
        """Cancel the call, in trio's thread, or undo it: the result is not needed."""
        self._is_abandoned = True
        if self._is_over:
            self._give_back()
        else:
            self.cancel()

    def _give_back(self) -> None:
        if self._failure is None and self._undo is not None:
            self._undo(cast("T", self._value))


class _LeftByExceptionError(Exception):
    """A block was left by an exception; never leaves this module.

    The block in trio gets it too, and so does not wait for outcomes.
    """


class Block(Generic[T]):
    """An ``async with`` block in a task of its own, from ``start`` to ``leave``.

    Args:
        portal: the way to trio.
        opening: the object to enter.
        entered: called in trio's thread when the block is entered or has failed.
        left: called in trio's thread when the block is over; always after ``entered``.
        is_connection: whether the portal ends with this block.

    Attributes:
        value: the value of the block.
        failure: the exception of entering or leaving, or None.
    """

    value: T

    def __init__(
        self,
        portal: Portal,
        opening: AbstractAsyncContextManager[T],
        entered: Callable[[], None],
        left: Callable[[], None],
        *,
        is_connection: bool = False,
    ) -> None:
        self.failure: Exception | None = None
        self._portal = portal
        self._opening = opening
        self._entered = entered
        self._left = left
        self._is_connection = is_connection
        self._leaving = trio.Event()
        self._by_exception = False
        self._scope = trio.CancelScope()
        self._context = copy_context()

    def start(self) -> None:
        """Start the task, in trio's thread."""
        if self._portal.is_over:
            self.failure = closed_here()
            self._entered()
            self._left()
        else:
            self._portal.active[self] = None
            self._context.run(self._portal.host.nursery.start_soon, self._run)

    async def _run(self) -> None:
        is_open = False
        try:
            with self._scope:
                async with self._opening as self.value:
                    is_open = True
                    self._entered()
                    await self._wait()
                    if self._by_exception:
                        raise _LeftByExceptionError
        except _LeftByExceptionError:
            pass
        except Exception as failure:
            self.failure = failure
        finally:
            self._portal.active.pop(self, None)
            if self._is_connection:
                self._portal.end()
            if not is_open:
                self.failure = self.failure or closed_here()
                self._entered()
            self._left()

    async def _wait(self) -> None:
        is_deserted = self._portal.is_deserted if self._is_connection else None
        if is_deserted is None:
            await self._leaving.wait()
            return
        while not (self._leaving.is_set() or is_deserted()):
            with trio.move_on_after(_WATCH):
                await self._leaving.wait()

    def leave(self, *, by_exception: bool = False, cancelled: bool = False) -> None:
        """Leave the block, in trio's thread. A second call only adds its arguments.

        Args:
            by_exception: the program's block was left by an exception: do not wait for outcomes.
            cancelled: nor for the answer of the peer.
        """
        self._by_exception = self._by_exception or by_exception
        self._leaving.set()
        if cancelled:
            self.cancel()

    def cancel(self) -> None:
        """Cancel the block, in trio's thread."""
        self._scope.cancel()
