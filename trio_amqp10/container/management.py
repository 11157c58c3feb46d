"""Create, read, update, delete and list the nodes of a container, by messages.

A request names an ``operation`` in its application-properties, and for an entity its ``type`` and its
``name`` or ``identity``, which here are both its address; the reply has a ``statusCode`` and a
``statusDescription`` ("AMQP Management Version 1.0", working draft, 3).

=========================================  =====================================================================
operation                                  what it does
=========================================  =====================================================================
``CREATE``, ``UPDATE``                     a queue or a topic, or the rules of a queue, from the map in the body; with a
                                           store, what is made so is there again after a restart
``READ``                                   all attributes of a node, its live figures among them
``DELETE``                                 a queue or a topic: its links end, its messages are gone; of type
                                           ``connection``, by its identity: the connection is closed with
                                           ``amqp:connection:forced``, or what its dialect has for that
``QUERY``                                  the attributes in the body's ``attributeNames``, or all, of all nodes, or
                                           those of one ``entityType``, from ``offset``, at most ``count``; of type
                                           ``connection``, ``link`` or ``account`` those that are there now, of type
                                           ``container`` the container itself; accounts are
                                           what identities have, where there are quotas
``GET-TYPES``, ``GET-ATTRIBUTES``,         what there is to manage
``GET-OPERATIONS``, ``GET-ANNOTATIONS``,
``GET-MGMT-NODES``
=========================================  =====================================================================

A peer needs, besides permission to send here, for a node: ``create`` to ``CREATE`` or ``UPDATE`` it, and for its dead letters ``receive``
from it and ``send`` to where they go; ``delete`` to ``DELETE`` it; one of ``receive``, ``send``, ``create`` and ``delete`` to ``READ`` it and to
have it listed. For a type that is not a node it needs ``receive`` at ``$management/TYPE``, e.g. ``$management/connection``, and
``delete`` there to close a connection. A peer without it gets 403, whether the entity exists or not.

A reply to ``QUERY`` is a page: at most 500 entities, and no more than about a megabyte. Its application property ``more`` says
whether there are entities behind it; ask for these with ``offset``. A request names at most 100 attributes, and names of nodes have at
most 2,048 characters. So a request costs what a page costs, whatever there is and whatever it says.

Knows nodes by what they say of themselves; knows no links.
"""

from __future__ import annotations

import inspect
import reprlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import trio

from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.message import Message
from trio_amqp10.wire.values import Int

from .broker.addresses import RESERVED
from .handlers import Answering, ConsumerNode, FunctionNode
from .internal_peer import InternalPeer
from .nodes.node import RefusedError
from .nodes.policy import QUEUE_RULES
from .nodes.producer import ProducerNode
from .nodes.queue import Queue
from .nodes.topic import Topic
from .overview import OVERVIEWS
from .stores.base import StoreError
from .stores.node_settings import NodeSetting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from .connected_peer import ConnectedPeer
    from .handlers import Post
    from .nodes.node import Node, Peer
    from .nodes.policy import RuleKind
    from .overview import Managed
    from .rights.access import Action
    from .rights.guard import Need

__all__ = ["ADDRESS", "Management"]

ADDRESS: Final = "$management"
"""Where clients look for it."""

_TYPES: Final[dict[RuleKind, type]] = {
    "count": int,
    "octets": int,
    "milliseconds": int,
    "seconds": float,
    "factor": float,
    "address": str,
    "choice": str,
    "flag": bool,
}
_NEW_QUEUE: Final[dict[str, type]] = {rule.option: _TYPES[rule.kind] for rule in QUEUE_RULES}
_QUEUE: Final = {name: kind for name, kind in _NEW_QUEUE.items() if name != "durable"}
"""What can be changed later among them."""
_TOPIC: Final[dict[str, type]] = {"max-backlog": int, "overflow": str, "max-subscriptions": int}
_MADE: Final[dict[str, tuple[type[Node], dict[str, type]]]] = {
    "queue": (Queue, _NEW_QUEUE),
    "topic": (Topic, _TOPIC),
}
_COMMON: Final = ("name", "identity", "type")

PAGE: Final = 500
"""Entities in one reply."""
_PAGE_OCTETS: Final = 1024 * 1024
"""About so many octets of them; the entity that goes beyond is in it."""
_MOST_NAMES: Final = 100
"""Attributes that one request names."""
_LONGEST: Final = 2048
"""Characters of a name, or another text, in a request."""

_BETWEEN_PAUSES: Final = 64
"""Nodes whose permissions are asked for before other tasks have their turn."""

