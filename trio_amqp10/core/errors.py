"""The base classes of exceptions, and the error conditions that we send.

Knows neither the rest of the package nor trio: exceptions of the adapter (a lost connection, a rejected delivery) are in
``net/errors.py`` and ``amqp10/peer/errors.py``.

Sections: 2.8.14 to 2.8.18 (error, amqp-error, connection-error, session-error, link-error),
4.5.8 (transaction-error).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, Literal

Scope = Literal["connection", "session", "link"]

TEXT_LIMIT: Final = 1024
"""Characters of a peer's text that we keep; it is shown and logged, never trusted.

Our own errors have no more, because they quote the peer.
"""


class Condition(StrEnum):
    """The error conditions that the standard defines; we send no others.

    Peers may send others: received conditions stay plain symbols.
    """

    INTERNAL_ERROR = "amqp:internal-error"
    NOT_FOUND = "amqp:not-found"
    UNAUTHORIZED_ACCESS = "amqp:unauthorized-access"
    DECODE_ERROR = "amqp:decode-error"
    RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded"
    NOT_ALLOWED = "amqp:not-allowed"
    INVALID_FIELD = "amqp:invalid-field"
    NOT_IMPLEMENTED = "amqp:not-implemented"
    RESOURCE_LOCKED = "amqp:resource-locked"
    PRECONDITION_FAILED = "amqp:precondition-failed"
    RESOURCE_DELETED = "amqp:resource-deleted"
    ILLEGAL_STATE = "amqp:illegal-state"
    FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small"

    CONNECTION_FORCED = "amqp:connection:forced"
    FRAMING_ERROR = "amqp:connection:framing-error"
    CONNECTION_REDIRECT = "amqp:connection:redirect"

    WINDOW_VIOLATION = "amqp:session:window-violation"
    ERRANT_LINK = "amqp:session:errant-link"
    HANDLE_IN_USE = "amqp:session:handle-in-use"
    UNATTACHED_HANDLE = "amqp:session:unattached-handle"

    DETACH_FORCED = "amqp:link:detach-forced"
    TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded"
    MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded"
    LINK_REDIRECT = "amqp:link:redirect"
    STOLEN = "amqp:link:stolen"

    TRANSACTION_UNKNOWN_ID = "amqp:transaction:unknown-id"
    TRANSACTION_ROLLBACK = "amqp:transaction:rollback"
    TRANSACTION_TIMEOUT = "amqp:transaction:timeout"


class AmqpError(Exception):
    """Base class of all exceptions that this library raises on purpose."""


class LocalProtocolError(AmqpError):
    """The program broke a rule; nothing was changed and nothing was sent."""


class MessageSizeError(LocalProtocolError):
    """A message is larger than the peer accepts on this link (2.7.3).

    Nothing was sent.

    Args:
        size: octets of the message.
        limit: octets of the largest message that the peer accepts.
    """

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"{Condition.MESSAGE_SIZE_EXCEEDED}: a message of {size} octets, "
            f"where the peer takes {limit} on this link (2.7.3)"
        )
        self.size = size
        self.limit = limit


class RemoteProtocolError(AmqpError):
    """The peer broke a rule, or sent invalid octets.

    Args:
        description: the fault, with the value if there is one; cut after 1,024 characters, because the peer chose the
            value.
        condition: the error condition that the standard assigns to it.
        scope: the part of the conversation that the fault ends.
        info: the ``info`` map of the error, if any.
        rule: the name of the broken rule; None if a mechanism or an application defines the error.
    """

    def __init__(
        self,
        description: str,
        condition: str = Condition.DECODE_ERROR,
        scope: Scope = "connection",
        info: dict[str, Any] | None = None,
        *,
        rule: str | None = None,
    ) -> None:
        description = description[:TEXT_LIMIT]
        super().__init__(f"{condition!s}: {description}{f' [{rule}]' if rule else ''}")
        self.description = description
        self.condition: Final = str(condition)
        self.scope: Scope = scope
        self.info = info
        self.rule = rule


class SecurityError(AmqpError):
    """A downgrade, no acceptable mechanism, or a failed authentication."""


class SecurityDowngradeError(SecurityError):
    """The peer answered with a weaker layer, e.g. AMQP instead of SASL (2.2)."""
