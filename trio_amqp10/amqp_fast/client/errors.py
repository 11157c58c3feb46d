"""Errors of the client: what was closed, and with which reply code (RFC 011).

The use of an object after its own close raises ``trio.ClosedResourceError``. Knows reply codes, and no connection.
"""

from __future__ import annotations

import trio

from trio_amqp10.errors import AmqpError
from trio_amqp10.net.errors import ConnectionClosedError as AnyConnectionClosedError
from trio_amqp10.reply_codes import ReplyCodeRfc011

__all__ = [
    "ChannelClosedError",
    "ConnectionClosedError",
    "DeliveryLostError",
    "HandleClosedError",
    "NotAvailableError",
    "TransportLostError",
]

_R = ReplyCodeRfc011
_PASSING = (_R.SUCCESS, _R.CLIENT_ALREADY_ACTIVE, _R.INSUFFICIENT_RESOURCES, _R.INTERNAL_ERROR)


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

    @property
    def may_retry(self) -> bool:
        """Whether dialling again may help: it was lost, the server failed, or still sees the client that was lost (320)."""
        return self.code is None or self.code in _PASSING


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


class DeliveryLostError(AmqpError):
    """The transport by which a message came is gone, so it cannot be acknowledged: the server gives it out again."""


class TransactionInDoubtError(AmqpError):
    """The answer to a commit was lost: the server may have done all of the transaction, or nothing."""


class TransportLostError(AmqpError):
    """The transport was lost before the answer, and the connection will come back: ask again. Never leaves the client."""


Closed = ConnectionClosedError | ChannelClosedError | HandleClosedError
"""Why something is closed."""


def anew(why: Closed) -> Closed:
    """The same error, to be raised once more."""
    made = type(why)(why.code, why.text)  # type: ignore[arg-type]
    made.__cause__ = why
    return made
