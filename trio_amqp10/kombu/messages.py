"""Messages of kombu as messages of AMQP 1.0, and back.

==================================  ==============================================================================
kombu                               AMQP 1.0
==================================  ==============================================================================
body                                one data section
headers                             application-properties; those that are lists or maps as JSON in the
                                    message-annotation ``x-kombu``
content_type, content_encoding,     the properties of the same names
message_id, correlation_id,
reply_to
type                                subject
priority, delivery_mode             the header: ``priority``, and ``durable`` for 2
expiration, in milliseconds         the header: ``ttl``
other properties                    as JSON in ``x-kombu``
exchange, routing key               the message-annotations ``x-exchange`` and ``x-routing-key``, as RabbitMQ sets them
==================================  ==============================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kombu.transport import base
from kombu.utils.json import dumps, loads

from trio_amqp10.amqp10.message import Message as AmqpMessage

if TYPE_CHECKING:
    from collections.abc import Mapping

_OTHERS: Final = "x-kombu"
_EXCHANGE: Final = "x-exchange"
_KEY: Final = "x-routing-key"
_SIMPLE: Final = frozenset((str, bool, float, bytes, type(None)))
_LARGEST: Final = 2**63
_SAME: Final = ("message_id", "correlation_id", "reply_to")
_MILLISECONDS: Final = 2**32
_NOT_SENT: Final = frozenset(("delivery_info", "delivery_tag", "body_encoding"))
"""Properties that kombu uses itself."""


class KombuMessage(base.Message):
    """A message that a channel has received."""


def is_persistent(raw: Mapping[str, Any]) -> bool:
    """Whether a message must survive a restart of the peer; kombu's default is yes."""
    return bool(raw["properties"].get("delivery_mode", 2) == 2)


def from_kombu(raw: Mapping[str, Any], exchange: str, routing_key: str) -> AmqpMessage:
    """Return a message of ``Channel.prepare_message`` for AMQP 1.0.

    Raises:
        ValueError: a property has a value that no message can carry.
    """
    headers, other_headers = _divided(raw["headers"])
    given = {name: value for name, value in raw["properties"].items() if name not in _NOT_SENT}
    fields: dict[str, Any] = {name: _text(given.pop(name)) for name in _SAME if given.get(name) is not None}
    if given.get("type") is not None:
        fields["subject"] = str(given.pop("type"))
    if given.get("expiration") is not None:
        fields["ttl"] = _milliseconds(given.pop("expiration"))
    if given.get("priority") is not None:
        fields["priority"] = max(0, min(int(given.pop("priority")), 255))
    given.pop("delivery_mode", None)
    annotations: dict[str, Any] = {_EXCHANGE: exchange, _KEY: routing_key}
    others = {"headers": other_headers, "properties": {k: v for k, v in given.items() if v is not None}}
    if any(others.values()):
        annotations[_OTHERS] = dumps({name: values for name, values in others.items() if values})
    body = raw["body"]
    return AmqpMessage(
        body.encode() if isinstance(body, str) else bytes(body or b""),
        durable=is_persistent(raw),
        first_acquirer=True,
        content_type=raw["content-type"],
        content_encoding=raw["content-encoding"],
        application_properties=headers,
        annotations=annotations,
        **fields,
    )


def _divided(headers: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the headers that application-properties can have, and the others (3.2.5)."""
    simple: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, value in headers.items():
        kind = value.__class__
        fits = kind in _SIMPLE or (kind is int and -_LARGEST <= value < _LARGEST)
        (simple if fits and isinstance(name, str) else others)[name] = value
    return simple, others


def _text(value: Any) -> Any:
    return value if isinstance(value, str | bytes | int) else str(value)


def _milliseconds(expiration: Any) -> int:
    try:
        ttl = int(expiration)
    except (TypeError, ValueError):
        ttl = -1
    if ttl < 0:
        raise ValueError(f"expiration={expiration!r}: expected milliseconds, 0 or more")
    return min(ttl, _MILLISECONDS - 1)


def to_kombu(
    received: AmqpMessage,
    channel: Any,
    tag: int,
    consumer_tag: str | None,
    queue: str,
    *,
    marks_first: bool = True,
) -> KombuMessage:
    """Return a received message for kombu.

    Args:
        received: the message.
        channel: the channel of kombu that has received it.
        tag: its delivery tag on that channel.
        consumer_tag: the consumer; None for ``basic_get``.
        queue: the queue, which is the routing key if the message does not have one.
        marks_first: whether the peer keeps ``first-acquirer``; otherwise ``delivery-count`` alone counts.
    """
    annotations = received.annotations
    others: dict[str, Any] = loads(annotations[_OTHERS]) if _OTHERS in annotations else {}
    headers = {str(name): value for name, value in received.application_properties.items()}
    headers.update(others.get("headers", {}))
    priority = int(received.priority)
    properties: dict[str, Any] = {"delivery_mode": 2 if received.durable else 1, "priority": priority}
    for name in _SAME:
        value = getattr(received, name)
        if value is not None:
            properties[name] = value
    if received.subject is not None:
        properties["type"] = received.subject
    properties.update(others.get("properties", {}))
    info: dict[str, Any] = {
        "exchange": annotations.get(_EXCHANGE, ""),
        "routing_key": annotations.get(_KEY, queue),
        "priority": priority,
        "redelivered": bool(received.delivery_count) or (marks_first and not received.first_acquirer),
    }
    if consumer_tag is not None:
        info["consumer_tag"] = consumer_tag
    return KombuMessage(
        received.body,
        channel=channel,
        delivery_tag=tag,
        content_type=_plain(received.content_type),
        content_encoding=_plain(received.content_encoding),
        headers=headers,
        properties=properties,
        delivery_info=info,
        postencode="utf-8",
    )


def _plain(symbol: str | None) -> str | None:
    return None if symbol is None else str(symbol)
