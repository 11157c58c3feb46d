"""Why the broker refuses an operation: one class for each kind, each with its error condition.

A protocol translates the class into its own code: 0-9-1 into 403, 404, 405, 406 or 540, the requests of RabbitMQ 4
into a status of HTTP. A refused operation changes nothing.
"""

from __future__ import annotations

from typing import ClassVar

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition

__all__ = [
    "AccessRefusedError",
    "BrokerError",
    "InequivalentError",
    "LockedError",
    "NotFoundError",
    "PreconditionError",
    "UnsupportedError",
]


class BrokerError(RefusedError):
    """The broker refuses an operation.

    Args:
        description: for people; goes to the peer.

    Attributes:
        CONDITION: the error condition that all of this class have.
    """

    CONDITION: ClassVar[Condition]

    def __init__(self, description: str) -> None:
        super().__init__(self.CONDITION, description)


class NotFoundError(BrokerError):
    """There is no such queue or exchange."""

    CONDITION: ClassVar[Condition] = Condition.NOT_FOUND


class AccessRefusedError(BrokerError):
    """The name is reserved, or the exchange takes no messages from publishers."""

    CONDITION: ClassVar[Condition] = Condition.UNAUTHORIZED_ACCESS


class LockedError(BrokerError):
    """The queue is exclusive to another connection, or what has this name is no queue of the broker's."""

    CONDITION: ClassVar[Condition] = Condition.RESOURCE_LOCKED


class PreconditionError(BrokerError):
    """An argument is not valid, or what exists is in use or not empty."""

    CONDITION: ClassVar[Condition] = Condition.PRECONDITION_FAILED


class InequivalentError(PreconditionError):
    """A queue or an exchange exists with another property.

    Args:
        kind: ``"queue"`` or ``"exchange"``.
        name: of the queue or exchange.
        argument: the property that differs, e.g. ``"durable"`` or ``"x-max-length"``.
        received: its value in the declaration; None if it has none.
        current: its value now; None if it has none.
    """

    def __init__(self, kind: str, name: str, argument: str, received: object, current: object) -> None:
        self.kind = kind
        self.name = name
        self.argument = argument
        received, current = ("none" if value is None else repr(value) for value in (received, current))
        super().__init__(
            f"inequivalent arg '{argument}' for {kind} '{name}': received {received} but current is {current}"
        )


class UnsupportedError(BrokerError):
    """RabbitMQ can do this, and the broker cannot."""

    CONDITION: ClassVar[Condition] = Condition.NOT_IMPLEMENTED
