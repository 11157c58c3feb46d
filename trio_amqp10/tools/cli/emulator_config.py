"""Entities of emulators, from Microsoft's and RabbitMQ's files.

The files are ``Config.json`` and ``definitions.json``.

Every fault is reported with its place in the file. Knows the emulators; serves nothing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.testing.azure_emulator import EntityOptions, HubOptions
from trio_amqp10.testing.azure_emulator.constants import SUBSCRIPTIONS

from .command_runner import CommandError
from .toml_file import Faults, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trio_amqp10.testing.azure_emulator import EventHubs, ServiceBus
    from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

_DURATION: Final = re.compile(
    r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII | re.IGNORECASE
)

_DURATIONS: Final = {
    "LockDuration": "lock_duration",
    "DefaultMessageTimeToLive": "default_message_time_to_live",
    "DuplicateDetectionHistoryTimeWindow": "duplicate_detection_history_time_window",
}
_FLAGS: Final = {
    "DeadLetteringOnMessageExpiration": "dead_lettering_on_message_expiration",
    "RequiresDuplicateDetection": "requires_duplicate_detection",
    "RequiresSession": "requires_session",
}
_TEXTS: Final = {
    "ForwardTo": "forward_to",
    "ForwardDeadLetteredMessagesTo": "forward_dead_lettered_messages_to",
}
_COUNTS: Final = {"MaxDeliveryCount": "max_delivery_count"}
_PROPERTIES: Final = (*_DURATIONS, *_FLAGS, *_TEXTS, *_COUNTS)

_CORRELATED: Final = {
    "ContentType": "content-type",
    "CorrelationId": "correlation-id",
    "Label": "label",
    "Subject": "label",
    "MessageId": "message-id",
    "ReplyTo": "reply-to",
    "ReplyToSessionId": "reply-to-session-id",
    "SessionId": "session-id",
    "To": "to",
}


# -- Service Bus ----------------------------------------------------------------------------


def read_service_bus(path: str, bus: ServiceBus) -> None:
    """Add the entities of a ``Config.json`` of Microsoft's Service Bus emulator.

    Raises:
        CommandError: the file is not valid; there is one line for each fault.
        OSError: it cannot be read.
    """
    faults = Faults(path)
    config = _member(faults, "", _read_json(path), "UserConfig")
    faults.unknown(config, ("Namespaces", "Logging"), "UserConfig")
    forwards: list[tuple[str, str]] = []
    for place, namespace in _tables(faults, "UserConfig", config, "Namespaces"):
        faults.unknown(namespace, ("Name", "Queues", "Topics"), place)
        for where, queue in _tables(faults, place, namespace, "Queues"):
            faults.unknown(queue, ("Name", "Properties"), where)
            name, options = _name(faults, where, queue), _options(faults, where, queue)
            _try(faults, where, bus.add_queue, name, options)
            forwards += [(where, each) for each in _targets(options)]
        for where, topic in _tables(faults, place, namespace, "Topics"):
            forwards += _topic(faults, where, topic, bus)
    for where, target in forwards:
        if bus.container.resolve(target) not in bus.container.nodes:
            faults.add(where, f"there is no queue or topic {target!r} to forward to")
    faults.check()


def _topic(faults: Faults, place: str, topic: dict[str, Any], bus: ServiceBus) -> Iterator[tuple[str, str]]:
    faults.unknown(topic, ("Name", "Properties", "Subscriptions"), place)
    name, options = _name(faults, place, topic), _options(faults, place, topic)
    if not _try(faults, place, bus.add_topic, name, options):
        return
    for where, subscription in _tables(faults, place, topic, "Subscriptions"):
        faults.unknown(subscription, ("Name", "Properties", "Rules"), where)
        called, its = _name(faults, where, subscription), _options(faults, where, subscription)
        rules = list(_tables(faults, where, subscription, "Rules"))
        sql: dict[str, str] | None = (
            {} if rules else None
        )  # without rules, it has the rule that selects everything
        if not _try(faults, where, bus.add_subscription, name, called, its, rules=sql):
            continue
        for at, rule in rules:
            _rule(faults, at, rule, bus, f"{name}{SUBSCRIPTIONS}{called}")
        yield from ((where, each) for each in _targets(its))


def _rule(faults: Faults, place: str, rule: dict[str, Any], bus: ServiceBus, address: str) -> None:
    faults.unknown(rule, ("Name", "Properties"), place)
    name = _name(faults, place, rule)
    properties = _member(faults, place, rule, "Properties")
    where = f"{place}.Properties"
    faults.unknown(properties, ("FilterType", "SqlFilter", "CorrelationFilter", "Action"), where)
    described: dict[str, Any] = {}
    kind = properties.get("FilterType")
    if kind == "Sql":
        described["sql-filter"] = {"expression": _sql(faults, where, properties, "SqlFilter")}
    elif kind == "Correlation":
        found = _member(faults, where, properties, "CorrelationFilter")
        at = f"{where}.CorrelationFilter"
        faults.unknown(found, (*_CORRELATED, "Properties"), at)
        filters = {_CORRELATED[each]: value for each, value in found.items() if each in _CORRELATED}
        for each, value in found.items():
            if each in _CORRELATED:
                faults.typed(f"{at}.{each}", value, str)
        described["correlation-filter"] = {**filters, "properties": found.get("Properties", {})}
    else:
        faults.add(f"{where}.FilterType", f"{kind!r}: expected Sql or Correlation")
        return
    if properties.get("Action"):
        described["sql-rule-action"] = {"expression": _sql(faults, where, properties, "Action")}
    rules = bus.entities[address].rules
    assert rules is not None  # it is a subscription
    _try(faults, where, rules.add, name, described)


def _sql(faults: Faults, place: str, properties: dict[str, Any], key: str) -> Any:
    found = _member(faults, place, properties, key)
    faults.unknown(found, ("SqlExpression",), f"{place}.{key}")
    return found.get("SqlExpression")


def _options(faults: Faults, place: str, entity: dict[str, Any]) -> EntityOptions:
    place = f"{place}.Properties"
    properties: dict[str, Any] = entity.get("Properties") or {}
    if not faults.typed(place, properties, dict):
        return EntityOptions()
    faults.unknown(properties, _PROPERTIES, place)
    values: dict[str, Any] = {}
    for key, value in properties.items():
        where = f"{place}.{key}"
        if key in _DURATIONS:
            values[_DURATIONS[key]] = _seconds(faults, where, value)
        elif key in _FLAGS and faults.typed(where, value, bool):
            values[_FLAGS[key]] = value
        elif key in _COUNTS and faults.typed(where, value, int):
            values[_COUNTS[key]] = value
        elif key in _TEXTS and value is not None and faults.typed(where, value, str) and value:
            values[_TEXTS[key]] = value
    try:
        return EntityOptions(**{name: value for name, value in values.items() if value is not None})
    except LocalProtocolError as wrong:
        faults.add(place, str(wrong))
    return EntityOptions()


def _seconds(faults: Faults, place: str, value: Any) -> float | None:
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        faults.add(place, f"{value!r}: expected a duration of ISO 8601, as in PT1M or P14D")
        return None
    days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return total if total < _FOREVER else None


_FOREVER: Final = 10_000 * 86_400.0 * 365
"""Seconds from which a duration means no limit; Azure writes its longest one so."""


def _targets(options: EntityOptions) -> list[str]:
    return [each for each in (options.forward_to, options.forward_dead_lettered_messages_to) if each]


# -- Event Hubs -----------------------------------------------------------------------------


def read_event_hubs(path: str, hubs: EventHubs) -> None:
    """Add the hubs of a ``Config.json`` of Microsoft's Event Hubs emulator.

    Raises:
        CommandError: the file is not valid; there is one line for each fault.
        OSError: it cannot be read.
    """
    faults = Faults(path)
    config = _member(faults, "", _read_json(path), "UserConfig")
    faults.unknown(config, ("NamespaceConfig", "LoggingConfig"), "UserConfig")
    for place, namespace in _tables(faults, "UserConfig", config, "NamespaceConfig"):
        faults.unknown(namespace, ("Type", "Name", "Entities"), place)
        for where, hub in _tables(faults, place, namespace, "Entities"):
            faults.unknown(hub, ("Name", "PartitionCount", "ConsumerGroups"), where)
            groups = [_name(faults, at, group) for at, group in _tables(faults, where, hub, "ConsumerGroups")]
            count = _whole(faults, f"{where}.PartitionCount", hub.get("PartitionCount", 2))
            name = _name(faults, where, hub)
            kept = tuple(each for each in groups if each.casefold() != "$default")
            _try(faults, where, hubs.add_hub, name, HubOptions(partition_count=count, consumer_groups=kept))
    faults.check()


def _whole(faults: Faults, place: str, value: Any) -> int:
    """Return a number, which Microsoft writes as a string."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 6:
        value = int(value)
    number: Any = value
    if value.__class__ is not int or not 1 <= number <= 1024:
        faults.add(place, f"{value!r}: expected a whole number from 1 to 1024")
        return 1
    return int(number)


