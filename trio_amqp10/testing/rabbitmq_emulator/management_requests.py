"""Requests to ``/management``: the method is the subject, the path is in ``to``.

=============================================  =========================================================================
request                                        effect
=============================================  =========================================================================
``PUT /queues/NAME``                           declares a queue: 201, 200 if an equal one exists, 409 if a different one
``GET /queues/NAME``                           shows the queue: 200, or 404
``DELETE /queues/NAME``                        deletes it: 200 with the number of its messages, 0 if it does not exist
``DELETE /queues/NAME/messages``               deletes the messages without a receiver: 200 with their number
``PUT /exchanges/NAME``                        declares an exchange: 204, or 409
``DELETE /exchanges/NAME``                     deletes it: 204
``POST /bindings``                             binds an exchange to a queue or an exchange: 204
``GET /bindings?src=...&dstq=...&key=...``     shows the bindings: 200
``DELETE /bindings/src=...;dstq=...;...``      deletes a binding: 204
=============================================  =========================================================================

The answer arrives on the link that is paired with that of the request: its subject is the status, and above 299 its
body is the reason. A feature of RabbitMQ that the emulator does not support has the status 501.

Knows the requests; the broker implements them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import unquote

from trio_amqp10.amqp10.message import Message, Value
from trio_amqp10.amqp10.wire.values import Array, UInt, ULong
from trio_amqp10.broker.exchanges.bindings import Destination
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.rights.broker_rights import (
    to_bind,
    to_bind_any_key,
    to_declare_exchange,
    to_declare_queue,
    to_delete_exchange,
    to_delete_queue,
    to_find_queue,
    to_receive,
)
from trio_amqp10.container.handlers import Answering
from trio_amqp10.container.internal_peer import InternalPeer

from .addresses import hash_of, location, parse_binding, parse_target
from .declarations import declare_exchange, declare_queue
from .http_faults import FaultError, status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.node import Peer
    from trio_amqp10.broker.peer_interfaces import ConnectedPeer
    from trio_amqp10.broker.rights.guard import Need
    from trio_amqp10.container.handlers import Post

ADDRESS: Final = "/management"

_QUEUE: Final[dict[str, tuple[type, Any]]] = {
    "durable": (bool, True),
    "exclusive": (bool, False),
    "auto_delete": (bool, False),
    "arguments": (dict, {}),
}
_EXCHANGE: Final[dict[str, tuple[type, Any]]] = {
    "type": (str, "direct"),
    "durable": (bool, True),
    "auto_delete": (bool, False),
    "internal": (bool, False),
    "arguments": (dict, {}),
}
_BINDING: Final[dict[str, tuple[type, Any]]] = {
    "source": (str, None),
    "destination_queue": (str, None),
    "destination_exchange": (str, None),
    "binding_key": (str, ""),
    "arguments": (dict, {}),
}

_Answer = tuple[int, Any]


class Management(Answering):
    """The node for requests.

    Args:
        broker: the broker that does the work.
        post: sends a reply to a node.
    """

    def __init__(self, broker: Topology, post: Post) -> None:
        super().__init__(ADDRESS, post, concurrency=1)
        self._broker = broker
        self._routes: dict[tuple[str, str, int], Callable[..., _Answer]] = {
            ("PUT", "queues", 2): self._declare_queue,
            ("GET", "queues", 2): self._show_queue,
            ("DELETE", "queues", 2): self._delete_queue,
            ("DELETE", "queues", 3): self._purge,
            ("PUT", "exchanges", 2): self._declare_exchange,
            ("DELETE", "exchanges", 2): self._delete_exchange,
            ("POST", "bindings", 1): self._bind,
            ("GET", "bindings", 1): self._show_bindings,
            ("DELETE", "bindings", 2): self._unbind,
        }

    async def _ask(self, peer: Peer, request: Message) -> Message:
        try:
            status, body = await self._operate(peer, request)
        except FaultError as fault:
            status, body = fault.status, fault.description
        except RefusedError as refusal:
            status, body = status_of(refusal)
        return Message(Value(body), subject=str(status), application_properties={"http:response": "1.1"})

    async def _operate(self, peer: Peer, request: Message) -> _Answer:
        path, query = parse_target(request.to or "")
        method = request.subject or ""
        route = self._routes.get((method, path[0], len(path)))
        if route is None:
            raise FaultError(501, f"{method} {request.to} is not implemented")
        decoded = [_decoded(path[0], part) for part in path[1:]]
        needs, more = self._needs(method, path[0], decoded, query, request.body)
        await _check(peer, needs)
        await _check(peer, [] if more is None else to_bind_any_key(self._broker, more))
        return route(peer, decoded, query, request.body)

    def _needs(
        self, method: str, kind: str, path: list[str], query: Mapping[str, str], body: Any
    ) -> tuple[Sequence[Need], str | None]:
        """Return the needed permissions, and the exchange of a request about bindings.

        The exchange is None for other requests; see ``broker_rights``.
        """
        broker = self._broker
        if kind == "bindings":
            return self._needs_of_binding(method, path, query, body)
        name = path[0]
        if kind == "exchanges":
            if method == "DELETE":
                return to_delete_exchange(broker, name), None
            return to_declare_exchange(broker, name, _fields(body, _EXCHANGE, "exchange")["arguments"]), None
        if method == "PUT":
            asked = _fields(body, _QUEUE, "queue")
            needs = to_declare_queue(broker, name, asked["arguments"], exclusive=asked["exclusive"])
        elif method == "GET":
            needs = to_find_queue(broker, name)
        else:
            needs = to_delete_queue(broker, name) if len(path) == 1 else to_receive(broker, name)
        return needs, None

    def _needs_of_binding(
        self, method: str, path: list[str], query: Mapping[str, str], body: Any
    ) -> tuple[Sequence[Need], str | None]:
        if method == "POST":
            source, kind, destination, key = _ends_in(body)
        elif method == "DELETE":
            source, kind, destination, key, _ = parse_binding(path[0])
        else:
            source, kind, destination, key = _ends_asked(query)
        return to_bind(self._broker, source, kind, destination, key), source

    # -- queues -----------------------------------------------------------------------------

    def _declare_queue(self, peer: Peer, path: list[str], _: Mapping[str, str], body: Any) -> _Answer:
        asked = _fields(body, _QUEUE, "queue")
        queue, made = declare_queue(self._broker, path[0], **asked, peer=peer)
        return (201 if made else 200), _shown(queue)

    def _show_queue(self, _: Peer, path: list[str], __: Mapping[str, str], ___: Any) -> _Answer:
        queue = self._broker.queues.get(path[0])
        if queue is None:
            raise FaultError(404, f"no queue {path[0]!r}")
        queue.sweep()
        return 200, _shown(queue)

    def _delete_queue(self, peer: Peer, path: list[str], _: Mapping[str, str], __: Any) -> _Answer:
        return 200, {"message_count": ULong(self._broker.delete_queue(path[0], peer=peer))}

    def _purge(self, peer: Peer, path: list[str], _: Mapping[str, str], __: Any) -> _Answer:
        if path[1] != "messages":
            raise FaultError(501, f"DELETE of {path[1]!r} of a queue is not implemented")
        return 200, {"message_count": ULong(self._broker.purge_queue(path[0], peer=peer))}

    # -- exchanges --------------------------------------------------------------------------

    def _declare_exchange(self, _: Peer, path: list[str], __: Mapping[str, str], body: Any) -> _Answer:
        asked = _fields(body, _EXCHANGE, "exchange")
        declare_exchange(self._broker, path[0], asked.pop("type"), **asked)
        return 204, None

    def _delete_exchange(self, _: Peer, path: list[str], __: Mapping[str, str], ___: Any) -> _Answer:
        self._broker.delete_exchange(path[0])
        return 204, None

    # -- bindings ---------------------------------------------------------------------------

    def _bind(self, peer: Peer, __: list[str], ___: Mapping[str, str], body: Any) -> _Answer:
        source, kind, destination, key = _ends_in(body)
        arguments = _fields(body, _BINDING, "binding")["arguments"]
        self._broker.bind(source, kind, destination, key, arguments, peer=peer)
        return 204, None

    def _show_bindings(self, _: Peer, __: list[str], query: Mapping[str, str], ___: Any) -> _Answer:
        source, kind, destination, key = _ends_asked(query)
        wanted = Destination(kind, destination)
        return 200, [
            {
                "source": each.source,
                f"destination_{kind}": destination,
                "binding_key": each.key,
                "arguments": each.arguments,
                "location": location(each),
            }
            for each in self._broker.bindings.of_destination(wanted)
            if (each.source, each.key) == (source, key)
        ]

    def _unbind(self, peer: Peer, path: list[str], __: Mapping[str, str], ___: Any) -> _Answer:
        source, kind, destination, key, args = parse_binding(path[0])
        arguments: dict[str, Any] | None = {}
        if args:
            found = self._broker.bindings.of_destination(Destination(kind, destination))
            arguments = next(
                (
                    each.arguments
                    for each in found
                    if (each.source, each.key, hash_of(each.arguments)) == (source, key, args)
                ),
                None,
            )
        if arguments is not None:
            self._broker.unbind(source, kind, destination, key, arguments, peer=peer)
        return 204, None


async def _check(peer: Peer, needs: Sequence[Need]) -> None:
    """Raise ``FaultError`` with 403 if the peer lacks a needed permission.

    Each need is met by any one of its permissions. The program itself may do everything.
    """
    if not isinstance(peer, InternalPeer):
        try:
            await cast("ConnectedPeer", peer).guard.check_all(*needs)
        except RefusedError as refusal:
            raise FaultError(403, refusal.description) from None


_Kind = Literal["queue", "exchange"]


def _ends_in(body: Any) -> tuple[str, _Kind, str, str]:
    """Return source, kind and name of the destination, and key of a new binding."""
    asked = _fields(body, _BINDING, "binding")
    kind: _Kind = "queue" if asked["destination_queue"] is not None else "exchange"
    source, destination = asked["source"], asked[f"destination_{kind}"]
    if source is None or destination is None:
        raise FaultError(400, "a binding needs a source, and a destination_queue or a destination_exchange")
    return source, kind, destination, asked["binding_key"]


def _ends_asked(query: Mapping[str, str]) -> tuple[str, _Kind, str, str]:
    """Return the same parts from a query of bindings."""
    kind: _Kind = "queue" if "dstq" in query else "exchange"
    destination = query.get("dstq", query.get("dste"))
    if destination is None or "src" not in query or "key" not in query:
        raise FaultError(400, "a query of bindings needs src, key, and dstq or dste")
    return query["src"], kind, destination, query["key"]


def _decoded(kind: str, part: str) -> str:
    """Decode a part of a path; the part of a binding has encoded parts of its own."""
    return part if kind == "bindings" else unquote(part)


def _fields(body: Any, known: dict[str, tuple[type, Any]], what: str) -> dict[str, Any]:
    """Return the values of a map, with defaults."""
    if body.__class__ is not dict:
        raise FaultError(400, f"the body of a declaration must be a map, not {type(body).__name__}")
    given: dict[Any, Any] = body
    asked = {name: default for name, (_, default) in known.items()}
    for name, value in given.items():
        if name not in known or not isinstance(value, known[name][0]):
            raise FaultError(400, f"bad {what} property {name!r}: {value!r}")
        asked[str(name)] = value
    for argument in asked["arguments"]:
        if not isinstance(argument, str):
            raise FaultError(400, f"bad {what} argument {argument!r}: names must be strings")
    return asked


def _shown(queue: BrokerQueue) -> dict[str, Any]:
    node = queue.container.container_id if queue.container is not None else ""
    return {
        "message_count": ULong(queue.available),
        "consumer_count": UInt(len(queue.outlets)),
        "name": queue.name,
        "vhost": "/",
        "durable": queue.wants_durable,
        "auto_delete": queue.auto_delete,
        "exclusive": queue.owner is not None,
        "type": str(queue.arguments.get("x-queue-type", "classic")),
        "arguments": queue.arguments,
        "leader": node,
        "replicas": Array([node], "string"),
    }
