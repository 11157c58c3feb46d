"""The error of an operation of management, and its status as numbers of HTTP.

Knows reasons; knows no operation.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from trio_amqp10.core.errors import AmqpError

Reason: TypeAlias = Literal[
    "invalid", "forbidden", "not-found", "exists", "precondition", "refused", "store-failed"
]
"""Why an operation was not done."""

_STATUS: Final[dict[Reason, int]] = {
    "invalid": 400,
    "forbidden": 403,
    "not-found": 404,
    "exists": 409,
    "precondition": 412,
    "refused": 422,
    "store-failed": 500,
}


class ManagementError(AmqpError):
    """An operation of management was not done, and has changed nothing.

    Args:
        reason: ``"invalid"``: an argument is not possible. ``"forbidden"``: on behalf of another, who lacks the permission;
            or a reserved name. ``"not-found"``: there is no such thing. ``"exists"``: the address is taken.
            ``"precondition"``: ``if_empty`` or ``if_unused`` does not hold. ``"refused"``: a node did not accept a message.
            ``"store-failed"``: the store cannot be written.
        description: what is wrong, with the value.
    """

    def __init__(self, reason: Reason, description: str) -> None:
        self.reason: Final[Reason] = reason
        self.description: Final = description
        super().__init__(description)

    @property
    def status(self) -> int:
        """The status code of HTTP for the reason, which "AMQP Management 1.0" uses too."""
        return _STATUS[self.reason]
