"""Errors of the client, with the reply code of the server (RFC 011).

The use of an object after its own close raises ``trio.ClosedResourceError``. This module does not know connections.
"""

from __future__ import annotations

from typing import ClassVar

import trio

from trio_amqp10.core.errors import AmqpError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011
from trio_amqp10.net.errors import ConnectionClosedError as AnyConnectionClosedError

_R = ReplyCodeRfc011
_PASSING = (_R.SUCCESS, _R.CLIENT_ALREADY_ACTIVE, _R.INSUFFICIENT_RESOURCES, _R.INTERNAL_ERROR)


def _described(what: str, code: int | None, text: str) -> str:
    shown = "".join(char if char.isprintable() else "\ufffd" for char in text[:1024])
    return f"{what}: {shown}" if code is None else f"{what}: {code} {shown}"


class ConnectionClosedError(AnyConnectionClosedError):
    """The server closed the connection, or it was lost.

    Attributes:
        code: the reply code; None if the server sent no close.
        text: the reply text, or the reason of the loss.
    """

    def __init__(self, code: int | None, text: str) -> None:
        super().__init__(_described("the connection is closed", code, text))
        self.code = code
        self.text = text

    @property
    def may_retry(self) -> bool:
        """Whether dialling again may help.

        True if the connection was lost, or closed without an error (200), if the server failed (506, 541), or if it still counts the
        lost client as active (320).
        """
        return self.code is None or self.code in _PASSING


class _RepliedError(AmqpError):
    """An error with the code and the text of a reply."""

    what: ClassVar[str]

    def __init__(self, code: int, text: str) -> None:
        super().__init__(_described(self.what, code, text))
        self.code = code
        self.text = text


class ChannelClosedError(_RepliedError, trio.BrokenResourceError):
    """The server closed the channel, or broke a rule on it.

    Attributes:
        code: the reply code.
        text: the reply text.
    """

    what = "the channel is closed"


class HandleClosedError(_RepliedError, trio.BrokenResourceError):
    """The server refused a command and closed the handle, or broke a rule on it.

    Attributes:
        code: the reply code, such as 404: no such destination.
        text: the reply text.
    """

    what = "the handle is closed"


class NotAvailableError(_RepliedError):
    """The server could not do as asked, and sent a reply; the handle stays open.

    Attributes:
        code: the reply code, such as 310: the message is no longer there.
        text: the reply text.
    """

    what = "not available"


class DeliveryLostError(AmqpError):
    """The delivery cannot be acknowledged, because its transport was lost.

    The server sends the message again.
    """


class TransactionInDoubtError(AmqpError):
    """The answer to a commit was lost.

    The server has done either all of the transaction or nothing.
    """


class TransportLostError(AmqpError):
    """The transport was lost before the answer, and the connection will be restored.

    Internal to the client: the command is written again, and the program does not see this error.
    """


Closed = ConnectionClosedError | ChannelClosedError | HandleClosedError
"""The errors that close an endpoint."""
