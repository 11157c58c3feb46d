"""``$management``: management for clients of AMQP 1.0, by requests and replies.

A request names an ``operation`` in its application-properties, and for an entity its ``type`` and its
``name`` or ``identity``, both of which are its address; the reply has a ``statusCode`` and a
``statusDescription`` ("AMQP Management Version 1.0", working draft, 3).

=========================================  =====================================================================
operation                                  effect
=========================================  =====================================================================
``CREATE``, ``UPDATE``                     create a queue or a topic, or change its rules or limits, from the map in
                                           the body; with a store, what was created exists again after a restart
``READ``                                   all attributes of a node, with its live figures
``DELETE``                                 delete a queue or a topic: its links end, its messages are deleted; an exchange with
                                           its bindings; of type
                                           ``connection`` or ``link``, by its identity: it is closed with
                                           ``amqp:connection:forced`` or ``amqp:link:detach-forced``, or the like in its
                                           dialect, and the ``reason`` of the request. ``if-empty`` and ``if-unused``
                                           make it depend on that
``QUERY``                                  the attributes in the body's ``attributeNames``, or all, of all nodes, or
                                           the nodes of one ``entityType``, from ``offset``, at most ``count``; of type
                                           ``connection``, ``link`` or ``account`` the present ones, of type
                                           ``container`` the container itself; an account is the usage
                                           of one identity, if there are quotas; links may be those of one ``role``.
                                           Further types are in ``GET-TYPES``
``DECLARE``                                declare a queue or an exchange as AMQP 0-9-1 does, with the properties in the body:
                                           ``durable``, ``auto-delete``, ``internal`` and ``type`` of an exchange, and
                                           ``arguments``, JSON in a string. A queue without a ``name`` gets one
``BIND``, ``UNBIND``                       bind a queue or an exchange to an exchange: the body has ``source``, ``destination``,
                                           ``destination-kind``, ``key`` and ``arguments``
``ROUTE``                                  find the queues that a message to an exchange would reach, from its ``key`` and
                                           ``headers``, JSON in a string, in the body; from ``offset``, at most ``count``. The
                                           body of the reply has ``queues``, and ``more`` if further ones follow
``PURGE``                                  remove the ready messages of a queue; the body of the reply has their ``count``
``HOLD``                                   let a queue take and give no messages for ``seconds``; 0 ends it
``REDIRECT``                               send all links of a queue, and new ones, to the URL ``target`` (2.8.18); without it
                                           links are accepted again
``PUBLISH``                                send the ``message`` in the body, octets of sections (3.2), to a node; the body of
                                           the reply has ``routed``: whether any node has it
``BROWSE``, ``GET``                        look at the ready messages of a queue from ``offset``, or take them with the
                                           ``outcome`` ``accept``, ``release`` or ``reject``: at most ``count`` (100 to take), and those
                                           that match ``filter``, a selector of JMS, of ``octets`` together. The body of the reply has
                                           ``messages``; a message of more than a page is shown alone
``MOVE``                                   move at most ``count`` ready messages that match ``filter`` to the node
                                           ``target``, each exactly once; the body of the reply has their ``count``
``REDRIVE``                                send at most ``count`` dead letters back to where they died; the body of the reply
                                           has the count for each address in ``moved``, and ``left``
``EXPORT``, ``IMPORT``                     definitions as JSON, in ``definitions`` of the body; of RabbitMQ those of
                                           ``virtual-host``. The reply to ``IMPORT`` has ``made``, and in ``left-out``
                                           lists of kind, name and reason
``GET-TYPES``, ``GET-ATTRIBUTES``,         the types, attributes and operations of entities
``GET-OPERATIONS``, ``GET-ANNOTATIONS``,
``GET-MGMT-NODES``
=========================================  =====================================================================

An exchange is named by its address, ``/exchanges/NAME``, or by its name. Queues in ``DECLARE``, ``BIND`` and ``UNBIND`` have their names of AMQP 0-9-1.

Besides permission to send to this node, a peer needs for each operation the permissions that ``management.Management`` lists; for a type that is not a
node at ``ADDRESS/TYPE``, e.g. ``$management/connection``. A peer without the permission gets 403, whether the entity exists
or not.

A reply to ``QUERY`` is a page: at most 500 entities, and at most about a megabyte. Its application property
``more`` is true if further entities follow; ask for these with ``offset``. A request names at most 100 attributes, and
names of nodes have at most 2,048 characters. So no request costs more than one page, whatever the container holds and
whatever the request contains.

With ``form`` = ``status``, entities in the reply to ``CREATE``, ``READ``, ``UPDATE`` and ``QUERY`` have the fields of their statuses
in place of attributes (``status_values``), and the reply to ``DELETE`` has the ``count`` of ready messages.

Knows the model of management, and the words of requests; has no logic of its own.
"""

