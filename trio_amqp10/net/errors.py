"""Errors of connections that ended and calls that were too slow, in any dialect.

The errors of sessions and links are in ``amqp10/peer/errors.py``.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from trio_amqp10.core.arguments import check_timeout
from trio_amqp10.core.errors import AmqpError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

E = TypeVar("E", bound=Exception)


class GoneError(AmqpError, trio.BrokenResourceError):
    """Something was ended by the peer.

    Attributes:
        error: the peer's error, in the dialect's own type (AMQP 1.0: ``Error``), or None.
        condition: its condition, or None.
        sent: of ``Requester.request``: whether the request was sent, so that the service may have acted upon
            it; None of other calls.
    """

    def __init__(self, message: str, error: Any = None) -> None:
        super().__init__(message)
        self.sent: bool | None = None
        self.error = error
        self.condition: str | None = None if error is None else str(error.condition)


class ConnectionClosedError(GoneError):
    """The peer closed the connection, or it is dead (then ``error`` is None).

    A peer is dead if its transport ended or broke without a close, if it read nothing for ``Limits.write_stall``
    seconds, or if it was silent for longer than ``idle_timeout`` (2.4.5).
    """


class TimedOutError(AmqpError, trio.TooSlowError, TimeoutError):
    """A call took longer than its ``timeout``.

    Attributes:
        sent: whether the call has sent its message or request; None if it sends none, or if that is not known.
    """

    def __init__(self, message: str, *, sent: bool | None = None) -> None:
        super().__init__(message)
        self.sent: bool | None = sent


@contextmanager
def time_limit(seconds: float | None, late: Callable[[], TimedOutError]) -> Generator[None]:
    """Cancel the block after ``seconds``; None for never.

    Raises: what ``late()`` returns, if the block was cancelled; ``LocalProtocolError``: ``seconds`` are no time.
    """
    if seconds is not None:
        check_timeout(seconds)
    with trio.move_on_after(inf if seconds is None else seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise late()


def fresh_copy(failure: E) -> E:
    """Return a copy of an exception, to be raised in one more task.

    If one object were raised in several tasks, it would collect the tracebacks of all of them.
    """
    kind = type(failure)
    again = kind.__new__(kind, *failure.args)
    again.__dict__.update(failure.__dict__)
    again.__cause__ = failure.__cause__
    return again.with_traceback(failure.__traceback__)
