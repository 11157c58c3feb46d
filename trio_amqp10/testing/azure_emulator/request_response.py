"""RequestResponseNode: a node that replies with a status like that of HTTP.

Knows the form of replies; subclasses know the requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Int
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.container.handlers import Answering
from trio_amqp10.core.errors import Condition, RemoteProtocolError

from .constants import ALREADY_EXISTS, ARGUMENT_ERROR, LOCK_LOST, NOT_FOUND, OUT_OF_RANGE, SESSION_LOCK_LOST

if TYPE_CHECKING:
    from trio_amqp10.amqp10.server.connection import Amqp10Connection
    from trio_amqp10.broker.nodes.node import Peer
    from trio_amqp10.container.handlers import Post

_STATUS: Final[dict[str, int]] = {
    str(ARGUMENT_ERROR): 400,
    str(OUT_OF_RANGE): 400,
    str(Condition.UNAUTHORIZED_ACCESS.value): 401,
    str(Condition.NOT_FOUND.value): 404,
    str(NOT_FOUND): 404,
    str(ALREADY_EXISTS): 409,
    str(LOCK_LOST): 410,
    str(SESSION_LOCK_LOST): 410,
    str(Condition.NOT_IMPLEMENTED.value): 501,
}


class Fields(NamedTuple):
    """The names of a reply's application-properties.

    Service Bus and Event Hubs have different names.
    """

    status: str
    description: str
    condition: str


class RequestResponseNode(Answering):
    """A base class for nodes of requests, with ``_operate`` to override.

    ``_operate`` answers a request or raises ``RefusedError``.

    Args:
        address: the address for links.
        post: sends a reply to a node.
        fields: the names of the application-properties of a reply.
    """

    answers_unasked = settles_first = True

    def __init__(self, address: str, post: Post, fields: Fields) -> None:
        super().__init__(address, post)
        self._fields = fields

    async def _ask(self, peer: Peer, request: Message) -> Message:
        status, description, body = 200, "OK", None
        condition = None
        try:
            body = await self._operate(request, cast("Amqp10Connection", peer))
            if body is None:
                status, description, condition = 204, "there are no more results", str(NOT_FOUND)
        except (RefusedError, RemoteProtocolError) as refusal:
            condition, description = refusal.condition, refusal.description
            status = _STATUS.get(condition, 400)
        properties: dict[str, Any] = {self._fields.status: Int(status), self._fields.description: description}
        if condition is not None:
            properties[self._fields.condition] = condition
        return Message(body, application_properties=properties)

    async def _operate(self, request: Message, peer: Amqp10Connection) -> Any:
        """Return the body of the reply; None if there is no (further) result."""
        raise NotImplementedError
