"""The errors of this library as errors of kombu.

kombu and Celery retry and reconnect by the class of an error.

kombu's classes are those of py-amqp: programs that catch them need no change.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio
from amqp import exceptions as kinds

from trio_amqp10.amqp10.peer.errors import LinkDetachedError, SessionEndedError
from trio_amqp10.core.errors import AmqpError, Condition, LocalProtocolError, MessageSizeError, SecurityError
from trio_amqp10.net.errors import ConnectionClosedError, GoneError
from trio_amqp10.rabbitmq import ManagementError

if TYPE_CHECKING:
    from collections.abc import Generator

_BY_CONDITION: Final[dict[str, type[Exception]]] = {
    Condition.NOT_FOUND: kinds.NotFound,
    Condition.RESOURCE_DELETED: kinds.NotFound,
    Condition.UNAUTHORIZED_ACCESS: kinds.AccessRefused,
    Condition.NOT_ALLOWED: kinds.NotAllowed,
    Condition.RESOURCE_LOCKED: kinds.ResourceLocked,
    Condition.PRECONDITION_FAILED: kinds.PreconditionFailed,
    Condition.RESOURCE_LIMIT_EXCEEDED: kinds.ResourceError,
    Condition.MESSAGE_SIZE_EXCEEDED: kinds.ContentTooLarge,
    Condition.NOT_IMPLEMENTED: kinds.AMQPNotImplementedError,
}

_BY_STATUS: Final[dict[int, type[Exception]]] = {
    401: kinds.AccessRefused,
    403: kinds.AccessRefused,
    404: kinds.NotFound,
    405: kinds.ResourceLocked,
    409: kinds.PreconditionFailed,
}

_BY_CLASS: Final[tuple[tuple[type[Exception], type[Exception]], ...]] = (
    (MessageSizeError, kinds.ContentTooLarge),
    (SecurityError, kinds.AccessRefused),
    (ConnectionClosedError, kinds.ConnectionForced),
    (SessionEndedError, kinds.RecoverableConnectionError),
    (LinkDetachedError, kinds.ConsumerCancelled),
    (trio.ClosedResourceError, kinds.RecoverableConnectionError),
    (trio.TooSlowError, TimeoutError),
    (AmqpError, kinds.RecoverableConnectionError),
)
"""The first class that fits gives the class of kombu."""


def translated(failure: Exception) -> Exception:
    """Return the exception of kombu for an exception of this library.

    Any other exception is returned unchanged.
    """
    if isinstance(failure, LocalProtocolError) and not isinstance(failure, MessageSizeError):
        return failure  # the program passed a wrong value, and trying again does not help
    kind = None
    if isinstance(failure, GoneError):
        kind = _BY_CONDITION.get(failure.condition or "")
    elif isinstance(failure, ManagementError):
        kind = _BY_STATUS.get(failure.status)
    for source, target in _BY_CLASS:
        if kind is None and isinstance(failure, source):
            kind = target
    return failure if kind is None else kind(str(failure) or "no answer in time")


@contextmanager
def kombu_errors() -> Generator[None]:
    """Raise errors of this library as errors of kombu, with the original as cause."""
    try:
        yield
    except Exception as failure:
        raised = translated(failure)
        if raised is failure:
            raise
        raise raised from failure
