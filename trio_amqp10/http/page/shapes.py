"""Statuses of management as objects of JSON for the page, under their own names.

Knows statuses; knows no request.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.broker.nodes.policy import QUEUE_RULES
from trio_amqp10.container.management.status import QueueStatus
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.short_strings import to_text

if TYPE_CHECKING:
    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.container.management import LinkStatus, MessageStatus

_EXACT: Final = 2**53
"""Numbers up to this one are exact in a browser."""
_DEEPEST: Final = 32
_PROPERTIES: Final = (
    "message_id",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "absolute_expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
    "durable",
    "priority",
    "ttl",
    "delivery_count",
)


def plain(value: object, depth: int = 0) -> Any:
    """Return any value of a message as types of JSON; what JSON lacks becomes text."""
    if depth > _DEEPEST:
        return "..."
    match value:
        case None | bool():
            return value
        case int():
            return int(value) if -_EXACT < value < _EXACT else str(int(value))
        case float():
            return float(value) if value - value == 0 else repr(float(value))
        case str():
            return to_text(value)
        case bytes() | bytearray() | memoryview():
            return "0x" + bytes(cast("bytes", value)).hex()
        case datetime():
            return value.isoformat()
        case Mapping():
            members = cast("Mapping[object, object]", value)
            return {str(plain(key, _DEEPEST)): plain(each, depth + 1) for key, each in members.items()}
        case Sequence():
            return [plain(each, depth + 1) for each in cast("Sequence[object]", value)]
        case _:
            return str(value)


def _shown(cls: Any, *left_out: str) -> tuple[str, ...]:
    skipped = {"figures", "virtual_host", *left_out}
    return tuple(each.name for each in fields(cls) if each.name not in skipped)


FIELDS_OF_QUEUES: Final = _shown(QueueStatus, "rules", "arguments")
"""The fields of a queue that are shown in lists."""


def status(found: Any, *left_out: str) -> dict[str, Any]:
    """Return the fields of a status, without ``figures`` and those that are left out."""
    return {name: plain(getattr(found, name)) for name in _shown(found, *left_out)}


def queue(found: QueueStatus) -> dict[str, Any]:
    """Return a queue."""
    return {name: plain(getattr(found, name)) for name in FIELDS_OF_QUEUES}


def rules(found: QueueStatus) -> dict[str, Any]:
    """Return the rules of a queue that are not those of a new one."""
    values = {rule.option: (getattr(found.rules, rule.name, None), rule.default) for rule in QUEUE_RULES}
    return {name: plain(value) for name, (value, default) in values.items() if value != default}


def link(found: LinkStatus) -> dict[str, Any]:
    """Return a link."""
    return status(found)


def message(found: MessageStatus, most: int) -> dict[str, Any]:
    """Return a message that was looked at.

    Args:
        found: the message.
        most: octets of its body at most.
    """
    shown: dict[str, Any] = {
        "age": found.age,
        "deaths": [_death(each) for each in found.content.deaths],
        "died_in": plain(found.died_in),
        "expires": found.expires,
        "failures": found.failures,
        "octets": found.octets,
        "place": found.place,
        "priority": found.priority,
        "redelivered": found.redelivered,
    }
    try:
        return shown | _sections(found.message, most)
    except RemoteProtocolError as wrong:  # A container that is not strict holds what a peer sends.
        sections: dict[str, Any] = {"annotations": {}, "application_properties": {}, "properties": {}}
        return shown | sections | _octets(found.content.octets, most) | {"fault": str(wrong)}


def _sections(given: Message, most: int) -> dict[str, Any]:
    body: Any = given.body
    return {
        "annotations": plain(given.annotations),
        "application_properties": plain(given.application_properties),
        "properties": {
            name: plain(value) for name in _PROPERTIES if (value := getattr(given, name)) not in (None, False)
        },
        **(_octets(body, most) if isinstance(body, bytes) else {"value": plain(body)}),
    }


def _octets(body: bytes, most: int) -> dict[str, Any]:
    return {"body": base64.b64encode(body[:most]).decode(), "body_octets": len(body)}


def _death(found: Any) -> dict[str, Any]:
    names = ("queue", "reason", "count", "time", "last_time", "exchange", "routing_keys")
    return {name: plain(getattr(found, name, None)) for name in names}
