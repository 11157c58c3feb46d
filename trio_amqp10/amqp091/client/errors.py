"""Errors of the 0-9-1 client: what a reply code means for a program, and what to do about it (0-9-1, 4.8).

``ConnectionClosedError`` and ``ChannelClosedError`` are also ``trio.BrokenResourceError``; the use of an object after its own
close raises ``trio.ClosedResourceError``. Knows methods and reply codes, and no connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp091.spec import METHODS
from trio_amqp10.errors import AmqpError
from trio_amqp10.net.errors import ConnectionClosedError as AnyConnectionClosedError
from trio_amqp10.reply_codes import ReplyCode091, condition_of, may_retry

if TYPE_CHECKING:
    from trio_amqp10.amqp091.content import BasicProperties
    from trio_amqp10.amqp091.methods import MethodTable
    from trio_amqp10.amqp091.spec import BasicReturn, ChannelClose, ConnectionClose

    from .pending_publish import Ticket

__all__ = [
    "AccessRefusedError",
    "ChannelClosedError",
    "ConnectionClosedError",
    "ConsumerCancelledError",
    "DeliveryLostError",
    "NackedError",
    "NotFoundError",
    "PreconditionFailedError",
    "PublishError",
    "PublishInDoubtError",
    "ResourceLockedError",
    "ReturnedError",
    "TransactionInDoubtError",
    "channel_closed",
    "connection_closed",
    "connection_lost",
]

_R = ReplyCode091

_ADVICE: Final = {
    _R.CONTENT_TOO_LARGE: "send a smaller message, or try again later",
    _R.CONNECTION_FORCED: "the server or its operator ended the connection: dial again, or dial with reconnect=True",
    _R.INVALID_PATH: "check the virtual host in the URL's path",
    _R.ACCESS_REFUSED: "check the user's permissions; names that begin with 'amq.' cannot be declared",
    _R.NOT_FOUND: "declare it first, or check the name and the virtual host",
    _R.RESOURCE_LOCKED: "another connection owns it exclusively, or a consumer has it: use another name, or wait until it is free",
    _R.PRECONDITION_FAILED: "declare it with the arguments that it has, or passively; settle each delivery once, on its channel",
    _R.FRAME_ERROR: "the two ends read octets differently: this is an error in the client or the server",
    _R.SYNTAX_ERROR: "the server could not read a value: check arguments and headers for types that it does not know",
    _R.COMMAND_INVALID: "the server does not take this method, or not now",
    _R.CHANNEL_ERROR: "the channel is not open",
    _R.UNEXPECTED_FRAME: "frames came in a wrong order: this is an error in the client or the server",
    _R.RESOURCE_ERROR: "the server lacks memory, disk or handles: try again later",
    _R.NOT_ALLOWED: "check the virtual host, the user's access to it, the limits, and that consumer tags are unique",
    _R.NOT_IMPLEMENTED: "the server does not have this feature: leave it out",
    _R.INTERNAL_ERROR: "the server failed: look into its log",
}


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:1024])


def _name_of(class_id: int, method_id: int, methods: MethodTable) -> str | None:
    for plan in methods:
        if (plan.class_id, plan.method_id) == (class_id, method_id):
            return plan.name
    return None


def _described(code: int, text: str, method: str | None) -> str:
    """Code, text, the method that failed, and what to do."""
    try:
        name = _R(code).name
    except ValueError:
        name = ""
    words = _printable(text)
    said = (
        f"{code} {words}"
        if name and words.startswith(name)
        else " ".join(filter(None, (str(code), name, words)))
    )
    about = f", in answer to {method}" if method else ""
    advice = _ADVICE.get(_R(code)) if name else None
    return f"{said}{about}{f'; {advice}' if advice else ''}"


class ConnectionClosedError(AnyConnectionClosedError):
    """The server closed the connection, or the connection is lost (0-9-1, 2.2.4, 4.8).

    Attributes:
        code: the reply code; None if there was no close: the transport ended or failed, or the server was silent.
        text: the server's reply-text; empty if there was no close.
        method: the method that the server names as the cause, such as ``queue.declare``; None if it names none.
        condition: the error condition of AMQP 1.0 that the code amounts to; None without a code.
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
        """Whether dialling again may help: the connection was lost, forced, or the server failed."""
        lasting = (_R.CONNECTION_FORCED, _R.INTERNAL_ERROR, _R.RESOURCE_ERROR, _R.REPLY_SUCCESS)
        return self.code is None or self.code in lasting


class ChannelClosedError(AmqpError, trio.BrokenResourceError):
    """The server closed the channel for an error; the connection goes on (0-9-1, 2.3.6, 4.8).

    Attributes:
        code: the reply code.
        text: the server's reply-text.
        method: the method that the server names as the cause, such as ``queue.declare``; None if it names none.
        condition: the error condition of AMQP 1.0 that the code amounts to; None for a success.
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
        """Whether the same request may succeed later without intervention: by the code's first digit (RFC 011, 3.3)."""
        return 100 <= self.code <= 999 and may_retry(self.code)


