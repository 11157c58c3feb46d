"""Requests to ``$management`` of a container, for all commands that operate one.

Knows requests and replies; knows no command.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import Int

from .command_runner import CommandError
from .dial_management import dial_management

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .dial_options import DialOptions

Entity = dict[str, Any]

_PAGE: Final = 500
"""Entities in each reply: a reply is a message, whose size is limited."""
_PATIENCE: Final = 10.0
"""Seconds to wait for each reply."""
_ADDRESS: Final = "$management"
ITSELF: Final[dict[str, Any]] = {
    "type": "org.amqp.management",
    "name": "self",
}
"""The properties of a request for an operation of the management node itself."""


class NoManagementError(CommandError):
    """The peer has no ``$management``, or does not permit it."""

    def __init__(self, why: object) -> None:
        super().__init__(
            f'the peer refuses {_ADDRESS} ({why}); a container has it with "amqp10 serve --management"'
        )


class OperationError(CommandError):
    """An operation failed.

    Args:
        message: the reason of the container.
        status: its status, as in HTTP: 404 for an entity that does not exist.
    """

    def __init__(self, message: str, status: object) -> None:
        super().__init__(message)
        self.status = status


@asynccontextmanager
async def open_management(url: str, dial: DialOptions) -> AsyncGenerator[ManagementClient, None]:
    """Connect to the management of a container.

    Raises:
        NoManagementError: the peer has none.
        CommandError, OSError, AmqpError: as ``dial_management``.

    Cancelled: the connection is closed.
    """
    async with dial_management(url, dial) as connection:
        try:
            async with connection.open_requester(_ADDRESS) as requester:
                yield ManagementClient(requester)
        except amqp.LinkRefusedError as refused:
            raise NoManagementError(refused) from None


class ManagementClient:
    """Sends requests, one at a time.

    Args:
        requester: of the node ``$management``.
    """

    def __init__(self, requester: amqp.Requester) -> None:
        self._requester = requester

    async def request(
        self, operation: str, body: Any = None, *, patience: float | None = _PATIENCE, **asked: Any
    ) -> Any:
        """Return the body of the reply.

        Args:
            operation: its name.
            body: the body of the request.
            patience: seconds to wait for the reply; None for any time.
            asked: the other properties; ``_`` in a name is ``-``, and None is left out.

        Raises:
            OperationError: the operation failed.
            CommandError: there was no reply in time.

        Cancelled: the operation may have been done.
        """
        properties = {
            name.replace("_", "-"): _as_sent(value) for name, value in asked.items() if value is not None
        }
        reply = await self._send({"operation": operation, **properties}, body, patience)
        status = reply.application_properties
        code = status.get("statusCode")
        if not isinstance(code, int) or code >= 300:
            raise OperationError(_explained(code, status.get("statusDescription"), operation), code)
        return reply.body

    async def list(self, kind: str) -> list[Entity]:
        """Return all entities of a type.

        Raises:
            CommandError: as ``request``, or the management of the peer is of another kind.

        Cancelled: nothing has changed.
        """
        found: list[Entity] = []
        while True:
            asked: dict[str, Any] = {
                "operation": "QUERY",
                **ITSELF,
                "entityType": kind,
                "offset": Int(len(found)),
                "count": Int(_PAGE),
            }
            reply = await self._send(asked, {"attributeNames": []}, _PATIENCE)
            status, body = reply.application_properties, reply.body
            if status.get("statusCode") != 200 or not isinstance(body, dict):
                raise CommandError(
                    f"{_ADDRESS} does not list a {kind}: {status.get('statusCode')} {status.get('statusDescription')}; "
                    "amqp10 supports only the management of trio-amqp10 containers"
                )
            table = cast("dict[str, list[Any]]", body)
            names, rows = table["attributeNames"], table["results"]
            found += [dict(zip(map(str, names), row, strict=True)) for row in rows]
            if not rows or not status.get("more", len(rows) >= _PAGE):
                return found

    async def _send(self, asked: dict[str, Any], body: Any, patience: float | None) -> amqp.Message:
        request = amqp.Message(body, application_properties=asked)
        try:
            return await self._requester.request(request, timeout=patience)
        except trio.TooSlowError:
            raise CommandError(f"{_ADDRESS} did not answer within {patience:g} s") from None


def _as_sent(value: Any) -> Any:
    return Int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _explained(status: object, description: object, operation: str) -> str:
    if status == 501:
        return (
            f"the peer's {_ADDRESS} cannot {operation.lower()}: it is of another kind, or of an older version"
        )
    return f"{description} ({status})"
