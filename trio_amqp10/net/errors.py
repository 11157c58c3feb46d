"""Errors of a connection that has ended, in any dialect.

The errors of sessions and links are in ``amqp10/peer/errors.py``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import trio

from trio_amqp10.core.errors import AmqpError

E = TypeVar("E", bound=Exception)


class GoneError(AmqpError, trio.BrokenResourceError):
    """Something was ended by the peer.

    Attributes:
        error: the peer's error, in the dialect's own type (AMQP 1.0: ``Error``), or None.
        condition: its condition, or None.
    """

    def __init__(self, message: str, error: Any = None) -> None:
        super().__init__(message)
        self.error = error
        self.condition: str | None = None if error is None else str(error.condition)


class ConnectionClosedError(GoneError):
    """The peer closed the connection, or it is dead (then ``error`` is None).

    A peer is dead if its transport ended or broke without a close, if it read nothing for ``Limits.write_stall``
    seconds, or if it was silent for longer than ``idle_timeout`` (2.4.5).
    """


def fresh_copy(failure: E) -> E:
    """Return a copy of an exception, to be raised in one more task.

    If one object were raised in several tasks, it would collect the tracebacks of all of them.
    """
    kind = type(failure)
    again = kind.__new__(kind, *failure.args)
    again.__dict__.update(failure.__dict__)
    again.__cause__ = failure.__cause__
    return again.with_traceback(failure.__traceback__)
