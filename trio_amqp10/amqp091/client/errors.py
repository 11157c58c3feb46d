"""Errors of the 0-9-1 client: reply codes with advice for the user (0-9-1, 4.8).

``ConnectionClosedError`` and ``ChannelClosedError`` are also ``trio.BrokenResourceError``. To use an object
after closing it raises ``trio.ClosedResourceError``. The errors of a publish are in ``pending_publish``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp091.spec import METHODS
from trio_amqp10.core.errors import AmqpError
from trio_amqp10.core.reply_codes import ReplyCode091, condition_of, may_retry
from trio_amqp10.net.errors import ConnectionClosedError as AnyConnectionClosedError

if TYPE_CHECKING:
    from trio_amqp10.amqp091.spec import BasicReturn, ChannelClose, ConnectionClose
    from trio_amqp10.amqp091.wire.content import BasicProperties
    from trio_amqp10.amqp091.wire.methods import MethodTable

_R = ReplyCode091

_ADVICE: Final = {
    _R.CONTENT_TOO_LARGE: "send a smaller message, or try again later",
    _R.CONNECTION_FORCED: "the server or its operator ended the connection: dial again, or dial with reconnect=True",
    _R.INVALID_PATH: "check the virtual host in the URL's path",
    _R.ACCESS_REFUSED: "check the user's permissions; names that begin with 'amq.' cannot be declared",
    _R.NOT_FOUND: "declare it first, or check the name and the virtual host",
    _R.RESOURCE_LOCKED: "another connection owns it exclusively, or a consumer has it: use another name, or wait until it is free",
    _R.PRECONDITION_FAILED: "declare it with its present arguments, or with passive=True; settle each delivery once, on its channel",
    _R.FRAME_ERROR: "a frame was malformed: this is an error in the client or the server",
    _R.SYNTAX_ERROR: "the server could not read a value: check arguments and headers for types that it does not support",
    _R.COMMAND_INVALID: "the server does not accept this method, or not in this state",
    _R.CHANNEL_ERROR: "the channel is not open",
    _R.UNEXPECTED_FRAME: "frames came in a wrong order: this is an error in the client or the server",
    _R.RESOURCE_ERROR: "the server lacks memory, disk or handles: try again later",
    _R.NOT_ALLOWED: "check the virtual host, the user's access to it, the limits, and that consumer tags are unique",
    _R.NOT_IMPLEMENTED: "the server does not support this feature: do not use it",
    _R.INTERNAL_ERROR: "the server failed: look into its log",
}


def printable(text: str) -> str:
    """Return text of a peer for messages: shortened, without control characters."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:1024])


def _name_of(class_id: int, method_id: int, methods: MethodTable) -> str | None:
    for plan in methods:
        if (plan.class_id, plan.method_id) == (class_id, method_id):
            return plan.name
    return None


def _described(code: int, text: str, method: str | None) -> str:
    """Return the code, the reply-text, the method that failed, and advice."""
    try:
        name = _R(code).name
    except ValueError:
        name = ""
    words = printable(text)
    shown = (
        f"{code} {words}"
        if name and words.startswith(name)
        else " ".join(filter(None, (str(code), name, words)))
    )
    about = f", in answer to {method}" if method else ""
    advice = _ADVICE.get(_R(code)) if name else None
    return f"{shown}{about}{f'; {advice}' if advice else ''}"


