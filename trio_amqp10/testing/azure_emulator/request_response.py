"""RequestResponseNode: a node that replies with a status as of HTTP.

Knows what replies look like; does not know what may be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from trio_amqp10.container.handlers import Answering
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition, RemoteProtocolError
from trio_amqp10.message import Message
from trio_amqp10.wire.values import Int

from .constants import ALREADY_EXISTS, ARGUMENT_ERROR, LOCK_LOST, NOT_FOUND, OUT_OF_RANGE, SESSION_LOCK_LOST

if TYPE_CHECKING:
    from trio_amqp10.container.handlers import Post
    from trio_amqp10.container.nodes.node import Peer
    from trio_amqp10.container.protocols.amqp10.connection import Amqp10Connection

__all__ = ["Fields", "RequestResponseNode"]

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
    """The application-properties of a reply: Service Bus and Event Hubs write them in two ways."""

    status: str
    description: str
    condition: str


class RequestResponseNode(Answering):
    """Subclass it, with ``_operate``, which answers or raises ``RefusedError``.

    Args:
        address: what links name to reach it.
        post: sends a reply to a node.
        fields: how it says what came of a request.
    """

    answers_unasked = True

    def __init__(self, address: str, post: Post, fields: Fields) -> None:
        super().__init__(address, post)
        self._fields = fields

    async def _ask(self, peer: Peer, request: Message) -> Message:
        status, description, body = 200, "OK", None
        condition = None
        try:
            body = await self._operate(request, cast("Amqp10Connection", peer))
            if body is None:
                status, description, condition = 204, "there are no more", str(NOT_FOUND)
        except (RefusedError, RemoteProtocolError) as refusal:
            condition, description = refusal.condition, refusal.description
            status = _STATUS.get(condition, 400)
        said: dict[str, Any] = {self._fields.status: Int(status), self._fields.description: description}
        if condition is not None:
            said[self._fields.condition] = condition
        return Message(body, application_properties=said)

    async def _operate(self, request: Message, peer: Amqp10Connection) -> Any:
        """The body of the reply; None for nothing (more)."""
        raise NotImplementedError