from __future__ import annotations

import inspect
import json
import reprlib
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast, get_args

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Int
from trio_amqp10.broker.exchanges.addresses import exchange_named
from trio_amqp10.broker.nodes.policy import QUEUE_RULES
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.broker.nodes.topic import Topic
from trio_amqp10.container.handlers import Answering
from trio_amqp10.container.internal_peer import InternalPeer
from trio_amqp10.core.errors import LocalProtocolError

from . import status, status_builders
from .errors import ManagementError
from .management import PLACE, Management
from .single_messages import Ending
from .status import QueueStatus, TopicStatus
from .status_values import as_list, as_map, encodable, read_arguments, to_values

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trio_amqp10.broker.nodes.node import Peer
    from trio_amqp10.broker.nodes.policy import RuleKind
    from trio_amqp10.broker.peer_interfaces import ConnectedPeer
    from trio_amqp10.container.handlers import Post

    from .listing import Listing
    from .managed_container import ManagedContainer
    from .status import ConnectionStatus, ContainerStatus, LinkStatus, MessageStatus, NodeStatus

ADDRESS: Final = PLACE
"""The address to which clients send requests, unless another is chosen."""

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
"""The attributes of a queue that can be changed after it was created."""
_TOPIC: Final[dict[str, type]] = {"max-backlog": int, "overflow": str, "max-subscriptions": int}
_MADE: Final[dict[str, dict[str, type]]] = {"queue": _NEW_QUEUE, "topic": _TOPIC}
_CHANGED: Final = {"queue": _QUEUE, "topic": _TOPIC}
_DECLARED: Final[dict[str, dict[str, type]]] = {
    "queue": {"arguments": dict, "durable": bool, "auto-delete": bool},
    "exchange": {"type": str, "arguments": dict, "durable": bool, "auto-delete": bool, "internal": bool},
}
"""The properties of a queue or an exchange in ``DECLARE``.

Those of type dict are JSON in a string.
"""
_BOUND: Final[dict[str, type]] = {
    "source": str,
    "destination": str,
    "key": str,
    "arguments": dict,
    "destination-kind": str,
}
_ROUTED: Final[dict[str, type]] = {"key": str, "headers": dict}
_COMMON: Final = ("name", "identity", "type")
_OF_QUEUE: Final = (
    *("depth", "ready", "unacked", "consumers", "oldest", "delivered", "acknowledged", "redelivered"),
    *("declared", "auto_delete", "owner", "arguments", "redirect"),
)
"""The attributes of a queue that are neither rules nor among its figures."""

PAGE: Final = 500
"""The most entities in one reply."""
_PAGE_OCTETS: Final = 1024 * 1024
"""About the most octets of one reply; the entity that exceeds it is included."""
_AT_ONCE: Final = 100
"""Messages that are taken together at most."""
_MOST_NAMES: Final = 100
"""The most attributes that one request may name."""
_LONGEST: Final = 2048
"""The most characters of a name, or of another text, in a request."""

_shown: Final = reprlib.Repr()
_shown.maxstring = _shown.maxother = 64

_Answer = tuple[int, str, Any]


class _NoOperationError(Exception):
    """A request for an operation that does not exist."""


