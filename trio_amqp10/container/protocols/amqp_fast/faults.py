"""Refusals of nodes and of the container as reply codes (RFC 011, 3.3).

Knows conditions and codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp_fast.faults import Level, ReplyError
from trio_amqp10.errors import Condition
from trio_amqp10.reply_codes import ReplyCodeRfc011

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import RefusedError

__all__ = ["code_of", "fault_of"]

_R = ReplyCodeRfc011
_CODES: Final[dict[str, ReplyCodeRfc011]] = {
    Condition.UNAUTHORIZED_ACCESS.value: _R.ACCESS_REFUSED,
    Condition.NOT_ALLOWED.value: _R.ACCESS_REFUSED,
    Condition.RESOURCE_LOCKED.value: _R.ACCESS_REFUSED,
    Condition.NOT_FOUND.value: _R.DESTINATION_NOT_FOUND,
    Condition.RESOURCE_DELETED.value: _R.DESTINATION_NOT_FOUND,
    Condition.RESOURCE_LIMIT_EXCEEDED.value: _R.INSUFFICIENT_RESOURCES,
    Condition.MESSAGE_SIZE_EXCEEDED.value: _R.MESSAGE_TOO_LARGE,
    Condition.NOT_IMPLEMENTED.value: _R.NOT_IMPLEMENTED,
    Condition.PRECONDITION_FAILED.value: _R.COMMAND_NOT_VALID,
    Condition.DECODE_ERROR.value: _R.CONTENT_INVALID,
    Condition.CONNECTION_FORCED.value: _R.CLIENT_ALREADY_ACTIVE,
}


def code_of(condition: str | None) -> ReplyCodeRfc011:
    """The code for a condition; 541 (internal error) for any that no other code stands for."""
    return _CODES.get(condition or "", _R.INTERNAL_ERROR)


def fault_of(refusal: RefusedError, level: Level = Level.HANDLE) -> ReplyError:
    """The error with which the command that caused this is answered."""
    return ReplyError(code_of(refusal.condition), refusal.description, level)
