"""The errors of an operation of management, and their status as numbers of HTTP.

Knows reasons; knows no operation.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from trio_amqp10.core.errors import AmqpError

Reason: TypeAlias = Literal[
    "invalid",
    "forbidden",
    "not-found",
    "exists",
    "precondition",
    "refused",
    "too-many",
    "store-failed",
    "not-implemented",
    "other",
]
"""Why an operation was not done."""

_STATUS: Final[dict[Reason, int]] = {
    "invalid": 400,
    "forbidden": 403,
    "not-found": 404,
    "exists": 409,
    "precondition": 412,
    "refused": 422,
    "too-many": 429,
    "store-failed": 500,
    "not-implemented": 501,
    "other": 502,
}
_REASONS: Final[dict[int, Reason]] = {status: reason for reason, status in _STATUS.items()}


class ManagementError(AmqpError):
    """An operation of management was not done, and has changed nothing.

    Args:
        reason: ``"invalid"``: an argument is not possible. ``"forbidden"``: on behalf of another, who lacks the permission;
            or a reserved name. ``"not-found"``: there is no such thing. ``"exists"``: the address is taken.
            ``"precondition"``: ``if_empty`` or ``if_unused`` does not hold. ``"refused"``: a node did not accept a message.
            ``"too-many"``: there are as many of these as there may be. ``"store-failed"``: the store cannot be written. ``"not-implemented"`` and ``"other"``: only of a peer, see
            ``OperationRefusedError``.
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


class OperationRefusedError(ManagementError):
    """The management of a peer refused an operation.

    Attributes:
        operation: the operation of "AMQP Management 1.0", e.g. ``"PURGE"``.
        status: the status code of the reply, as in HTTP.
        reason: the reason for this status, as ``container.management`` gives it; ``"not-implemented"``: the peer does not know the
            operation, as it is of another kind or of an older version; ``"other"``: a status that containers do not send.
        description: the description of the peer.
    """

    def __init__(self, operation: str, status: int, description: str) -> None:
        super().__init__(_REASONS.get(status, "other"), description)
        self.operation: Final = operation
        self._status: Final = status

    @property
    def status(self) -> int:
        """The status code of the reply."""
        return self._status

    def __str__(self) -> str:
        return f"the peer refuses {self.operation}: {self.description} ({self.status})"
