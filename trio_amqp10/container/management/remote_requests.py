"""Requests to the management node of a peer, and the parts of its replies.

Knows requests, replies and pages; knows no operation, and no status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Int
from trio_amqp10.core.errors import Condition, RemoteProtocolError
from trio_amqp10.net.errors import TimedOutError

from .errors import OperationRefusedError
from .status_values import as_list

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.requester import Requester

Entity = dict[str, Any]

_ITSELF: Final = {"type": "org.amqp.management", "name": "self"}
"""The properties of a request for an operation of the management node itself."""


class EntityPage(NamedTuple):
    """Some entities of a list.

    Attributes:
        entities: each with its attributes by name.
        more: whether further entities follow.
    """

    entities: list[Entity]
    more: bool


class RemoteRequests:
    """Sends requests of "AMQP Management 1.0", any number at a time.

    Args:
        requester: of the management node.
        address: the address of that node, for messages of errors.
        timeout: seconds to wait for each reply; None for any time.
    """

    def __init__(self, requester: Requester, address: str, timeout: float | None) -> None:
        self.address: Final = address
        self._requester = requester
        self._timeout = timeout

    async def reply_to(self, operation: str, body: Any = None, **asked: Any) -> Any:
        """Return the body of the reply.

        Args:
            operation: its name.
            body: the body of the request.
            asked: the other properties; ``_`` in a name is ``-``, and None is left out.

        Raises:
            OperationRefusedError: the status of the reply is not one of success.
            RemoteProtocolError: the reply has no status.
            TimedOutError: there was no reply in time.
            DeliveryRejectedError, ConnectionClosedError, ...: as ``Requester.request``.

        Cancelled: the operation may have been done.
        """
        return (await self._send(operation, body, asked)).body

    async def map_reply_to(self, operation: str, body: Any = None, **asked: Any) -> Mapping[str, Any]:
        """Return the body of the reply, which must be a map.

        Raises: as ``reply_to``; ``RemoteProtocolError`` also if it is none.

        Cancelled: as ``reply_to``.
        """
        return self._as_map(operation, await self.reply_to(operation, body, **asked))

    async def node_reply_to(self, operation: str, body: Any = None, **asked: Any) -> Mapping[str, Any]:
        """Return the body of the reply of the management node for itself.

        Raises: as ``map_reply_to``. Cancelled: as ``reply_to``.
        """
        return await self.map_reply_to(operation, body, **_ITSELF, **asked)

    async def page(
        self, kind: str, offset: int, count: int, names: tuple[str, ...] = (), **asked: Any
    ) -> EntityPage:
        """Return entities of a type, after the first ``offset``.

        Args:
            kind: the type.
            offset: entities to skip.
            count: entities at most; the peer may send fewer although more follow.
            names: the attributes of each; all if empty.
            asked: other properties, as for ``reply_to``.

        Raises: as ``map_reply_to``. Cancelled: nothing has changed.
        """
        properties = {**_ITSELF, "entityType": kind, "offset": offset, "count": count, **asked}
        reply = await self._send("QUERY", {"attributeNames": list(names)}, properties)
        body = self._as_map("QUERY", reply.body)
        columns: Any = body.get("attributeNames")
        rows: Any = body.get("results")
        if not _are_rows(columns, rows):
            raise self.fault(
                "QUERY", f"attributeNames={columns!r:.64}, results={rows!r:.64}: expected a table"
            )
        names = tuple(map(str, columns))
        entities = [dict(zip(names, row, strict=True)) for row in rows]
        more = reply.application_properties.get("more", len(entities) >= count)
        return EntityPage(entities, more=bool(more))

    def fault(self, operation: str, what: str) -> RemoteProtocolError:
        """Return the error for a reply of the wrong shape."""
        return RemoteProtocolError(
            f"the reply of {self.address} to {operation} has another shape than that of a container: {what}",
            Condition.INVALID_FIELD,
            "link",
        )

    def _as_map(self, operation: str, body: Any) -> Mapping[str, Any]:
        if not isinstance(body, Mapping):
            raise self.fault(operation, f"the body is {body!r:.64}: expected a map")
        return cast("Mapping[str, Any]", body)

    async def _send(self, operation: str, body: Any, asked: Mapping[str, Any]) -> Message:
        properties = {
            name.replace("_", "-"): _as_sent(value) for name, value in asked.items() if value is not None
        }
        request = Message(body, application_properties={"operation": operation, **properties})
        try:
            reply = await self._requester.request(request, timeout=self._timeout)
        except TimedOutError as late:
            if not late.sent:
                raise
            raise TimedOutError(
                f"{self.address} did not answer {operation} within {self._timeout:g} s: it may have done it or not",
                sent=True,
            ) from None
        status = reply.application_properties
        code = status.get("statusCode", status.get("status-code"))  # Event Hubs has the second form
        if not isinstance(code, int) or isinstance(code, bool):
            raise self.fault(operation, f"statusCode={code!r:.64}: expected a number")
        if not 200 <= code < 300:
            raise OperationRefusedError(
                operation,
                int(code),
                _described(status.get("statusDescription", status.get("status-description"))),
            )
        return reply


def _are_rows(columns: Any, rows: Any) -> bool:
    """Return whether these are names, and rows with a value for each."""
    names, found = as_list(columns), as_list(rows)
    if names is None or found is None:
        return False
    return all((row := as_list(each)) is not None and len(row) == len(names) for each in found)


def _as_sent(value: Any) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return Int(value) if is_number and Int.MIN <= value <= Int.MAX else value


def _described(text: Any) -> str:
    return text[:1024] if isinstance(text, str) and text else "without a description"
