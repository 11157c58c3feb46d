"""The management of a container, for all commands that operate one.

Knows which errors a command reports in its own words; knows no command and no request.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10.container.management.errors import OperationRefusedError

from .command_runner import CommandError, in_options
from .dial_management import dial_management

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from trio_amqp10.container.management.remote_management import RemoteManagement

    from .dial_options import DialOptions

Entity = dict[str, Any]

RABBITMQ: Final = "RabbitMQ"
"""The product that RabbitMQ names when a connection opens."""
PATIENCE: Final = 10.0
"""Seconds to wait for each reply."""


class NoManagementError(CommandError):
    """The peer has no ``$management``, or does not permit it.

    Args:
        why: the refusal.
        product: the product that the peer names when the connection opens, or None.
    """

    def __init__(self, why: object, product: object = None) -> None:
        if product == RABBITMQ:
            super().__init__(
                "the peer is RabbitMQ, which this command cannot operate: use rabbitmqadmin or rabbitmqctl"
            )
        else:
            super().__init__(in_options(f"the peer refuses $management ({why})"))


@asynccontextmanager
async def open_management(
    url: str, dial: DialOptions, *, patience: float | None = PATIENCE
) -> AsyncGenerator[RemoteManagement, None]:
    """Connect to the management of a container.

    Args:
        url: the container.
        dial: the options for dialling.
        patience: seconds to wait for each reply; None for any time.

    Raises:
        NoManagementError: the peer has none.
        CommandError, OSError, AmqpError: as ``dial_management``; and in the block as ``operation_errors``.

    Cancelled: the connection is closed.
    """
    async with dial_management(url, dial) as connection:
        try:
            with operation_errors():
                async with connection.open_management(timeout=patience) as management:
                    yield management
        except (amqp.LinkRefusedError, amqp.SessionEndedError) as refused:
            product = connection.remote.properties.get("product")
            if isinstance(refused, amqp.SessionEndedError) and product != RABBITMQ:
                raise
            raise NoManagementError(refused, product) from None


@contextmanager
def operation_errors() -> Generator[None]:
    """Report the errors of operations as those of a command.

    Raises:
        CommandError: the operation was refused, or there was no reply in time.
    """
    try:
        yield
    except OperationRefusedError as refused:
        raise CommandError(refusal_text(refused)) from None
    except trio.TooSlowError as late:
        raise CommandError(str(late)) from None


def refusal_text(refused: OperationRefusedError) -> str:
    """Return the reason of the container."""
    if refused.reason == "not-implemented":
        return (
            f"the peer's $management cannot {refused.operation.lower()}: it is of another kind, "
            "or of an older version"
        )
    return refused.description if refused.reason != "other" else f"{refused.description} ({refused.status})"


async def list_entities(management: RemoteManagement, kind: str) -> list[Entity]:
    """Return all entities of a type.

    Raises:
        CommandError: the management of the peer is of another kind.
        AmqpError: as ``RemoteListing.page``.

    Cancelled: nothing has changed.
    """
    try:
        return [each async for each in management.entities(kind)]
    except OperationRefusedError as refused:
        raise CommandError(
            f"$management does not list a {kind}: {refused.description}; "
            "amqp10 supports only the management of trio-amqp10 containers"
        ) from None