_shown: Final = reprlib.Repr()
_shown.maxstring = _shown.maxother = 64

_Answer = tuple[int, str, Any]


class _FaultError(Exception):
    """The request cannot be done; the reply says why."""

    def __init__(self, status: int, description: str) -> None:
        self.status = status
        self.description = description
        super().__init__(description)


class Management(Answering):
    """Answers requests to manage a container.

    Args:
        address: where clients look for it.
        container: which.
        post: sends a reply to a node.
    """

    exempt_from_watermark = True

    def __init__(self, address: str, container: Managed, post: Post) -> None:
        super().__init__(address, post, concurrency=1)
        self._container = container
        self._operations: dict[
            str, Callable[[_Rights, Mapping[str, Any], Any], _Answer | Awaitable[_Answer]]
        ] = {
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

    async def _ask(self, peer: Peer, request: Message) -> Message:
        asked = request.application_properties
        try:
            operation = self._operations.get(_text(asked, "operation"))
            if operation is None:
                raise _FaultError(501, f"no operation {_shown.repr(asked.get('operation'))}")
            answer = operation(_Rights(peer), asked, request.body)
            status, description, body = await answer if inspect.isawaitable(answer) else answer
        except _FaultError as fault:
            status, description, body = fault.status, fault.description, None
        said: dict[str, Any] = {"statusCode": Int(status), "statusDescription": description}
        if isinstance(body, _Page):
            said |= {"count": Int(len(body.results)), "more": body.more}
            body = {"attributeNames": body.names, "results": body.results}
        return Message(body, application_properties=said)

    # -- one node ---------------------------------------------------------------------------

    async def _create(self, rights: _Rights, asked: Mapping[str, Any], body: Any) -> _Answer:
        kind, name = _text(asked, "type"), _text(asked, "name")
        made = _MADE.get(kind)
        if made is None:
            raise _FaultError(400, f"no {_shown.repr(kind)} can be made: one of {', '.join(_MADE)}")
        wishes = _wishes(body, made[1])
        await rights.check(*_to_make(name, wishes))
        if name.startswith(RESERVED):
            raise _FaultError(403, f"{_shown.repr(name)} is reserved: choose another name")
        if name in self._container.nodes:
            raise _FaultError(409, f"{self._container.nodes[name]!r} has that address already")
        try:
            if kind == "queue":
                self._container.add_queue(name, **wishes)
            else:
                self._container.add_topic(name, **wishes)
        except LocalProtocolError as fault:
            raise _FaultError(400, str(fault)) from fault
        node = self._container.nodes[name]
        try:
            await self._keep(name, NodeSetting(kind, wishes))
        except StoreError as fault:
            if self._container.nodes.get(name) is node:
                self._container.remove_node(name)
            raise _FaultError(500, f"it could not be stored: {fault}") from fault
        return 201, "Created", _attributes(node)

    async def _keep(self, name: str, setting: NodeSetting) -> None:
        """Have it outlive the process, where anything does."""
        if self._container.settings is not None:
            await self._container.settings.keep(name, setting)

    async def _read(self, rights: _Rights, asked: Mapping[str, Any], _: Any) -> _Answer:
        if asked.get("type") in OVERVIEWS:
            await rights.check(self._overview("receive", _text(asked, "type")))
            return 200, "OK", self._look_up(asked)
        await rights.check(_to_see(_name_in(asked)))
        return 200, "OK", _attributes(self._find(asked))

    def _overview(self, action: Action, kind: str) -> Need:
        """What is needed for entities that are no nodes."""
        return ((action, f"{self.address}/{kind}"),)

    async def _update(self, rights: _Rights, asked: Mapping[str, Any], body: Any) -> _Answer:
        wishes = _wishes(body, _NEW_QUEUE)
        await rights.check(*_to_make(_name_in(asked), wishes))
        queue = self._find(asked)
        if not isinstance(queue, Queue):
            raise _FaultError(400, f"{queue!r} has no rules that can be changed")
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
                await self._keep(queue.address, NodeSetting(made.kind, made.rules | wishes))
            except StoreError as fault:
                queue.update(before)
                raise _FaultError(500, f"it could not be stored, and is as it was: {fault}") from fault
        return 200, "OK", _attributes(queue)

    async def _delete(self, rights: _Rights, asked: Mapping[str, Any], _: Any) -> _Answer:
        if asked.get("type") == "connection":
            await rights.check(self._overview("delete", "connection"))
            return self._disconnect(_text(asked, "identity"))
        await rights.check((("delete", _name_in(asked)),))
        node = self._find(asked)
        if not isinstance(node, (Queue, Topic)):
            raise _FaultError(400, f"{node!r} is part of the service, and cannot be deleted")
        self._container.remove_node(node.address)
        return 204, "No Content", {}

    def _disconnect(self, identity: str) -> _Answer:
        """Close a connection; a peer that closes its own gets no answer."""
        for peer in self._container.connected:
            if f"{peer.number}" == identity:
                peer.close(Condition.CONNECTION_FORCED.value, "closed by management")
                return 204, "No Content", {}
        raise _FaultError(404, f"no connection {_shown.repr(identity)}")

    def _find(self, asked: Mapping[str, Any]) -> Node:
        name = _name_in(asked)
        node = self._container.nodes.get(name)
        kind = asked.get("type")
        if kind in OVERVIEWS:
            raise _FaultError(400, f"what is of type {kind!r} can be read and listed, no more")
        if node is None or kind not in (None, "node", _kind(node)):
            raise _FaultError(404, f"no {_brief(kind or 'node')} {_shown.repr(name)}")
        return node

    def _look_up(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A connection or a link: names of these are not theirs alone, so by identity."""
        kind, identity = _text(asked, "type"), _text(asked, "identity")
        for each, make in OVERVIEWS[kind][0](self._container):
            if each == identity:
                return make()
        raise _FaultError(404, f"no {kind} {_shown.repr(identity)}")

    # -- all of them ------------------------------------------------------------------------

    async def _query(self, rights: _Rights, asked: Mapping[str, Any], body: Any) -> _Answer:
        kind = asked.get("entityType")
        names = _names_in(body)
        offset, count = _number(asked, "offset", 0), _number(asked, "count", PAGE)
        entities: list[dict[str, Any]] = []
        octets = 0
        more = False
        overview = kind if isinstance(kind, str) and kind in OVERVIEWS else None
        if overview is not None:
            await rights.check(self._overview("receive", overview))
            found = OVERVIEWS[overview][0](self._container)
        else:
            found = self._makers(rights, kind)
        for address, make in found:
            if overview is None and not await rights.may_see(address):
                continue
            if offset:
                offset -= 1
                continue
            more = len(entities) >= min(count, PAGE) or octets > _PAGE_OCTETS
            if more:
                break
            entity = make()
            if names:
                entity = {name: entity[name] for name in names if name in entity}
            entities.append(entity)
            octets += sum(map(_size, entity.values()))
        if not names:
            names = list(dict.fromkeys(name for each in entities for name in each))
        rows = [[each.get(name) for name in names] for each in entities]
        return 200, "OK", _Page(names, rows, more)

    def _makers(self, rights: _Rights, kind: Any) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
        """What makes the attributes of each entity of this type, with the address that the peer must be able to see."""
        nodes = self._container.nodes.values()
        for node in list(nodes) if rights.limited else nodes:  # while it is asked, nodes may come and go
            if kind in (None, "node", _kind(node)):
                yield node.address, partial(_attributes, node)

    def _examples(self, asked: Mapping[str, Any]) -> dict[str, list[str]]:
        """The types there are, with their attributes."""
        types = {
            "node": [*_COMMON, "senders", "receivers"],
            "queue": list(_attributes(Queue("queue"))),
            "topic": list(_attributes(Topic("topic"))),
            **{kind: list(overview[1]) for kind, overview in OVERVIEWS.items()},
        }
        for node in self._container.nodes.values():
            if _kind(node) not in types:
                types[_kind(node)] = list(_attributes(node))
        kind = asked.get("entityType")
        return types if kind is None else {name: types[name] for name in types if name == kind}

    def _get_types(self, _rights: _Rights, asked: Mapping[str, Any], _: Any) -> _Answer:
        return (
            200,
            "OK",
            {kind: [] if kind == "node" or kind in OVERVIEWS else ["node"] for kind in self._examples(asked)},
        )

    def _get_attributes(self, _rights: _Rights, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", self._examples(asked)

    def _get_operations(self, _rights: _Rights, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", {kind: _operations_of(kind) for kind in self._examples(asked)}

    def _get_annotations(self, _rights: _Rights, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", {kind: list[str]() for kind in self._examples(asked)}

    def _get_nodes(self, _rights: _Rights, _: Mapping[str, Any], __: Any) -> _Answer:
        return 200, "OK", list[str]()


class _Rights:
    """What the peer of a request may do; the container itself may do everything.

    Args:
        peer: that asks.

    Attributes:
        limited: whether anything may be refused.
    """

    def __init__(self, peer: Peer) -> None:
        self._guard = None if isinstance(peer, InternalPeer) else cast("ConnectedPeer", peer).guard
        self.limited: bool = self._guard is not None and self._guard.asks
        self._asked = 0

    async def check(self, *needs: Need) -> None:
        """Raise ``_FaultError`` with 403 unless the peer has one permission of each need."""
        if self._guard is not None:
            try:
                await self._guard.check_all(*needs)
            except RefusedError as refusal:
                raise _FaultError(403, refusal.description) from None

    async def may_see(self, address: str) -> bool:
        """Whether the peer may learn that a node exists."""
        if not self.limited:
            return True
        self._asked += 1
        if not self._asked % _BETWEEN_PAUSES:
            await trio.lowlevel.checkpoint()
        try:
            await self.check(_to_see(address))
        except _FaultError:
            return False
        return True


def _to_see(address: str) -> Need:
    """What is needed to learn whether a node exists."""
    return ("receive", address), ("send", address), ("create", address), ("delete", address)


def _to_make(address: str, wishes: Mapping[str, Any]) -> list[Need]:
    """What is needed to make a node, or to change its rules to these."""
    needs: list[Need] = [(("create", address),)]
    if isinstance(letters := wishes.get("dead_letter"), str):
        needs.append((("receive", address),))
        needs.append((("send", letters),))
    return needs


class _Page(NamedTuple):
    """Some of the entities that were asked for, and whether there are more behind them."""

    names: list[str]
    results: list[list[Any]]
    more: bool


def _names_in(body: Any) -> list[str]:
    """The attributes that a request names, each once; empty for all."""
    asked: Any = _map(body).get("attributeNames")
    if asked is None:
        return []
    if not isinstance(asked, (list, tuple)) or not all(
        isinstance(each, str) for each in cast("list[Any]", asked)
    ):
        raise _FaultError(400, f"attributeNames={_shown.repr(asked)}: expected a list of strings")
    names = cast("list[str]", asked)
    if len(names) > _MOST_NAMES or any(len(name) > _LONGEST for name in names):
        raise _FaultError(
            400,
            f"{len(names)} attributeNames: at most {_MOST_NAMES} of at most {_LONGEST} characters are possible",
        )
    return list(dict.fromkeys(map(str, names)))


def _brief(value: Any) -> str:
    return value[:64] if isinstance(value, str) else _shown.repr(value)


def _size(value: Any) -> int:
    """About as many octets as it takes in a reply."""
    return len(value) + 5 if isinstance(value, str) else 9


_KINDS: Final[dict[type[Node], str]] = {
    ConsumerNode: "consumer",
    FunctionNode: "function",
    Management: "function",
    ProducerNode: "producer",
}
"""The types of nodes, where they are not the names of the classes."""


def _kind(node: Node) -> str:
    return _KINDS.get(type(node)) or type(node).__name__.lower()


def _operations_of(kind: str) -> dict[str, list[str]]:
    operations: dict[str, list[str]] = {"READ": []}
    if kind in _MADE:
        operations |= {"CREATE": list(_MADE[kind][1]), "DELETE": []}
    if kind == "connection":
        operations["DELETE"] = []
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
    raise _FaultError(400, f"the body is {type(body).__name__}: expected a map")


def _wishes(body: Any, known: dict[str, type]) -> dict[str, Any]:
    """The attributes in a body, as arguments; each is to be of its type, or null."""
    wishes: dict[str, Any] = {}
    for name, value in _map(body).items():
        kind = known.get(str(name))
        if kind is None:
            raise _FaultError(400, f"no attribute {_shown.repr(name)}: one of {', '.join(known)}")
        taken = (int, float) if kind is float else kind
        fits = isinstance(value, taken) and (kind is bool) == isinstance(value, bool)
        if not fits and (value is not None or kind is bool):
            raise _FaultError(400, f"{name}={_shown.repr(value)}: expected {kind.__name__}")
        wishes[str(name).replace("-", "_")] = value if value is None else kind(value)
    return wishes


def _name_in(asked: Mapping[str, Any]) -> str:
    """The address of the node that a request names."""
    return _text(asked, "identity" if "identity" in asked else "name")


def _text(asked: Mapping[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not value:
        raise _FaultError(
            400, f"{name}={_shown.repr(value)} in the application-properties: expected a string"
        )
    if len(value) > _LONGEST:
        raise _FaultError(400, f"{name} has {len(value)} characters: at most {_LONGEST} are possible")
    return str(value)


def _number(asked: Mapping[str, Any], name: str, default: int) -> int:
    value = asked.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _FaultError(
            400, f"{name}={_shown.repr(value)} in the application-properties: expected a number of at least 0"
        )
    return int(value)
