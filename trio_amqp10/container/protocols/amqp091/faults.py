"""What a refusal of the container's is to a peer of 0-9-1: its reply code (0-9-1, 4.8).

Knows error conditions and codes; knows no method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.errors import Condition
from trio_amqp10.reply_codes import ReplyCode091

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import RefusedError

__all__ = ["connection_code", "fault_of"]

_CODES: Final[dict[str, ReplyCode091]] = {
    Condition.UNAUTHORIZED_ACCESS.value: ReplyCode091.ACCESS_REFUSED,
    Condition.NOT_FOUND.value: ReplyCode091.NOT_FOUND,
    Condition.RESOURCE_LOCKED.value: ReplyCode091.RESOURCE_LOCKED,
    Condition.PRECONDITION_FAILED.value: ReplyCode091.PRECONDITION_FAILED,
    Condition.NOT_IMPLEMENTED.value: ReplyCode091.NOT_IMPLEMENTED,
    Condition.INTERNAL_ERROR.value: ReplyCode091.INTERNAL_ERROR,
    Condition.NOT_ALLOWED.value: ReplyCode091.ACCESS_REFUSED,
}
"""What a channel, or the connection where the code is a hard one, ends with; 406 for any other condition."""

_CONNECTION_CODES: Final[dict[str, ReplyCode091]] = {
    Condition.CONNECTION_FORCED.value: ReplyCode091.CONNECTION_FORCED,
    Condition.INTERNAL_ERROR.value: ReplyCode091.INTERNAL_ERROR,
    Condition.RESOURCE_LIMIT_EXCEEDED.value: ReplyCode091.RESOURCE_ERROR,
}


def fault_of(refusal: RefusedError) -> ReplyError:
    """The error with which the method that caused this is answered."""
    code = _CODES.get(refusal.condition, ReplyCode091.PRECONDITION_FAILED)
    return ReplyError(code, refusal.description)


def connection_code(condition: str) -> ReplyCode091:
    """The code with which a connection is closed; 530 for a condition that no other code stands for."""
    return _CONNECTION_CODES.get(condition, ReplyCode091.NOT_ALLOWED)