class ManagementNode(Answering):
    """The node that answers requests to manage a container.

    Args:
        address: the address to which clients send requests.
        container: the container to manage.
        model: its management, which asks for no permission.
        post: sends a reply to a node.
    """

    exempt_from_watermark = True

    def __init__(self, address: str, container: ManagedContainer, model: Management, post: Post) -> None:
        super().__init__(address, post, concurrency=1)
        self._container = container
        self._model = model
        self._operations: dict[
            str, Callable[[Management, Mapping[str, Any], Any], _Answer | Awaitable[_Answer]]
        ] = {
            "CREATE": self._create,
            "READ": self._read,
            "UPDATE": self._update,
            "DELETE": self._delete,
            "QUERY": self._query,
            "DECLARE": self._declare,
            "BIND": self._bind,
            "UNBIND": self._unbind,
            "ROUTE": self._route,
            "PURGE": self._purge,
            "HOLD": self._hold,
            "REDIRECT": self._redirect,
            "PUBLISH": self._publish,
            "BROWSE": self._browse,
            "GET": self._get,
            "MOVE": self._move,
            "REDRIVE": self._redrive,
            "EXPORT": self._export,
            "IMPORT": self._import,
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
                raise _NoOperationError(f"no operation {_shown.repr(asked.get('operation'))}")
            _wants_status(asked)  # raises before anything is done
            answer = operation(self._model_for(peer), asked, request.body)
            status, description, body = await answer if inspect.isawaitable(answer) else answer
        except ManagementError as fault:
            status, description, body = fault.status, fault.description, None
        except _NoOperationError as fault:
            status, description, body = 501, str(fault), None
        properties: dict[str, Any] = {"statusCode": Int(status), "statusDescription": description}
        if isinstance(body, _Page):
            properties |= {"count": Int(len(body.results)), "more": body.more}
            body = {"attributeNames": body.names, "results": body.results}
        try:
            return Message.from_payload(Message(body, application_properties=properties).to_payload())
        except LocalProtocolError:  # names and arguments of other protocols may be no values of AMQP 1.0
            properties["statusDescription"] = encodable(description)
            return Message(encodable(body), application_properties=properties)

    def _model_for(self, peer: Peer) -> Management:
        """Return management for the peer of a request; the container may do everything."""
        if isinstance(peer, InternalPeer):
            return self._model
        return self._model.on_behalf_of(cast("ConnectedPeer", peer), place=self.address, face=self.address)

    # -- one entity -------------------------------------------------------------------------

    async def _create(self, model: Management, asked: Mapping[str, Any], body: Any) -> _Answer:
        kind, name = _text(asked, "type"), _text(asked, "name")
        made = _MADE.get(kind)
        if made is None:
            raise ManagementError(
                "invalid", f"type={_shown.repr(kind)} cannot be created: expected {' or '.join(_MADE)}"
            )
        create = model.create_queue if kind == "queue" else model.create_topic
        return 201, "Created", _node_form(asked)(await create(name, **_wishes(body, made)))

    async def _read(self, model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        kind, other, whole = asked.get("type"), _other_in(asked, "type"), _wants_status(asked)
        if other is None:
            if whole and kind == "queue":
                return 200, "OK", to_values(await model.queue(_name_in(asked)))
            if whole and kind == "exchange":
                return 200, "OK", to_values(await model.exchange(_exchange_in(asked)))
            return 200, "OK", _node_form(asked)(await model.node(_name_in(asked), kind=_kind_in(asked)))
        if whole and kind == "container":
            return 200, "OK", to_values(await model.describe())
        identity = _text(asked, "identity")
        form = to_values if whole else other.attributes
        if kind == "link":
            return 200, "OK", form(await model.link(identity))
        if kind == "connection":
            return 200, "OK", form(await model.connection(_connection_in(asked)))
        async for each in other.find(model):
            if other.attributes(each)["identity"] == identity:
                return 200, "OK", form(each)
        raise ManagementError("not-found", f"no {kind} {_shown.repr(identity)}")

    async def _update(self, model: Management, asked: Mapping[str, Any], body: Any) -> _Answer:
        if asked.get("type") == "topic":
            changed = await model.set_topic(_name_in(asked), **_wishes(body, _TOPIC))
            return 200, "OK", _node_form(asked)(changed)
        wishes = _wishes(body, _NEW_QUEUE)
        _check_node(asked)
        queue = await model.set_queue(_name_in(asked), kind=_kind_in(asked), **wishes)
        return 200, "OK", _node_form(asked)(queue)

    async def _delete(self, model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        """Delete an entity; a peer that closes its own connection gets no answer."""
        kind = asked.get("type")
        reason = {} if "reason" not in asked else {"reason": _text(asked, "reason")}
        if kind == "connection":
            await model.close_connection(_connection_in(asked), **reason)
        elif kind == "link":
            await model.close_link(_text(asked, "identity"), **reason)
        elif kind == "exchange":
            await model.delete_exchange(_exchange_in(asked), if_unused=_flag(asked, "if-unused"))
        else:
            _check_node(asked)
            count = await model.delete(
                _name_in(asked),
                kind=_kind_in(asked),
                if_empty=_flag(asked, "if-empty"),
                if_unused=_flag(asked, "if-unused"),
            )
            if _wants_status(asked):
                return 200, "OK", {"count": count}
        return 204, "No Content", {}

    # -- exchanges and bindings -------------------------------------------------------------

    async def _declare(self, model: Management, asked: Mapping[str, Any], body: Any) -> _Answer:
        kind = asked.get("type")
        known = _DECLARED.get(kind) if isinstance(kind, str) else None
        if known is None:
            raise ManagementError(
                "invalid", f"type={_shown.repr(kind)} cannot be declared: expected {' or '.join(_DECLARED)}"
            )
        properties = _properties_in(body, known)
        if kind == "queue":
            name = "" if asked.get("name") is None else _text(asked, "name", least=0)
            declared: NodeStatus = await model.declare_queue(name, **properties)
        else:
            declared = await model.declare_exchange(_exchange_in(asked), **properties)
        return 200, "OK", _node_form(asked)(declared)

    async def _bind(self, model: Management, asked: Mapping[str, Any], body: Any) -> _Answer:
        binding = await model.bind(**_binding_in(body))
        return (
            200,
            "OK",
            to_values(binding) if _wants_status(asked) else _OTHERS["binding"].attributes(binding),
        )

    async def _unbind(self, model: Management, _: Mapping[str, Any], body: Any) -> _Answer:
        await model.unbind(**_binding_in(body))
        return 204, "No Content", {}

    async def _route(self, model: Management, asked: Mapping[str, Any], body: Any) -> _Answer:
        offset, count = _number(asked, "offset", 0), min(_number(asked, "count", PAGE), PAGE)
        routed: dict[str, Any] = {"key": "", **_properties_in(body, _ROUTED)}
        found = await model.route(_exchange_in(asked), **routed)
        queues: list[dict[str, Any]] = []
        octets = 0
        for each in found[offset : offset + count]:
            if octets > _PAGE_OCTETS:
                break
            queues.append(_node_form(asked)(each))
            octets += _size(queues[-1])
        return 200, "OK", {"queues": queues, "more": offset + len(queues) < len(found)}

    # -- messages ---------------------------------------------------------------------------

    async def _purge(self, model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", {"count": await model.purge(_name_in(asked))}

    async def _hold(self, model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        await model.hold(_name_in(asked), _seconds_in(asked))
        return 200, "OK", {}

    async def _redirect(self, model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        await model.redirect(_name_in(asked), _text_or_none(asked, "target"))
        return 200, "OK", {}

    async def _publish(self, model: Management, asked: Mapping[str, Any], body: Any) -> _Answer:
        octets = _map(body).get("message")
        if not isinstance(octets, bytes):
            raise ManagementError("invalid", f"message={_shown.repr(octets)} in the body: expected binary")
        return 200, "OK", {"routed": await model.publish(_name_in(asked), Message.from_payload(octets))}

    async def _browse(self, model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        found = await model.browse(
            _name_in(asked),
            min(_number(asked, "count", PAGE), PAGE),
            offset=_number(asked, "offset", 0),
            octets=min(_number(asked, "octets", _PAGE_OCTETS), _PAGE_OCTETS),
            filter=_text_or_none(asked, "filter"),
        )
        return 200, "OK", {"messages": list(map(_of_message, found))}

    async def _get(self, model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        outcome: Any = asked.get("outcome", "accept")
        if outcome not in get_args(Ending):
            raise ManagementError(
                "invalid", f"outcome={_shown.repr(outcome)}: expected {' or '.join(get_args(Ending))}"
            )
        found = await model.get(
            _name_in(asked),
            min(_number(asked, "count", 1), _AT_ONCE),
            outcome=outcome,
            octets=min(_number(asked, "octets", _PAGE_OCTETS), _PAGE_OCTETS),
            filter=_text_or_none(asked, "filter"),
        )
        return 200, "OK", {"messages": list(map(_of_message, found))}

    async def _move(self, model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        count = await model.move(
            _name_in(asked), _text(asked, "target"), _count_in(asked), filter=_text_or_none(asked, "filter")
        )
        return 200, "OK", {"count": count}

    async def _redrive(self, model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        done = await model.redrive(_name_in(asked), _count_in(asked), died_in=_text_or_none(asked, "died-in"))
        return 200, "OK", {"moved": dict(done.moved), "left": done.left}

    # -- definitions ------------------------------------------------------------------------

    async def _export(self, model: Management, _asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", {"definitions": json.dumps(await model.export_definitions())}

    async def _import(self, model: Management, asked: Mapping[str, Any], body: Any) -> _Answer:
        text = _map(body).get("definitions")
        try:
            given: Any = json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise ManagementError("invalid", f"definitions={text!r:.60}: expected an object of JSON, as text")
        done = await model.import_definitions(
            cast("dict[str, Any]", given), virtual_host=_text_or_none(asked, "virtual-host")
        )
        left = [[each.kind, each.name, each.reason] for each in done.left_out]
        return 200, "OK", {"made": dict(done.made), "left-out": left}

    # -- all of them ------------------------------------------------------------------------

    async def _query(self, model: Management, asked: Mapping[str, Any], body: Any) -> _Answer:
        names = _names_in(body)
        offset, count = _number(asked, "offset", 0), _number(asked, "count", PAGE)
        other = _other_in(asked, "entityType")
        listing = _listing(model, asked)
        attributes = _of_node if other is None else other.attributes
        if _wants_status(asked):
            attributes = to_values
        entities: list[dict[str, Any]] = []
        octets = 0
        more = False
        async for thing in listing.things():
            if offset:
                offset -= 1
                continue
            more = len(entities) >= min(count, PAGE) or octets > _PAGE_OCTETS
            if more:
                break
            entity = attributes(listing.describe(thing))
            if names:
                entity = {name: entity[name] for name in names if name in entity}
            entities.append(entity)
            octets += sum(map(_size, entity.values()))
        if not names:
            names = list(dict.fromkeys(name for each in entities for name in each))
        rows = [[each.get(name) for name in names] for each in entities]
        return 200, "OK", _Page(names, rows, more)

    def _examples(self, asked: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the attributes of each type of entity."""
        container = self._container
        types = {
            "node": [*_COMMON, "senders", "receivers"],
            "queue": list(_of_node(status_builders.node_status(container, Queue("queue")))),
            "topic": list(_of_node(status_builders.node_status(container, Topic("topic")))),
            **{kind: list(other.names) for kind, other in _OTHERS.items()},
        }
        for node in container.nodes.values():
            kind = status_builders.kind_of(node)
            if kind not in types:
                types[kind] = list(_of_node(status_builders.node_status(container, node)))
        wanted = asked.get("entityType")
        return types if wanted is None else {name: types[name] for name in types if name == wanted}

    def _get_types(self, _model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        return (
            200,
            "OK",
            {kind: [] if kind == "node" or kind in _OTHERS else ["node"] for kind in self._examples(asked)},
        )

    def _get_attributes(self, _model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", self._examples(asked)

    def _get_operations(self, _model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", {kind: operations_of(kind) for kind in self._examples(asked)}

    def _get_annotations(self, _model: Management, asked: Mapping[str, Any], _: Any) -> _Answer:
        return 200, "OK", {kind: list[str]() for kind in self._examples(asked)}

    def _get_nodes(self, _model: Management, _: Mapping[str, Any], __: Any) -> _Answer:
        return 200, "OK", list[str]()


status_builders.KINDS[ManagementNode] = "function"


# -- statuses as attributes -----------------------------------------------------------------


def _wants_status(asked: Mapping[str, Any]) -> bool:
    """Return whether entities have the fields of their statuses in the reply."""
    form = asked.get("form")
    if form not in (None, "status"):
        raise ManagementError("invalid", f"form={_shown.repr(form)}: expected status, or no form")
    return form is not None


def _node_form(asked: Mapping[str, Any]) -> Callable[[NodeStatus], dict[str, Any]]:
    """Return the function that makes the entity of a node for a reply."""
    return to_values if _wants_status(asked) else _of_node


def _named(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return figures with names as attributes have them."""
    return {name.replace("_", "-"): value for name, value in figures.items()}


def _of_node(node: NodeStatus) -> dict[str, Any]:
    attributes: dict[str, Any] = {"name": node.address, "identity": node.address, "type": node.kind}
    if isinstance(node, (QueueStatus, TopicStatus)):
        rules = node.rules if isinstance(node, QueueStatus) else node
        attributes |= {
            name: getattr(node if name == "durable" else rules, name.replace("-", "_"))
            for name in _MADE[node.kind]
        }
    if isinstance(node, QueueStatus):
        attributes |= _named({name: getattr(node, name) for name in _OF_QUEUE})
        attributes["dead-letters"] = dict(node.dead_letters)
    return {**attributes, **node.figures}


def _of_connection(connection: ConnectionStatus) -> dict[str, Any]:
    who = {
        "name": connection.container_id,
        "identity": f"{connection.number}",
        "type": "connection",
        "user": connection.user,
        "leases": connection.unsettled,
        "working": connection.working,
        "protocol": connection.protocol,
    }
    return {**who, **_named(connection.figures)}


def _of_link(link: LinkStatus) -> dict[str, Any]:
    who = {
        "name": link.name,
        "identity": link.identity,
        "type": "link",
        "connection": f"{link.connection}",
        "peer": link.container_id,
        "role": link.role,
    }
    return who | _named(link.figures)


def _of_message(message: MessageStatus) -> dict[str, Any]:
    return {
        "place": message.place,
        "priority": message.priority,
        "octets": message.octets,
        "age": message.age,
        "redelivered": message.redelivered,
        "failures": message.failures,
        "expires": message.expires,
        "died-in": message.died_in,
        "message": message.message.to_payload(),
    }


def _of_container(container: ContainerStatus) -> dict[str, Any]:
    return {
        "name": container.name,
        "identity": container.name,
        "type": "container",
        "held-octets": container.octets,
        "memory-limit": container.memory_limit,
        "throttled": container.throttled,
        "refused-for-memory": container.refused_for_memory,
    }


class _Other(NamedTuple):
    """A type of entities that are no nodes.

    Attributes:
        find: returns the list of them.
        attributes: returns the attributes of one.
        names: the names of the attributes.
    """

    find: Callable[[Management], Listing[Any]]
    attributes: Callable[[Any], dict[str, Any]]
    names: tuple[str, ...]


def _plain(
    kind: str, cls: type, list_all: Callable[[Management], Listing[Any]], identity: Callable[[Any], str]
) -> _Other:
    """Return a type whose attributes are those of its status."""
    names = [each.name for each in fields(cls)]

    def attributes(one: Any) -> dict[str, Any]:
        name = identity(one)
        values = {each: getattr(one, each) for each in names if each != "figures"}
        return {"identity": name, "type": kind, "name": name, **_named(values)}

    shown = [name.replace("_", "-") for name in names if name not in ("name", "figures")]
    return _Other(list_all, attributes, (*_COMMON, *shown))


_OTHERS: Final[dict[str, _Other]] = {
    "container": _Other(
        Management.containers,
        _of_container,
        (*_COMMON, "held-octets", "memory-limit", "throttled", "refused-for-memory"),
    ),
    "connection": _Other(
        Management.connections,
        _of_connection,
        (
            *_COMMON,
            *("user", "leases", "working", "state", "transports", "octets-in", "octets-out", "frames-in"),
            *("frames-out", "messages-in", "messages-out", "reads", "writes", "waiting", "sessions"),
            *("senders", "receivers", "protocol", "tolerated"),
        ),
    ),
    "link": _Other(
        Management.links,
        _of_link,
        (
            *_COMMON,
            *("connection", "peer", "role", "state", "address", "messages", "credit", "unsettled"),
            *("draining", "waiting", "available", "buffered", "missettled"),
        ),
    ),
    "account": _plain("account", status.AccountStatus, Management.accounts, lambda one: one.name),
    "channel": _plain(
        "channel",
        status.ChannelStatus,
        Management.channels,
        lambda one: f"{one.connection}/{one.number}",
    ),
    "subscription": _plain(
        "subscription",
        status.SubscriptionStatus,
        Management.subscriptions,
        lambda one: f"{one.topic}/{one.container_id or ''}/{one.name}",
    ),
    "transaction": _plain(
        "transaction",
        status.TransactionStatus,
        Management.transactions,
        lambda one: f"{one.connection}",
    ),
    "user": _plain("user", status.UserStatus, Management.users, lambda one: one.name),
    "virtual-host": _plain(
        "virtual-host", status.VirtualHostStatus, Management.virtual_hosts, lambda one: one.name
    ),
    "binding": _plain(
        "binding",
        status.BindingStatus,
        Management.bindings,
        lambda one: f"{one.source}/{one.destination_kind}/{one.destination}/{one.key}",
    ),
}
"""The types of entities that are no nodes."""


_LISTS: Final[dict[str, Callable[[Management], Listing[Any]]]] = {
    "queue": Management.queues,
    "topic": Management.topics,
    "exchange": Management.exchanges,
}
"""The lists of nodes of one class; further kinds of nodes are only names."""


def _listing(model: Management, asked: Mapping[str, Any]) -> Listing[Any]:
    """Return the list that a request asks for."""
    kind, role = asked.get("entityType"), asked.get("role")
    if role not in (None, "sender", "receiver"):
        raise ManagementError("invalid", f"role={_shown.repr(role)}: expected sender or receiver")
    if kind == "link":
        return model.links(role=role)
    other = _other_in(asked, "entityType")
    if other is not None:
        return other.find(model)
    if _wants_status(asked) and isinstance(kind, str) and kind in _LISTS:
        return _LISTS[kind](model)
    return model.nodes(kind=kind)


class _Page(NamedTuple):
    """Some of the entities that were asked for, and whether further entities follow."""

    names: list[str]
    results: list[list[Any]]
    more: bool


def _size(value: Any) -> int:
    """Return about how many octets a value takes in a reply."""
    table, items = as_map(value), as_list(value)
    if table is not None:
        return 9 + sum(_size(key) + _size(each) for key, each in table.items())
    if items is not None:
        return 9 + sum(map(_size, items))
    return len(value) + 5 if isinstance(value, (str, bytes)) else 9


def operations_of(kind: str) -> dict[str, list[str]]:
    """Return the operations on entities of a type, each with its attributes."""
    operations: dict[str, list[str]] = {"READ": []}
    if kind in _MADE:
        operations |= {"CREATE": list(_MADE[kind]), "UPDATE": list(_CHANGED[kind]), "DELETE": []}
    if kind in ("connection", "link"):
        operations["DELETE"] = []
    if kind in _DECLARED:
        operations["DECLARE"] = list(_DECLARED[kind])
    if kind == "exchange":
        operations |= {"DELETE": [], "ROUTE": list(_ROUTED)}
    if kind == "binding":
        operations |= {"BIND": list(_BOUND), "UNBIND": list(_BOUND)}
    if kind == "queue":
        operations |= {
            name: [] for name in ("PURGE", "HOLD", "REDIRECT", "PUBLISH", "BROWSE", "GET", "MOVE", "REDRIVE")
        }
    return operations


# -- the words of a request -----------------------------------------------------------------


def _other_in(asked: Mapping[str, Any], name: str) -> _Other | None:
    """Return the type of entities that are no nodes, if a request names one."""
    kind = asked.get(name)
    return _OTHERS.get(kind) if isinstance(kind, str) else None


def _check_node(asked: Mapping[str, Any]) -> None:
    if _other_in(asked, "type") is not None:
        raise ManagementError("invalid", f"an entity of type {asked['type']!r} can only be read and listed")


def _kind_in(asked: Mapping[str, Any]) -> str | None:
    kind = asked.get("type")
    return None if kind in (None, "node") else kind if isinstance(kind, str) else _shown.repr(kind)


def _connection_in(asked: Mapping[str, Any]) -> int:
    identity = _text(asked, "identity")
    return int(identity) if identity.isdecimal() and len(identity) < 20 else -1


def _text_or_none(asked: Mapping[str, Any], name: str) -> str | None:
    return None if asked.get(name) is None else _text(asked, name)


def _count_in(asked: Mapping[str, Any]) -> int | None:
    return None if asked.get("count") is None else _number(asked, "count", 0)


def _flag(asked: Mapping[str, Any], name: str) -> bool:
    value = asked.get(name, False)
    if not isinstance(value, bool):
        raise ManagementError(
            "invalid", f"{name}={_shown.repr(value)} in the application-properties: expected true or false"
        )
    return value


def _names_in(body: Any) -> list[str]:
    """Return the attributes that a request names, each once; none if it asks for all."""
    asked: Any = _map(body).get("attributeNames")
    if asked is None:
        return []
    if not isinstance(asked, (list, tuple)) or not all(
        isinstance(each, str) for each in cast("list[Any]", asked)
    ):
        raise ManagementError("invalid", f"attributeNames={_shown.repr(asked)}: expected a list of strings")
    names = cast("list[str]", asked)
    if len(names) > _MOST_NAMES or any(len(name) > _LONGEST for name in names):
        raise ManagementError(
            "invalid",
            f"{len(names)} attributeNames: expected at most {_MOST_NAMES} of at most {_LONGEST} characters",
        )
    return list(dict.fromkeys(map(str, names)))


def _map(body: Any) -> Mapping[Any, Any]:
    if body is None:
        return {}
    if isinstance(body, dict):
        return dict(body)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise ManagementError("invalid", f"the body is {type(body).__name__}: expected a map")


def _wishes(body: Any, known: dict[str, type]) -> dict[str, Any]:
    """Return the attributes in a body as arguments.

    Each must be of its type, or null.
    """
    wishes: dict[str, Any] = {}
    for name, value in _map(body).items():
        kind = known.get(str(name))
        if kind is None:
            raise ManagementError("invalid", f"no attribute {_shown.repr(name)}: one of {', '.join(known)}")
        taken = (int, float) if kind is float else kind
        fits = isinstance(value, taken) and (kind is bool) == isinstance(value, bool)
        if not fits and (value is not None or kind is bool):
            raise ManagementError("invalid", f"{name}={_shown.repr(value)}: expected {kind.__name__}")
        wishes[str(name).replace("-", "_")] = value if value is None else kind(value)
    return wishes


def _properties_in(body: Any, known: dict[str, type]) -> dict[str, Any]:
    """Return the properties in a body as arguments, without those that are null.

    Maps are JSON in a string.
    """
    given = dict(_map(body))
    maps = {name: given.pop(name, None) for name, kind in known.items() if kind is dict}
    texts = [name for name, kind in known.items() if kind is str and given.get(name) is not None]
    others = {name: value for name, value in given.items() if value is not None}
    found: dict[str, Any] = {
        name.replace("-", "_"): _text(given, name, least=0, where="body") for name in texts
    }
    found |= _wishes({name: value for name, value in others.items() if name not in texts}, known)
    for name, text in maps.items():
        if text is not None:
            try:
                found[name] = read_arguments(name, text)
            except ValueError as fault:
                raise ManagementError("invalid", f"{fault}; give an object of JSON in a string") from fault
    return found


def _binding_in(body: Any) -> dict[str, Any]:
    """Return the arguments of a call that binds."""
    found = _properties_in(body, _BOUND)
    for name in ("source", "destination"):
        if name not in found:
            raise ManagementError("invalid", f"{name} is missing in the body: expected the name of it")
    if found.get("destination_kind", "queue") not in ("queue", "exchange"):
        raise ManagementError(
            "invalid",
            f"destination-kind={_shown.repr(found['destination_kind'])}: expected queue or exchange",
        )
    return found


def _exchange_in(asked: Mapping[str, Any]) -> str:
    """Return the name of the exchange of a request, which has it or its address."""
    given = _text(asked, "identity" if "identity" in asked else "name", least=0)
    name = exchange_named(given)
    return given if name is None else name


def _name_in(asked: Mapping[str, Any]) -> str:
    """Return the address of the node that a request names."""
    return _text(asked, "identity" if "identity" in asked else "name")


def _text(
    asked: Mapping[str, Any], name: str, *, least: int = 1, where: str = "application-properties"
) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or len(value) < least:
        raise ManagementError("invalid", f"{name}={_shown.repr(value)} in the {where}: expected a string")
    if len(value) > _LONGEST:
        raise ManagementError("invalid", f"{name} has {len(value)} characters: expected at most {_LONGEST}")
    return str(value)


def _number(asked: Mapping[str, Any], name: str, default: int) -> int:
    value = asked.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ManagementError(
            "invalid",
            f"{name}={_shown.repr(value)} in the application-properties: expected a number of at least 0",
        )
    return int(value)


def _seconds_in(asked: Mapping[str, Any]) -> float:
    value = asked.get("seconds", 0)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ManagementError(
            "invalid", f"seconds={_shown.repr(value)} in the application-properties: expected a number"
        )
    return float(value)
