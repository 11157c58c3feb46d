"""Reply codes for refusals of nodes and of the container (RFC 011, 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.core.errors import Condition
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.node import RefusedError

_R = ReplyCodeRfc011
_CODES: Final[dict[str, ReplyCodeRfc011]] = {
    Condition.UNAUTHORIZED_ACCESS.value: _R.ACCESS_REFUSED,
    Condition.NOT_ALLOWED.value: _R.ACCESS_REFUSED,
    Condition.RESOURCE_LOCKED.value: _R.ACCESS_REFUSED,
    Condition.NOT_FOUND.value: _R.DESTINATION_NOT_FOUND,
    Condition.LINK_REDIRECT.value: _R.DESTINATION_NOT_FOUND,
    Condition.RESOURCE_DELETED.value: _R.DESTINATION_NOT_FOUND,
    Condition.RESOURCE_LIMIT_EXCEEDED.value: _R.INSUFFICIENT_RESOURCES,
    Condition.MESSAGE_SIZE_EXCEEDED.value: _R.MESSAGE_TOO_LARGE,
    Condition.NOT_IMPLEMENTED.value: _R.NOT_IMPLEMENTED,
    Condition.PRECONDITION_FAILED.value: _R.COMMAND_NOT_VALID,
    Condition.DECODE_ERROR.value: _R.CONTENT_INVALID,
    Condition.CONNECTION_FORCED.value: _R.CLIENT_ALREADY_ACTIVE,
}


def code_of(condition: str | None) -> ReplyCodeRfc011:
    """Return the code for a condition; 541 (internal error) for unknown conditions."""
    return _CODES.get(condition or "", _R.INTERNAL_ERROR)


def fault_of(refusal: RefusedError, level: Level = Level.HANDLE) -> ReplyError:
    """Convert a refusal to the error that answers the command."""
    return ReplyError(code_of(refusal.condition), refusal.description, level)
