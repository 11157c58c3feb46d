"""Rules and conditions that only the draft of 2010 has (Book III, 8.13 to 8.19)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.errors import Condition, RemoteProtocolError, Scope

if TYPE_CHECKING:
    from collections.abc import Collection

_OPTIONAL: Final = "x-opt-"
_REQUIRED: Final = "x-req-"


class DraftCondition(StrEnum):
    """Conditions that the final standard does not have (8.18)."""

    UNSETTLED_LIMIT_EXCEEDED = "amqp:session:unsettled-limit-exceeded"
    LINK_ERROR = "amqp:session:link-error"


def check_options(value: Any, scope: Scope, known: Collection[str] = ()) -> None:
    """Refuse unknown options that may not be ignored (D 1508-1514).

    Args:
        value: a composite with ``options``.
        scope: what a breach ends.
        known: names that are understood.

    Raises:
        RemoteProtocolError: ``amqp:not-implemented``.
    """
    for key in value.options or ():
        if key not in known and not str(key).startswith(_OPTIONAL):
            raise RemoteProtocolError(
                f"option {key!r} of {type(value).__name__.lower()} is not known, and does not begin with "
                f"{_OPTIONAL} (D 1514)",
                Condition.NOT_IMPLEMENTED,
                scope,
            )


def invalid_field(text: str, lines: str, scope: Scope = "session") -> RemoteProtocolError:
    """Return ``amqp:invalid-field``, for a rule that the types do not express.

    Args:
        text: what was wrong, with the value.
        lines: the lines of the draft with the rule.
        scope: what it ends.
    """
    return RemoteProtocolError(f"{text} (D {lines})", Condition.INVALID_FIELD, scope)


def unsettled_limit(transfer_id: int, limit: int) -> RemoteProtocolError:
    """Return the error for a transfer beyond the credit of the session (D 1430, 1590)."""
    return RemoteProtocolError(
        f"transfer {transfer_id} exceeds the session-credit: expected an id before {limit} (D 1430)",
        DraftCondition.UNSETTLED_LIMIT_EXCEEDED,
        "session",
    )


def required_attribute(*attributes: Any) -> str | None:
    """Return the first key for which a target must reject the message (D 1837).

    A target must understand these keys, or reject the message. None of them is understood here.
    """
    for attrs in attributes:
        for key in attrs or ():
            if str(key).startswith(_REQUIRED):
                return str(key)
    return None
