"""The plan of a migration: which queues, with which definitions, and what differs.

Knows definitions (``container.management.definitions``) and figures; knows no link.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.broker.exchanges.addresses import TEMPORARY
from trio_amqp10.broker.exchanges.argument_equality import to_json
from trio_amqp10.container.management.definitions import from_rabbitmq
from trio_amqp10.tools.cli.command_runner import CommandError

from .differences import Difference, differences_of_arguments, translate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.rabbitmq import QueueInfo
    from trio_amqp10.tools.cli.open_management import Entity

Definitions = dict[str, list[dict[str, Any]]]

_LISTS: Final = ("queues", "topics", "declared-queues", "exchanges", "bindings")
_QUEUES: Final = ("queues", "declared-queues")
_WAYS: Final = ("direct", "fanout", "topic", "headers")
"""The types of exchanges that RabbitMQ has without a plug-in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueCopy:
    """A queue whose messages are moved.

    Attributes:
        name: its name at both ends; at a container it is the address.
        ready: its messages that can be received now.
        busy: its messages that consumers have, or that wait for their next delivery.
    """

    name: str
    ready: int
    busy: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The steps of one migration.

    Attributes:
        queues: the queues whose messages are moved.
        definitions: what is made at the target first, in the form of ``amqp10 definitions export``; for RabbitMQ without ``queues`` and
            ``topics``.
        differences: what is not at the target as it is at the source.
    """

    queues: tuple[QueueCopy, ...]
    definitions: Definitions
    differences: tuple[Difference, ...] = field(default=())

    def lines(self) -> list[str]:
        """Return the plan as text."""
        rules: dict[str, Any] = {
            each["name"]: each.get("rules", each.get("arguments", {}))
            for kind in _QUEUES
            for each in self.definitions.get(kind, ())
        }
        found = [f"difference: {each}" for each in self.differences]
        found += [
            f"queue {each.name}: {each.ready} messages{_and_busy(each)}{_shown(rules.get(each.name, {}))}"
            for each in self.queues
        ]
        found += [
            f"topic {each['name']}{_shown(each['rules'])}" for each in self.definitions.get("topics", ())
        ]
        found += [
            f"exchange {each['name']}: {each['type']}{_shown(each['arguments'])}"
            for each in self.definitions.get("exchanges", ())
        ]
        found += [
            f"binding {each['source']} to {each['destination-kind']} {each['destination']}: "
            f"key {each['key']!r}{_shown(each['arguments'])}"
            for each in self.definitions.get("bindings", ())
        ]
        return found


def _and_busy(queue: QueueCopy) -> str:
    return f", {queue.busy} with consumers or delayed" if queue.busy else ""


def _shown(rules: Mapping[str, Any]) -> str:
    pairs = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in rules.items()
    ]
    return f"; {', '.join(pairs)}" if pairs else ""


# -- from a container -----------------------------------------------------------------------


def plan_for_container(
    definitions: Definitions, queues: Sequence[Entity], topics: Sequence[Entity], names: Sequence[str]
) -> Plan:
    """Return the plan for a container as the target of another one.

    Args:
        definitions: all definitions of the source.
        queues, topics: its queues and topics with their figures.
        names: the queues to migrate; all, and everything else, if empty.

    Raises:
        CommandError: a queue does not exist.
    """
    chosen = _chosen(definitions, queues, names)
    differences = _left_queues(chosen, queues, names)
    if not names:
        differences += [
            Difference(
                what=f"topic {each['name']}",
                rule=f"{each['messages']} messages of {each['subscriptions']} subscriptions",
                instead="they are not migrated",
            )
            for each in topics
            if each["subscriptions"]
        ]
    return Plan(queues=_copies(chosen, queues), definitions=chosen, differences=tuple(differences))


def plan_for_rabbitmq(definitions: Definitions, queues: Sequence[Entity], names: Sequence[str]) -> Plan:
    """Return the plan for RabbitMQ as the target of a container.

    Args:
        definitions: all definitions of the source.
        queues: its queues with their figures.
        names: the queues to migrate; all, and everything else, if empty.

    Raises:
        CommandError: a queue does not exist.
    """
    chosen = _chosen(definitions, queues, names)
    copies, differences = _copies(chosen, queues), _left_queues(chosen, queues, names)
    declared = list(chosen["declared-queues"])
    for each in chosen["queues"]:
        arguments, found = translate(each["name"], each["rules"])
        differences += found
        declared.append(
            {
                "name": each["name"],
                "durable": True,
                "auto-delete": False,
                "arguments": to_json(arguments),
            }
        )
    differences += [
        Difference(
            what=f"topic {each['name']}",
            rule="",
            instead="it is not migrated: bind queues to a fanout exchange instead",
        )
        for each in chosen["topics"]
    ]
    exchanges: list[dict[str, Any]] = []
    for each in chosen["exchanges"]:
        if each["type"] in _WAYS:
            exchanges.append(each)
        else:
            what, rule = f"exchange {each['name']}", f"type={each['type']}"
            differences.append(
                Difference(what=what, rule=rule, instead="it is not migrated, nor its bindings")
            )
    lost = {each["name"] for each in chosen["exchanges"]} - {each["name"] for each in exchanges}
    bindings = [each for each in chosen["bindings"] if not lost & {each["source"], each["destination"]}]
    return Plan(
        queues=copies,
        definitions={"declared-queues": declared, "exchanges": exchanges, "bindings": bindings},
        differences=tuple(differences),
    )


def _chosen(definitions: Definitions, queues: Sequence[Entity], names: Sequence[str]) -> Definitions:
    """Return the definitions of these queues, and of the exchanges that lead to them."""
    found = {kind: list(definitions.get(kind, ())) for kind in _LISTS}
    found["bindings"] = [each for each in found["bindings"] if each["source"]]
    if not names:
        return found
    known = {each["name"] for each in queues}
    absent = [name for name in names if name not in known]
    if absent:
        raise CommandError(f"no queue {absent[0]!r} at the source: see amqp10 queue list")
    found["topics"] = []
    for kind in _QUEUES:
        found[kind] = [each for each in found[kind] if each["name"] in names]
    found["bindings"] = [
        each
        for each in found["bindings"]
        if each["destination-kind"] == "queue" and each["destination"] in names
    ]
    sources = {each["source"] for each in found["bindings"]}
    found["exchanges"] = [each for each in found["exchanges"] if each["name"] in sources]
    return found


def _copies(chosen: Definitions, queues: Sequence[Entity]) -> tuple[QueueCopy, ...]:
    defined = {each["name"] for kind in _QUEUES for each in chosen[kind]}
    return tuple(
        QueueCopy(name=each["name"], ready=each["ready"], busy=each["depth"] - each["ready"])
        for each in queues
        if each["name"] in defined
    )


def _left_queues(chosen: Definitions, queues: Sequence[Entity], names: Sequence[str]) -> list[Difference]:
    """Return the queues without definitions, which come and go by themselves."""
    defined = {each["name"] for kind in _QUEUES for each in chosen[kind]}
    return [
        Difference(
            what=f"queue {each['name']}",
            rule=f"{each['depth']} messages",
            instead="it is not migrated, because it is deleted together with its connection or consumers",
        )
        for each in queues
        if each["name"] not in defined
        and (not names or each["name"] in names)
        and not each["name"].startswith(TEMPORARY)
    ]


# -- from RabbitMQ --------------------------------------------------------------------------


def plan_from_rabbitmq(
    queues: Sequence[QueueInfo], file: Mapping[str, Any] | None, virtual_host: str | None
) -> Plan:
    """Return the plan for a container as the target of RabbitMQ.

    Args:
        queues: the queues to migrate, as RabbitMQ describes them.
        file: definitions of RabbitMQ; None without a file.
        virtual_host: of the file, the virtual host; None for the only one, or ``/``.

    Raises:
        CommandError: a queue belongs to one connection.
    """
    differences: list[Difference] = []
    definitions: Definitions = {}
    if file is not None:
        definitions, left = from_rabbitmq(file, virtual_host)
        differences += [
            Difference(what=f"{each.kind} {each.name}", rule="", instead=f"left out: {each.reason}")
            for each in left
        ]
    declared: list[dict[str, Any]] = []
    copies: list[QueueCopy] = []
    for each in queues:
        if each.exclusive:
            raise CommandError(
                f"queue {each.name!r} belongs to one connection, so it cannot be migrated: leave it out"
            )
        differences += differences_of_arguments(each.name, each.arguments)
        if each.type == "stream":
            continue
        declared.append(
            {
                "name": each.name,
                "durable": each.durable,
                "auto-delete": each.auto_delete,
                "arguments": to_json(dict(each.arguments)),
            }
        )
        copies.append(QueueCopy(name=each.name, ready=each.message_count))
    return Plan(
        queues=tuple(copies),
        definitions={**definitions, "declared-queues": declared},
        differences=tuple(differences),
    )