class ConnectionClosedError(AnyConnectionClosedError):
    """The server closed the connection, or the connection is lost (0-9-1, 4.8).

    Attributes:
        code: the reply code; None without a close frame: the transport ended or failed, or the server sent
            nothing.
        text: the server's reply-text; empty without a close frame.
        method: the method that the server names as the cause, such as ``queue.declare``; None if it names none.
        condition: the equivalent error condition of AMQP 1.0; None without a code.
    """

    def __init__(
        self, message: str, code: int | None = None, text: str = "", method: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.text = text
        self.method = method
        condition = None if code is None else condition_of(code)
        self.condition: str | None = None if condition is None else str(condition.value)

    @property
    def may_retry(self) -> bool:
        """Whether dialling again may succeed.

        True if the connection was lost or forced to close, or if the server failed.
        """
        lasting = (_R.CONNECTION_FORCED, _R.INTERNAL_ERROR, _R.RESOURCE_ERROR, _R.REPLY_SUCCESS)
        return self.code is None or self.code in lasting


class ChannelClosedError(AmqpError, trio.BrokenResourceError):
    """The server closed the channel for an error; the connection stays open.

    See 0-9-1, 2.3.6 and 4.8.

    Attributes:
        code: the reply code.
        text: the server's reply-text.
        method: the method that the server names as the cause, such as ``queue.declare``; None if it names none.
        condition: the equivalent error condition of AMQP 1.0; None if there is none.
    """

    def __init__(self, message: str, code: int, text: str = "", method: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.text = text
        self.method = method
        condition = condition_of(code)
        self.condition: str | None = None if condition is None else str(condition.value)

    @property
    def may_retry(self) -> bool:
        """Whether the same request may succeed later without intervention.

        The first digit of the code decides (RFC 011, 3.3).
        """
        return 100 <= self.code <= 999 and may_retry(self.code)


class AccessRefusedError(ChannelClosedError):
    """403: the user has no permission for this."""


class NotFoundError(ChannelClosedError):
    """404: there is no such queue or exchange."""


class ResourceLockedError(ChannelClosedError):
    """405: the queue is exclusive to another connection."""


class PreconditionFailedError(ChannelClosedError):
    """406: the queue or exchange has other properties, or a delivery tag is unknown."""


_KINDS: Final[dict[int, type[ChannelClosedError]]] = {
    _R.ACCESS_REFUSED: AccessRefusedError,
    _R.NOT_FOUND: NotFoundError,
    _R.RESOURCE_LOCKED: ResourceLockedError,
    _R.PRECONDITION_FAILED: PreconditionFailedError,
}


class ConsumerCancelledError(AmqpError, trio.BrokenResourceError):
    """The server cancelled the consumer.

    Its queue was deleted, or moved to another node.

    Attributes:
        tag: the consumer's tag.
        queue: the queue's name.
    """

    def __init__(self, tag: str, queue: str) -> None:
        super().__init__(
            f"the server cancelled consumer {tag!r}: queue {queue!r} was deleted or is not available; "
            "declare the queue again, then consume again"
        )
        self.tag = tag
        self.queue = queue


class DeliveryLostError(AmqpError):
    """A delivery cannot be settled, because its channel was lost.

    The server delivers the message again.
    """


class TransactionInDoubtError(AmqpError):
    """The answer to a commit was lost: the server has done all of it, or nothing."""


class ReturnedMessage:
    """A message that the server could not route.

    Attributes:
        code: the reply code: 312 for no route, 313 for no consumers.
        text: the server's reply-text.
        exchange: its exchange.
        routing_key: its routing key.
        properties: its properties.
        body: its octets.
    """

    __slots__ = ("body", "code", "exchange", "properties", "routing_key", "text")

    def __init__(self, method: BasicReturn, properties: BasicProperties, body: bytes) -> None:
        self.code: Final = method.reply_code
        self.text: Final = method.reply_text
        self.exchange: Final = method.exchange
        self.routing_key: str = method.routing_key
        self.properties: BasicProperties = properties
        self.body: bytes = body

    def __repr__(self) -> str:
        return (
            f"<ReturnedMessage {self.code} {self.text!r}, exchange {self.exchange!r}, key {self.routing_key!r}, "
            f"{len(self.body)} octets>"
        )


def channel_closed(
    number: int, close: ChannelClose, by_peer: bool, methods: MethodTable = METHODS
) -> ChannelClosedError:
    """Return the exception for a channel that was closed with an error.

    Args:
        number: the channel number.
        close: the close method that was received or sent.
        by_peer: whether the server closed the channel; False if this end did, for an error of the server.
        methods: the methods of the version.
    """
    kind = _KINDS.get(close.reply_code, ChannelClosedError) if by_peer else ChannelClosedError
    method = _name_of(close.class_id, close.method_id, methods)
    what = (
        f"the server closed channel {number}"
        if by_peer
        else f"channel {number} was closed because the server violated the protocol"
    )
    return kind(
        f"{what}: {_described(close.reply_code, close.reply_text, method)}",
        close.reply_code,
        close.reply_text,
        method,
    )


def connection_closed(close: ConnectionClose, methods: MethodTable = METHODS) -> ConnectionClosedError:
    """Return the exception for a connection that the server closed."""
    method = _name_of(close.class_id, close.method_id, methods)
    return ConnectionClosedError(
        f"the server closed the connection: {_described(close.reply_code, close.reply_text, method)}",
        close.reply_code,
        close.reply_text,
        method,
    )


def connection_lost(reason: str, cause: BaseException | None = None) -> ConnectionClosedError:
    """Return the exception for a connection that ended without a close."""
    lost = ConnectionClosedError(f"the connection was lost: {reason}")
    lost.__cause__ = cause
    return lost