_BINDING: Final = ("source", "destination", "routing_key")

# -- RabbitMQ -------------------------------------------------------------------------------


def read_definitions(path: str, rabbit: RabbitMQ) -> list[str]:
    """Declare the content of a ``definitions.json``; return what was left out.

    Raises:
        CommandError: the file is not valid; there is one line for each fault.
        OSError: it cannot be read.
    """
    faults = Faults(path)
    content = _read_json(path)
    left_out = [
        name
        for name in ("users", "permissions", "topic_permissions", "policies", "parameters")
        if content.get(name)
    ]
    for where, queue in _tables(faults, "", content, "queues"):
        name, arguments = _name(faults, where, queue, "name"), _member(faults, where, queue, "arguments", {})
        _try(faults, where, rabbit.declare_queue, name, arguments)
    for where, exchange in _tables(faults, "", content, "exchanges"):
        name, arguments = (
            _name(faults, where, exchange, "name"),
            _member(faults, where, exchange, "arguments", {}),
        )
        kind = exchange.get("type", "direct")
        _try(faults, where, rabbit.declare_exchange, name, kind, arguments)
    for where, binding in _tables(faults, "", content, "bindings"):
        if binding.get("destination_type", "queue") != "queue":
            left_out.append(f"{where}, to an exchange")
            continue
        parts = [binding.get(each, "") for each in _BINDING]
        wrong = [
            at
            for at, each in zip(_BINDING, parts, strict=True)
            if not faults.typed(f"{where}.{at}", each, str)
        ]
        if not wrong:
            arguments = _member(faults, where, binding, "arguments", {})
            _try(faults, where, rabbit.bind, *parts, arguments)
    hosts = {each.get("vhost", "/") for _, each in _tables(faults, "", content, "queues")} - {"/"}
    if hosts:
        left_out.append(f"the virtual hosts {', '.join(sorted(map(str, hosts)))}: there is only one")
    faults.check()
    return left_out


