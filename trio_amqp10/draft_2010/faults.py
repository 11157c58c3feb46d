"""Rules of the draft of 2010 that the final standard has not, and the conditions of a breach (Book III, 8.13 to 8.19)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import Condition, RemoteProtocolError, Scope

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["DraftCondition", "check_options", "invalid_field", "required_attribute", "unsettled_limit"]

_OPTIONAL: Final = "x-opt-"
_REQUIRED: Final = "x-req-"


class DraftCondition(StrEnum):
    """Conditions that the final standard has not (8.18)."""

    UNSETTLED_LIMIT_EXCEEDED = "amqp:session:unsettled-limit-exceeded"
    LINK_ERROR = "amqp:session:link-error"


def check_options(value: Any, scope: Scope, known: Collection[str] = ()) -> None:
    """Refuse options that are not known here, and may not be ignored (D 1508-1514).

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
                f"option {key!r} of {type(value).__name__.lower()} is not known here, and does not begin with "
                f"{_OPTIONAL} (D 1514)",
                Condition.NOT_IMPLEMENTED,
                scope,
            )


def invalid_field(text: str, lines: str, scope: Scope = "session") -> RemoteProtocolError:
    """``amqp:invalid-field``, for what the lists of fields do not say.

    Args:
        text: what was wrong, with the value.
        lines: where the draft says what is due.
        scope: what it ends.
    """
    return RemoteProtocolError(f"{text} (D {lines})", Condition.INVALID_FIELD, scope)


def unsettled_limit(transfer_id: int, limit: int) -> RemoteProtocolError:
    """A transfer beyond the credit of the session (D 1430, 1590)."""
    return RemoteProtocolError(
        f"transfer {transfer_id} where {limit} is the first that our session-credit does not cover (D 1430)",
        DraftCondition.UNSETTLED_LIMIT_EXCEEDED,
        "session",
    )


def required_attribute(*attributes: Any) -> str | None:
    """The first key that a target has to understand or reject the message; nothing here does (D 1837)."""
    for attrs in attributes:
        for key in attrs or ():
            if str(key).startswith(_REQUIRED):
                return str(key)
    return None
