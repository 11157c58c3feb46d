"""Errors of a transport that is gone, before or after a dialect is spoken.

The errors of what a dialect has, as sessions and links, are in ``peer/errors.py``.
"""

from __future__ import annotations

from typing import Any

import trio

from trio_amqp10.errors import AmqpError

__all__ = ["ConnectionClosedError", "GoneError"]


class GoneError(AmqpError, trio.BrokenResourceError):
    """Something that the peer ended.

    Attributes:
        error: what the peer said of it, in the dialect's own type (AMQP 1.0: ``Error``), or None.
        condition: its condition, or None.
    """

    def __init__(self, message: str, error: Any = None) -> None:
        super().__init__(message)
        self.error = error
        self.condition: str | None = None if error is None else str(error.condition)


class ConnectionClosedError(GoneError):
    """The peer closed the connection, or it is dead (then ``error`` is None).

    Dead is a peer whose transport ended or broke without a close, that read nothing for ``Limits.write_stall``
    seconds, or that was silent for longer than ``idle_timeout`` (2.4.5).
    """
