"""The errors of the broker: one class for each kind, with its error condition.

A protocol translates the class into its own code: 0-9-1 into 403, 404, 405, 406 or 540, the requests of RabbitMQ 4 into a
status of HTTP. A refused operation changes nothing.
"""

from __future__ import annotations

from typing import ClassVar

from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition

from .argument_equality import name_of_type


def title_of(kind: str, name: str, virtual_host: str = "/") -> str:
    """Return a queue or an exchange as RabbitMQ's texts name it.

    Programs match on these texts.
    """
    return f"{kind} '{name}' in vhost '{virtual_host}'"


def locked(title: str) -> str:
    """Return RabbitMQ's text for an exclusive queue that is refused.

    Another connection uses it, or it is declared with another value of ``exclusive``.
    """
    return (
        f"cannot obtain exclusive access to locked {title}. It could be originally declared on another "
        "connection or the exclusive property value does not match that of the original declaration."
    )


class BrokerError(RefusedError):
    """The broker refuses an operation.

    Args:
        description: text for people; sent to the peer.

    Attributes:
        CONDITION: the error condition of the class.
    """

    CONDITION: ClassVar[Condition]

    def __init__(self, description: str) -> None:
        super().__init__(self.CONDITION, description)


class NotFoundError(BrokerError):
    """No such queue or exchange exists."""

    CONDITION: ClassVar[Condition] = Condition.NOT_FOUND


class AccessRefusedError(BrokerError):
    """The name is reserved, or the exchange takes no messages from publishers."""

    CONDITION: ClassVar[Condition] = Condition.UNAUTHORIZED_ACCESS


class LockedError(BrokerError):
    """The queue is exclusive to another connection, or the node is not a queue."""

    CONDITION: ClassVar[Condition] = Condition.RESOURCE_LOCKED


class PreconditionError(BrokerError):
    """An argument is not valid, or the queue or exchange is in use or not empty."""

    CONDITION: ClassVar[Condition] = Condition.PRECONDITION_FAILED


class InequivalentError(PreconditionError):
    """A queue or an exchange exists with another property.

    Args:
        kind: ``"queue"`` or ``"exchange"``.
        name: the name of the queue or exchange.
        argument: the property that differs, e.g. ``"durable"`` or ``"x-max-length"``.
        received: its value in the declaration; None if absent.
        current: its present value; None if absent.
        virtual_host: the virtual host, for the text.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        argument: str,
        received: object,
        current: object,
        virtual_host: str = "/",
    ) -> None:
        self.kind = kind
        self.name = name
        self.argument = argument
        title = title_of(kind, name, virtual_host)
        super().__init__(
            f"inequivalent arg '{argument}' for {title}: "
            f"received {_shown(received, current)} but current is {_shown(current, received)}"
        )


def _shown(value: object, other: object) -> str:
    """Return a value as RabbitMQ shows it: with its type if the other value is absent."""
    if value is None:
        return "none"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"the value '{text}' of type '{name_of_type(value)}'" if other is None else f"'{text}'"


class UnsupportedError(BrokerError):
    """RabbitMQ has this feature, and this broker does not."""

    CONDITION: ClassVar[Condition] = Condition.NOT_IMPLEMENTED