# -- JSON -----------------------------------------------------------------------------------


def _read_json(path: str) -> dict[str, Any]:
    text = read_text(path)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as wrong:
        raise CommandError(f"{path} is not JSON: {wrong}", 2) from None
    except (RecursionError, ValueError) as wrong:
        raise CommandError(f"{path} is not JSON that can be read: {type(wrong).__name__}", 2) from None
    if not isinstance(found, dict):
        raise CommandError(f"{path}: expected a JSON object", 2)
    return cast("dict[str, Any]", found)


def _member(
    faults: Faults, place: str, table: dict[str, Any], key: str, default: dict[str, Any] | None = None
) -> dict[str, Any]:
    where = f"{place}.{key}" if place else key
    found = table.get(key)
    if found is None and default is not None:
        return default
    if found is None:
        faults.add(where, "is missing")
        return {}
    return found if faults.typed(where, found, dict) else {}


def _tables(
    faults: Faults, place: str, table: dict[str, Any], key: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    where = f"{place}.{key}" if place else key
    found = table.get(key)
    if found is not None and faults.typed(where, found, list):
        for number, each in enumerate(found):
            if faults.typed(f"{where}[{number}]", each, dict):
                yield f"{where}[{number}]", each


def _name(faults: Faults, place: str, table: dict[str, Any], key: str = "Name") -> str:
    name = table.get(key)
    if name is None or not faults.typed(f"{place}.{key}", name, str):
        if name is None:
            faults.add(f"{place}.{key}", "is missing")
        return ""
    return str(name)


def _try(faults: Faults, place: str, make: Callable[..., object], *given: Any, **options: Any) -> bool:
    """Call ``make``; what it refuses is a fault."""
    try:
        make(*given, **options)
    except LocalProtocolError as wrong:
        faults.add(place, str(wrong))
    except RefusedError as refused:
        faults.add(place, str(refused.description))
    else:
        return True
    return False
