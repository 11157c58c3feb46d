"""Errors of the client: what was closed, and with which reply code (RFC 011).

The use of an object after its own close raises ``trio.ClosedResourceError``. Knows reply codes, and no connection.
"""

from __future__ import annotations

import trio

from trio_amqp10.errors import AmqpError
from trio_amqp10.net.errors import ConnectionClosedError as AnyConnectionClosedError

__all__ = ["ChannelClosedError", "ConnectionClosedError", "HandleClosedError", "NotAvailableError"]


def _described(what: str, code: int | None, text: str) -> str:
    shown = "".join(char if char.isprintable() else "\ufffd" for char in text[:1024])
    return f"{what}: {shown}" if code is None else f"{what}: {code} {shown}"


class ConnectionClosedError(AnyConnectionClosedError):
    """The server closed the connection, or it was lost.

    Attributes:
        code: the reply code; None if there was no close.
        text: the reply-text, or why it was lost.
    """

    def __init__(self, code: int | None, text: str) -> None:
        super().__init__(_described("the connection is closed", code, text))
        self.code = code
        self.text = text


class ChannelClosedError(AmqpError, trio.BrokenResourceError):
    """The server closed the channel, or broke a rule on it.

    Attributes:
        code: the reply code.
        text: the reply-text.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(_described("the channel is closed", code, text))
        self.code = code
        self.text = text


class HandleClosedError(AmqpError, trio.BrokenResourceError):
    """The server closed the handle, or broke a rule on it: a command before was refused.

    Attributes:
        code: the reply code, such as 404: no such destination.
        text: the reply-text.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(_described("the handle is closed", code, text))
        self.code = code
        self.text = text


class NotAvailableError(AmqpError):
    """The server did not do what it was asked for, and says so in its reply; the handle stays open.

    Attributes:
        code: the reply code: 310, the message is not there any more.
        text: the reply-text.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(_described("not available", code, text))
        self.code = code
        self.text = text


Closed = ConnectionClosedError | ChannelClosedError | HandleClosedError
"""Why something is closed."""


def anew(why: Closed) -> Closed:
    """The same error, to be raised once more."""
    made = type(why)(why.code, why.text)  # type: ignore[arg-type]
    made.__cause__ = why
    return made
