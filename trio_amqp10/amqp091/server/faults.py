"""The reply code for a refusal of the container (0-9-1, 4.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.core.errors import Condition
from trio_amqp10.core.reply_codes import ReplyCode091

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.node import RefusedError

_CODES: Final[dict[str, ReplyCode091]] = {
    Condition.UNAUTHORIZED_ACCESS.value: ReplyCode091.ACCESS_REFUSED,
    Condition.NOT_FOUND.value: ReplyCode091.NOT_FOUND,
    Condition.LINK_REDIRECT.value: ReplyCode091.NOT_FOUND,
    Condition.RESOURCE_LOCKED.value: ReplyCode091.RESOURCE_LOCKED,
    Condition.PRECONDITION_FAILED.value: ReplyCode091.PRECONDITION_FAILED,
    Condition.NOT_IMPLEMENTED.value: ReplyCode091.NOT_IMPLEMENTED,
    Condition.INTERNAL_ERROR.value: ReplyCode091.INTERNAL_ERROR,
    Condition.NOT_ALLOWED.value: ReplyCode091.ACCESS_REFUSED,
}
"""The reply code for each condition, on a channel; 406 for any other condition.

A hard code closes the connection instead.
"""

_CONNECTION_CODES: Final[dict[str, ReplyCode091]] = {
    Condition.CONNECTION_FORCED.value: ReplyCode091.CONNECTION_FORCED,
    Condition.INTERNAL_ERROR.value: ReplyCode091.INTERNAL_ERROR,
    Condition.RESOURCE_LIMIT_EXCEEDED.value: ReplyCode091.RESOURCE_ERROR,
}


def fault_of(refusal: RefusedError) -> ReplyError:
    """Return the error that answers a refused method."""
    code = _CODES.get(refusal.condition, ReplyCode091.PRECONDITION_FAILED)
    return ReplyError(code, refusal.description)


def connection_code(condition: str) -> ReplyCode091:
    """Return the reply code to close a connection with; 530 for other conditions."""
    return _CONNECTION_CODES.get(condition, ReplyCode091.NOT_ALLOWED)