class AccessRefusedError(ChannelClosedError):
    """403: the user may not do this."""


class NotFoundError(ChannelClosedError):
    """404: there is no such queue or exchange."""


class ResourceLockedError(ChannelClosedError):
    """405: another connection owns the queue exclusively."""


class PreconditionFailedError(ChannelClosedError):
    """406: the queue or exchange has other properties, or a delivery tag is unknown."""


_KINDS: Final[dict[int, type[ChannelClosedError]]] = {
    _R.ACCESS_REFUSED: AccessRefusedError,
    _R.NOT_FOUND: NotFoundError,
    _R.RESOURCE_LOCKED: ResourceLockedError,
    _R.PRECONDITION_FAILED: PreconditionFailedError,
}


class ConsumerCancelledError(AmqpError, trio.BrokenResourceError):
    """The server cancelled the consumer: its queue was deleted, or moved to another node.

    Attributes:
        tag: the consumer's tag.
        queue: the queue's name.
    """

    def __init__(self, tag: str, queue: str) -> None:
        super().__init__(
            f"the server cancelled consumer {tag!r}: queue {queue!r} was deleted or is not available; "
            "declare the queue again and consume anew"
        )
        self.tag = tag
        self.queue = queue


class DeliveryLostError(AmqpError):
    """The channel on which a delivery came is gone, so it cannot be settled: the server gives the message out again."""


class PublishError(AmqpError):
    """The server did not confirm a message.

    Attributes:
        ticket: the publish: exchange, routing key, properties and body.
    """

    def __init__(self, message: str, ticket: Ticket) -> None:
        super().__init__(message)
        self.ticket = ticket


class NackedError(PublishError):
    """The server refused the message (basic.nack): a full queue that rejects publishes, or an error in its store."""

    def __init__(self, ticket: Ticket) -> None:
        super().__init__(
            f"the server refused a message for {ticket.place} (basic.nack): a queue is full and rejects publishes, "
            "or could not store it; try again later",
            ticket,
        )


class ReturnedError(PublishError):
    """The server could not route a mandatory message, and returned it (0-9-1, basic.return).

    Attributes:
        code: the reply code, 312 for no route.
        text: the server's reply-text.
        message: what was returned.
    """

    def __init__(self, ticket: Ticket, message: ReturnedMessage) -> None:
        super().__init__(
            f"a message for {ticket.place} was returned: {message.code} {_printable(message.text)}; "
            "bind a queue for this routing key, or publish without mandatory",
            ticket,
        )
        self.message = message
        self.code: Final = message.code
        self.text: Final = message.text


class PublishInDoubtError(PublishError):
    """The channel or connection was lost before the confirm: the server may have the message or not.

    Publishing again may duplicate it. ``__cause__`` is the reason for the loss.
    """

    def __init__(self, ticket: Ticket, reason: BaseException | None) -> None:
        super().__init__(
            f"a message for {ticket.place} is in doubt: {reason or 'the publisher was closed'}; "
            "publish it again if a duplicate does no harm",
            ticket,
        )
        self.__cause__ = reason


class TransactionInDoubtError(AmqpError):
    """The answer to a commit was lost: the server may have done all of the transaction, or nothing."""


class ReturnedMessage:
    """A message that the server could not route.

    Attributes:
        code: the reply code: 312 for no route, 313 for no consumers.
        text: the server's reply-text.
        exchange: the exchange to which it was published.
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
    """The exception for a channel that was closed with an error, by the server or for an error of the server's."""
    kind = _KINDS.get(close.reply_code, ChannelClosedError) if by_peer else ChannelClosedError
    method = _name_of(close.class_id, close.method_id, methods)
    what = (
        f"the server closed channel {number}"
        if by_peer
        else f"channel {number} was closed, as the server broke a rule"
    )
    return kind(
        f"{what}: {_described(close.reply_code, close.reply_text, method)}",
        close.reply_code,
        close.reply_text,
        method,
    )


def connection_closed(close: ConnectionClose, methods: MethodTable = METHODS) -> ConnectionClosedError:
    """The exception for a connection that the server closed."""
    method = _name_of(close.class_id, close.method_id, methods)
    return ConnectionClosedError(
        f"the server closed the connection: {_described(close.reply_code, close.reply_text, method)}",
        close.reply_code,
        close.reply_text,
        method,
    )


def connection_lost(reason: str, cause: BaseException | None = None) -> ConnectionClosedError:
    """The exception for a connection that ended without a close."""
    lost = ConnectionClosedError(f"the connection was lost: {reason}")
    lost.__cause__ = cause
    return lost
