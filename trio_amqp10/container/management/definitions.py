"""Definitions: queues, topics, exchanges and bindings as JSON.

The form of this library is an object with ``"trio-amqp10": 1`` and these lists; names of rules are those of ``$management``
and of ``amqp10 serve --queue``, and values of arguments are those of ``argument_equality``:

===================  ==============================================================================================
queues               ``name``, ``rules``
topics               ``name``, ``rules``
declared-queues      ``name``, ``durable``, ``auto-delete``, ``arguments``
exchanges            ``name``, ``type``, ``durable``, ``auto-delete``, ``internal``, ``arguments``
bindings             ``source``, ``destination-kind``, ``destination``, ``key``, ``arguments``
redirects            ``name``, ``url``: the address of a queue, and the place that its links are sent to
===================  ==============================================================================================

What belongs to one connection or comes and goes by itself is not among them: exclusive and temporary queues. Messages, users
and rights are not either. The definitions of RabbitMQ (``rabbitmqctl export_definitions``) are read too: its queues are declared,
and what has no counterpart is left out and reported.

Knows the model of management and plain values; changes nothing but through the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.broker.exchanges.addresses import RESERVED, TEMPORARY
from trio_amqp10.broker.exchanges.argument_equality import from_json, to_json
from trio_amqp10.broker.nodes.policy import QUEUE_RULES
from trio_amqp10.broker.rights.access import shown
from trio_amqp10.core.short_strings import is_unicode

from .errors import ManagementError
from .status import Imported, LeftOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from .management import Management
    from .status import QueueStatus, TopicStatus

_MARK: Final = "trio-amqp10"
_VERSION: Final = 1
_LIMITS: Final = ("max_backlog", "overflow", "max_subscriptions")
_BUILT_IN: Final = "amq."
_KEYS_OF_RABBITMQ: Final = frozenset({"rabbit_version", "rabbitmq_version", "vhosts", "queues"})
"""Each ``definitions.json`` of RabbitMQ has at least one of these keys."""
_OF_RABBITMQ: Final = {
    "users": "users are given to serve, not defined",
    "permissions": "rights are given to the container, not defined",
    "topic_permissions": "rights are given to the container, not defined",
    "parameters": "there are no plugins with parameters",
    "global_parameters": "there are no plugins with parameters",
    "policies": "a queue has rules of its own: give it arguments",
    "operator_policies": "a queue has rules of its own: give it arguments",
}


# -- export ---------------------------------------------------------------------------------


async def export_definitions(model: Management) -> dict[str, Any]:
    """Return the definitions that the one who asks may see, as values of JSON.

    Cancelled: nothing has changed.
    """
    found: dict[str, Any] = {_MARK: _VERSION, "queues": [], "topics": []}
    found |= {"declared-queues": [], "exchanges": [], "bindings": [], "redirects": []}
    exclusive = set[str]()
    async for queue in model.queues():
        if queue.exclusive:
            exclusive.add(queue.name)
            continue
        if queue.declared:
            found["declared-queues"].append(_declared(queue))
        elif not queue.auto_delete and not queue.address.startswith(TEMPORARY):
            found["queues"].append({"name": queue.address, "rules": _rules_of(queue)})
        else:
            continue
        if queue.redirect is not None:
            found["redirects"].append({"name": queue.address, "url": queue.redirect})
    async for topic in model.topics():
        found["topics"].append({"name": topic.address, "rules": _limits_of(topic)})
    async for exchange in model.exchanges():
        if exchange.name and not exchange.name.startswith(_BUILT_IN):
            found["exchanges"].append(
                {
                    "name": exchange.name,
                    "type": exchange.type,
                    "durable": exchange.durable,
                    "auto-delete": exchange.auto_delete,
                    "internal": exchange.internal,
                    "arguments": to_json(exchange.arguments),
                }
            )
    async for binding in model.bindings():
        if binding.destination_kind == "exchange" or binding.destination not in exclusive:
            found["bindings"].append(
                {
                    "source": binding.source,
                    "destination-kind": binding.destination_kind,
                    "destination": binding.destination,
                    "key": binding.key,
                    "arguments": to_json(binding.arguments),
                }
            )
    return found


def _declared(queue: QueueStatus) -> dict[str, Any]:
    return {
        "name": queue.name,
        "durable": queue.durable,
        "auto-delete": queue.auto_delete,
        "arguments": to_json(queue.arguments),
    }


def _rules_of(queue: QueueStatus) -> dict[str, Any]:
    """Return the rules that differ from those of a new queue."""
    values = {
        rule: queue.durable if rule.name == "durable" else getattr(queue.rules, rule.name)
        for rule in QUEUE_RULES
    }
    return {
        rule.option: value
        for rule, value in values.items()
        if value != rule.default and not (rule.name == "durable" and not value)
    }


def _limits_of(topic: TopicStatus) -> dict[str, Any]:
    return {name.replace("_", "-"): getattr(topic, name) for name in _LIMITS}


# -- import ---------------------------------------------------------------------------------


async def import_definitions(
    model: Management, definitions: Mapping[str, Any], virtual_host: str | None
) -> Imported:
    """Make what the definitions contain; see ``Management.import_definitions``.

    Cancelled: some of it may be made.
    """
    if _MARK in definitions:
        if definitions[_MARK] != _VERSION:
            raise ManagementError(
                "invalid", f"definitions of version {definitions[_MARK]!r}: expected version {_VERSION}"
            )
        lists, left = definitions, list[LeftOut]()
    elif not _KEYS_OF_RABBITMQ.isdisjoint(definitions):
        lists, left = from_rabbitmq(definitions, virtual_host)
    else:
        raise ManagementError(
            "invalid",
            f"definitions with the keys {sorted(definitions)[:8]!r}: expected those of amqp10 definitions export, or of RabbitMQ",
        )
    made: dict[str, int] = {}
    for kind, make in _MAKERS.items():
        for each in _entries(lists, kind):
            name = str(each.get("name", f"{each.get('source')} to {each.get('destination')}"))
            try:
                _check_entry(kind, each)
                await make(model, each)
            except ManagementError as fault:
                left.append(LeftOut(kind=kind, name=name, reason=str(fault)))
            except KeyError as fault:
                left.append(LeftOut(kind=kind, name=name, reason=f"it has no {fault}"))
            except (TypeError, ValueError, AttributeError) as fault:
                left.append(LeftOut(kind=kind, name=name, reason=f"a value has the wrong type: {fault}"))
            else:
                made[kind] = made.get(kind, 0) + 1
    return Imported(made=made, left_out=tuple(left))


def _entries(lists: Mapping[str, Any], kind: str) -> Sequence[dict[str, Any]]:
    found: Any = lists.get(kind, ())
    if not isinstance(found, (list, tuple)) or not all(isinstance(each, dict) for each in cast("Any", found)):
        raise ManagementError("invalid", f"{kind}: expected a list of objects")
    return cast("Sequence[dict[str, Any]]", found)


def _check_entry(kind: str, given: Mapping[str, Any]) -> None:
    """Check the names and the flags of an entry; names are None if RabbitMQ gave none."""
    for key in ("source", "destination") if kind == "bindings" else ("name",):
        if not isinstance(given.get(key), str):
            raise ManagementError("invalid", f"{key}={given.get(key)!r}: expected a text in each of {kind}")
    for key, value in given.items():
        expected = _EXPECTED.get(key)
        if expected is not None and value.__class__ is not expected:
            raise ManagementError("invalid", f"{key}={value!r:.64}: expected {_SHOWN[expected]}")
        if isinstance(value, str) and not is_unicode(value):
            raise ManagementError("invalid", f"{key}={value!r:.64}: expected Unicode")
    if given.get("destination-kind", "queue") not in ("queue", "exchange"):
        kind = given["destination-kind"]
        raise ManagementError("invalid", f"destination-kind={kind!r:.64}: expected queue or exchange")


_EXPECTED: Final[dict[str, type]] = {
    "durable": bool,
    "auto-delete": bool,
    "internal": bool,
    "type": str,
    "key": str,
    "url": str,
}
"""The types of what an entry may have; others are checked where they are used."""
_SHOWN: Final = {bool: "true or false", str: "a text"}


async def _make_queue(model: Management, given: dict[str, Any]) -> None:
    rules = {name.replace("-", "_"): value for name, value in given["rules"].items()}
    try:
        await model.create_queue(given["name"], **rules)
    except ManagementError as fault:
        if fault.reason != "exists":
            raise
        await model.set_queue(given["name"], kind="queue", **rules)


async def _make_topic(model: Management, given: dict[str, Any]) -> None:
    limits = {name.replace("-", "_"): value for name, value in given["rules"].items()}
    try:
        await model.create_topic(given["name"], **limits)
    except ManagementError as fault:
        if fault.reason != "exists":
            raise
        await model.set_topic(given["name"], **limits)


async def _declare_queue(model: Management, given: dict[str, Any]) -> None:
    if given["name"].startswith(RESERVED):
        raise ManagementError("forbidden", f"{shown(given['name'])} is reserved: choose another name")
    await model.declare_queue(
        given["name"],
        from_json(given["arguments"]),
        durable=given["durable"],
        auto_delete=given["auto-delete"],
    )


async def _declare_exchange(model: Management, given: dict[str, Any]) -> None:
    await model.declare_exchange(
        given["name"],
        given["type"],
        from_json(given["arguments"]),
        durable=given["durable"],
        auto_delete=given["auto-delete"],
        internal=given["internal"],
    )


async def _bind(model: Management, given: dict[str, Any]) -> None:
    await model.bind(
        given["source"],
        given["destination"],
        given["key"],
        from_json(given["arguments"]),
        destination_kind=given["destination-kind"],
    )


async def _redirect(model: Management, given: dict[str, Any]) -> None:
    await model.redirect(given["name"], given["url"])


_MAKERS: Final[dict[str, Callable[[Management, dict[str, Any]], Awaitable[None]]]] = {
    "queues": _make_queue,
    "topics": _make_topic,
    "declared-queues": _declare_queue,
    "exchanges": _declare_exchange,
    "bindings": _bind,
    "redirects": _redirect,
}
"""How to make each list, in the order in which they need each other."""


def from_rabbitmq(
    definitions: Mapping[str, Any], virtual_host: str | None
) -> tuple[dict[str, list[dict[str, Any]]], list[LeftOut]]:
    """Return RabbitMQ's definitions in the form of this library, and what is left out.

    Args:
        definitions: the contents of its ``definitions.json``.
        virtual_host: the virtual host; None for the only one, or ``/``.

    Raises:
        ManagementError: ``"invalid"``: a list is none.
    """
    hosts = [str(each.get("name")) for each in _entries(definitions, "vhosts")]
    chosen = virtual_host if virtual_host is not None else hosts[0] if len(hosts) == 1 else "/"
    left = [
        LeftOut(kind="vhosts", name=name, reason=f"another virtual host than {chosen!r}")
        for name in hosts
        if name != chosen
    ]
    for kind, reason in _OF_RABBITMQ.items():
        left += [
            LeftOut(
                kind=kind,
                name=str(each.get("name") or each.get("user") or each.get("component")),
                reason=reason,
            )
            for each in _entries(definitions, kind)
        ]
    lists: dict[str, list[dict[str, Any]]] = {}
    for theirs, ours, convert in (
        ("queues", "declared-queues", _queue_of_rabbitmq),
        ("exchanges", "exchanges", _exchange_of_rabbitmq),
        ("bindings", "bindings", _binding_of_rabbitmq),
    ):
        for each in _entries(definitions, theirs):
            if each.get("vhost", chosen) == chosen:
                lists.setdefault(ours, []).append(convert(each))
            elif each.get("vhost") not in hosts:
                name = str(each.get("name") or each.get("destination"))
                left.append(LeftOut(kind=theirs, name=name, reason=f"another virtual host than {chosen!r}"))
    return lists, left


def _queue_of_rabbitmq(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": given.get("name"),
        "durable": given.get("durable", True),
        "auto-delete": given.get("auto_delete", False),
        "arguments": given.get("arguments", {}),
    }


def _exchange_of_rabbitmq(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_queue_of_rabbitmq(given),
        "type": given.get("type", "direct"),
        "internal": given.get("internal", False),
    }


def _binding_of_rabbitmq(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "source": given.get("source"),
        "destination-kind": given.get("destination_type", "queue"),
        "destination": given.get("destination"),
        "key": given.get("routing_key", ""),
        "arguments": given.get("arguments", {}),
    }
