"""Management: create, read, update, delete and list the nodes of a container, by messages.

A request names an ``operation`` in its application-properties, and for an entity its ``type`` and its
``name`` or ``identity``, which here are both its address; the reply has a ``statusCode`` and a
``statusDescription`` ("AMQP Management Version 1.0", working draft, 3).

=========================================  =====================================================================
operation                                  what it does
=========================================  =====================================================================
``CREATE``, ``UPDATE``                     a queue or a topic, or the rules of a queue, from the map in the body; with a
                                           store, what is made so is there again after a restart
``READ``                                   all attributes of a node, its live figures among them
``DELETE``                                 a queue or a topic; its links end, its messages are gone
``QUERY``                                  the attributes in the body's ``attributeNames``, or all, of all nodes, or
                                           those of one ``entityType``, from ``offset``, at most ``count``; of type
                                           ``connection``, ``link`` or ``account`` whoever is there now; accounts are
                                           what identities have, where there are quotas
``GET-TYPES``, ``GET-ATTRIBUTES``,         what there is to manage
``GET-OPERATIONS``, ``GET-ANNOTATIONS``,
``GET-MGMT-NODES``
=========================================  =====================================================================

Knows nodes by what they say of themselves; knows no links.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.message import Message
from trio_amqp10.wire.values import Int

from .nodes.queue import Queue
from .nodes.topic import Topic
from .overview import OVERVIEWS
from .stores.base import StoreError
from .stores.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from .nodes.node import Node
    from .service import Container

__all__ = ["ADDRESS", "Management"]

ADDRESS: Final = "$management"
"""Where clients look for it."""

_ITSELF: Final = "org.amqp.management"

_QUEUE: Final[dict[str, type]] = {
    "max-length": int,
    "max-octets": int,
    "overflow": str,
    "dead-letter": str,
    "delivery-limit": int,
    "exclusive": bool,
    "single-active": bool,
    "grouped": bool,
}
_NEW_QUEUE: Final = _QUEUE | {"durable": bool}
"""What cannot be changed later among them."""
_TOPIC: Final[dict[str, type]] = {"max-backlog": int, "overflow": str, "max-subscriptions": int}
_MADE: Final[dict[str, tuple[type[Node], dict[str, type]]]] = {
    "queue": (Queue, _NEW_QUEUE),
    "topic": (Topic, _TOPIC),
}
_COMMON: Final = ("name", "identity", "type")

_Answer = tuple[int, str, Any]


class _FaultError(Exception):
    """The request cannot be done; the reply says why."""

    def __init__(self, status: int, description: str) -> None:
        self.status = status
        self.description = description
        super().__init__(description)


class Management:
    """Answers requests to manage a container.

    Args:
        container: which.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._operations: dict[str, Callable[[Mapping[str, Any], Any], _Answer | Awaitable[_Answer]]] = {
            "CREATE": self._create,
            "READ": self._read,
            "UPDATE": self._update,
            "DELETE": self._delete,
            "QUERY": self._query,
            "GET-TYPES": self._get_types,
            "GET-ATTRIBUTES": self._get_attributes,
            "GET-OPERATIONS": self._get_operations,
            "GET-ANNOTATIONS": self._get_annotations,
            "GET-MGMT-NODES": self._get_nodes,
        }

    async def answer(self, request: Message) -> Message:
        """The reply to one request."""
        asked = request.application_properties
        try:
            operation = self._operations.get(_text(asked, "operation"))
            if operation is None:
                raise _FaultError(501, f"no operation {asked.get('operation')!r}")
            answer = operation(asked, request.body)
            status, description, body = await answer if inspect.isawaitable(answer) else answer
        except _FaultError as fault:
            status, description, body = fault.status, fault.description, None
        found = {"count": Int(len(body["results"]))} if body and "results" in body else {}
        return Message(
            body,
            application_properties={"statusCode": Int(status), "statusDescription": description, **found},
        )

    # -- one node ---------------------------------------------------------------------------

    async def _create(self, asked: Mapping[str, Any], body: Any) -> _Answer:
        kind, name = _text(asked, "type"), _text(asked, "name")
        made = _MADE.get(kind)
        if made is None:
            raise _FaultError(400, f"no {kind!r} can be made: one of {', '.join(_MADE)}")
        if name in self._container.nodes:
            raise _FaultError(409, f"{self._container.nodes[name]!r} has that address already")
        wishes = _wishes(body, made[1])
        try:
            if kind == "queue":
                self._container.add_queue(name, **wishes)
            else:
                self._container.add_topic(name, **wishes)
        except LocalProtocolError as fault:
            raise _FaultError(400, str(fault)) from fault
        node = self._container.nodes[name]
        try:
            await self._keep(name, Setting(kind, wishes))
        except StoreError as fault:
            if self._container.nodes.get(name) is node:
                self._container.remove_node(name)
            raise _FaultError(500, f"it could not be stored: {fault}") from fault
        return 201, "Created", _attributes(node)

    async def _keep(self, name: str, setting: Setting) -> None:
        """Have it outlive the process, where anything does."""
        if self._container.settings is not None:
            await self._container.settings.keep(name, setting)

    def _read(self, asked: Mapping[str, Any], _: Any) -> _Answer:
        if asked.get("type") in OVERVIEWS:
            return 200, "OK", self._look_up(asked)
        return 200, "OK", _attributes(self._find(asked))

    async def _update(self, asked: Mapping[str, Any], body: Any) -> _Answer:
        queue = self._find(asked)
        if not isinstance(queue, Queue):
            raise _FaultError(400, f"{queue!r} has no rules that can be changed")
        wishes = _wishes(body, _NEW_QUEUE)
        if wishes.pop("durable", queue.durable) != queue.durable:
            raise _FaultError(400, f"durable of {queue!r} cannot be changed: delete it and make it anew")
        before = queue.policy
        try:
            queue.update(replace(before, **wishes))
        except LocalProtocolError as fault:
            raise _FaultError(400, str(fault)) from fault
        settings = self._container.settings
        made = None if settings is None else settings.get(queue.address)
        if made is not None:  # else its rules are the program's
            try:
                await self._keep(queue.address, Setting(made.kind, made.rules | wishes))
            except StoreError as fault:
                queue.update(before)
                raise _FaultError(500, f"it could not be stored, and is as it was: {fault}") from fault
        return 200, "OK", _attributes(queue)

    def _delete(self, asked: Mapping[str, Any], _: Any) -> _Answer:
        node = self._find(asked)
        if not isinstance(node, (Queue, Topic)):
            raise _FaultError(400, f"{node!r} is part of the service, and cannot be deleted")
        self._container.remove_node(node.address)
        return 204, "No Content", {}

    def _find(self, asked: Mapping[str, Any]) -> Node:
        name = _text(asked, "identity" if "identity" in asked else "name")
        node = self._container.nodes.get(name)
        kind = asked.get("type")
        if kind in OVERVIEWS:
            raise _FaultError(400, f"what is of type {kind!r} can be read and listed, no more")
        if node is None or kind not in (None, "node", _kind(node)):
            raise _FaultError(404, f"no {kind or 'node'} {name!r}")
        return node

    def _look_up(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A connection or a link: names of these are not theirs alone, so by identity."""
        kind, identity = _text(asked, "type"), _text(asked, "identity")
        for each in self._see(kind):
            if each["identity"] == identity:
                return each
        raise _FaultError(404, f"no {kind} {identity!r}")

    def _see(self, kind: str) -> list[dict[str, Any]]:
        return OVERVIEWS[kind][0](self._container.conversations)

    # -- all of them ------------------------------------------------------------------------

    def _query(self, asked: Mapping[str, Any], body: Any) -> _Answer:
        kind = asked.get("entityType")
        if kind in OVERVIEWS:
            found = self._see(str(kind))
        else:
            nodes = self._container.nodes.values()
            found = [_attributes(node) for node in nodes if kind in (None, "node", _kind(node))]
        names = [str(each) for each in _map(body).get("attributeNames") or ()]
        if not names:
            names = list(dict.fromkeys(name for each in found for name in each))
        offset, count = _number(asked, "offset", 0), _number(asked, "count", len(found))
        rows = [[each.get(name) for name in names] for each in found[offset : offset + count]]
        return 200, "OK", {"attributeNames": names, "results": rows}

    def _examples(self, asked: Mapping[str, Any]) -> dict[str, list[str]]:
        """The types there are, with their attributes."""
        types = {
            "node": [*_COMMON, "senders", "receivers"],
            "queue": list(_attributes(Queue("queue"))),
            "topic": list(_attributes(Topic("topic"))),
            **{kind: list(overview[1]) for kind, overview in OVERVIEWS.items()},
        }
        for node in self._container.nodes.values():
            types.setdefault(_kind(node), list(_attributes(node)))
        kind = asked.get("entityType")
        return types if kind is None else {name: types[name] for name in types if name == kind}

    def _get_types(self, asked: Mapping[str, Any], _: Any) -> _Answer:
        return (
            200,
            "OK",
            {kind: [] if kind == "node" or kind in OVERVIEWS else ["node"] for kind in self._examples(asked)},
        )

    def _get_attributes(self, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", self._examples(asked)

    def _get_operations(self, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", {kind: _operations_of(kind) for kind in self._examples(asked)}

    def _get_annotations(self, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", {kind: list[str]() for kind in self._examples(asked)}

    def _get_nodes(self, _: Mapping[str, Any], __: Any) -> _Answer:
        return 200, "OK", list[str]()


def _kind(node: Node) -> str:
    return type(node).__name__.lower()


def _operations_of(kind: str) -> dict[str, list[str]]:
    operations: dict[str, list[str]] = {"READ": []}
    if kind in _MADE:
        operations |= {"CREATE": list(_MADE[kind][1]), "DELETE": []}
    if kind == "queue":
        operations["UPDATE"] = list(_QUEUE)
    return operations


def _attributes(node: Node) -> dict[str, Any]:
    if isinstance(node, Queue):
        node.sweep()
    attributes: dict[str, Any] = {"name": node.address, "identity": node.address, "type": _kind(node)}
    rules = node.policy if isinstance(node, Queue) else node
    wishes = _MADE[_kind(node)][1] if _kind(node) in _MADE else ()
    attributes |= {
        name: getattr(node if name == "durable" else rules, name.replace("-", "_")) for name in wishes
    }
    return attributes | node.statistics()


def _map(body: Any) -> Mapping[Any, Any]:
    if body is None:
        return {}
    if isinstance(body, dict):
        return dict(body)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise _FaultError(400, f"the body is {type(body).__name__}: a map is possible")


def _wishes(body: Any, known: dict[str, type]) -> dict[str, Any]:
    """The attributes in a body, as arguments; each is to be of its type, or null."""
    wishes: dict[str, Any] = {}
    for name, value in _map(body).items():
        kind = known.get(str(name))
        if kind is None:
            raise _FaultError(400, f"no attribute {name!r}: one of {', '.join(known)}")
        fits = isinstance(value, kind) and (kind is bool) == isinstance(value, bool)
        if not fits and (value is not None or kind is bool):
            raise _FaultError(400, f"{name}={value!r}: {kind.__name__} is possible")
        wishes[str(name).replace("-", "_")] = value if value is None else kind(value)
    return wishes


def _text(asked: Mapping[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not value:
        raise _FaultError(400, f"{name}={value!r} in the application-properties: a string is possible")
    return str(value)


def _number(asked: Mapping[str, Any], name: str, default: int) -> int:
    value = asked.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _FaultError(400, f"{name}={value!r} in the application-properties: a number from 0 is possible")
    return int(value)
