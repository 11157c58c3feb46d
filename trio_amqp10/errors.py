"""The bases of the exception tree, and the error conditions that we send.

Knows nothing of the rest of the package, nor of trio: what only the adapter can
raise (a connection that is gone, a rejected delivery) lives in ``net/errors.py`` and ``peer/errors.py``.

Sections: 2.8.14 to 2.8.18 (error, amqp-error, connection-error, session-error, link-error),
4.5.8 (transaction-error).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, Literal

__all__ = [
    "AmqpError",
    "Condition",
    "LocalProtocolError",
    "MessageSizeError",
    "RemoteProtocolError",
    "Scope",
    "SecurityDowngradeError",
    "SecurityError",
]

Scope = Literal["connection", "session", "link"]

TEXT_LIMIT: Final = 1024
"""Characters of a peer's own text that we keep: it is shown and logged, never trusted."""


class Condition(StrEnum):
    """Every error condition that the standard defines, and so every one that we send.

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
    """Base of everything that this library raises on purpose."""


class LocalProtocolError(AmqpError):
    """You broke a rule; nothing was changed and nothing was sent."""


class MessageSizeError(LocalProtocolError):
    """A message is larger than the peer takes on this link (2.7.3); nothing was sent.

    Args:
        size: octets of the message.
        limit: octets of the largest message that the peer takes.
    """

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"{Condition.MESSAGE_SIZE_EXCEEDED}: a message of {size} octets, "
            f"where the peer takes {limit} on this link (2.7.3)"
        )
        self.size = size
        self.limit = limit


class RemoteProtocolError(AmqpError):
    """The peer broke a rule, or sent octets that are not what they should be.

    Args:
        description: what was wrong, with the value where there is one.
        condition: the error condition that the standard gives it.
        scope: how much of the conversation the fault ends.
        info: the ``info`` map that goes with the error, if any.
        rule: the name of the rule that was broken; None if a mechanism or an application has its own.
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
        super().__init__(f"{condition!s}: {description}{f' [{rule}]' if rule else ''}")
        self.description = description
        self.condition: Final = str(condition)
        self.scope: Scope = scope
        self.info = info
        self.rule = rule


class SecurityError(AmqpError):
    """A downgrade, no acceptable mechanism, or a failed authentication."""


class SecurityDowngradeError(SecurityError):
    """The peer answered with a weaker layer than was asked for, e.g. AMQP instead of SASL (2.2)."""
