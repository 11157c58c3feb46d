"""Messages of 0-9-1 as messages of AMQP 1.0, and back, by the rules that RabbitMQ 4 has published.

What has a place on both sides keeps its type. Left out are: decimals, and of 1.0 uuids and characters in maps; arrays and
tables among headers that are no ``x-`` headers; ``to``, ``subject``, ``absolute-expiry-time``, group sequences, delivery
annotations and footers.

Knows both kinds of message; knows no node.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp091.content import BasicProperties
from trio_amqp10.amqp091.fields import USUAL
from trio_amqp10.amqp091.values import (
    Float32,
    Int8,
    Int16,
    Int64,
    LongString,
    UInt8,
    UInt16,
    UInt32,
)
from trio_amqp10.amqp091.values import Timestamp as Seconds
from trio_amqp10.errors import AmqpError, LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Data, Message, encode_around
from trio_amqp10.wire.values import (
    Byte,
    Char,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    UShort,
)

from .content import Published, items_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.container.nodes.content import Content

__all__ = ["to_message", "to_published"]

_SECTIONS: Final = "amqp-1.0"
"""The ``type`` of a message whose body is sections of AMQP 1.0."""

_URN: Final = "urn:uuid:"
_EXCHANGE: Final = "x-exchange"
_KEY: Final = "x-routing-key"
_TYPE: Final = "x-basic-type"
_COPIES: Final = "x-cc"
_OWN: Final = frozenset({_EXCHANGE, _KEY, _TYPE, _COPIES, "x-death", "x-opt-deaths"})
_SHORT: Final = 255
_PERSISTENT, _TRANSIENT = 2, 1
_DEFAULT_PRIORITY: Final = 4
_MOST_PRIORITY: Final = 255
_LEFT_OUT: Final = object()

_TO_WIRE: Final[dict[type, type]] = {
    Int8: Byte,
    UInt8: UByte,
    Int16: Short,
    UInt16: UShort,
    UInt32: UInt,
    Int64: int,
    Float32: Float,
}
_FROM_WIRE: Final[dict[type, type]] = {
    Byte: Int8,
    UByte: UInt8,
    Short: Int16,
    UShort: UInt16,
    UInt: UInt32,
    Float: Float32,
}


# -- to 1.0 ---------------------------------------------------------------------------------


def to_message(content: Published) -> Message:
    """The message of AMQP 1.0 that a message of 0-9-1 amounts to."""
    own = content.properties
    annotations: dict[Any, Any] = {_EXCHANGE: content.exchange, _KEY: content.routing_key}
    application: dict[str, Any] = {}
    for name, value in content.headers.items():
        made = _to_wire(value)
        if made is _LEFT_OUT:
            continue
        if name == "CC":
            annotations[_COPIES] = made
        elif name.startswith("x-"):
            annotations[name] = made
        elif not isinstance(made, (list, dict)):
            application[name] = made
    sections = own.type == _SECTIONS and _are_sections(content.body)
    if own.type is not None and not sections:
        annotations[_TYPE] = own.type
    message = Message(
        None if sections else content.body,
        durable=own.delivery_mode == _PERSISTENT,
        priority=own.priority,
        ttl=content.terms.ttl,
        first_acquirer=not content.redelivered,
        delivery_count=content.failures or None,
        message_id=_identifier(own.message_id),
        correlation_id=_identifier(own.correlation_id),
        user_id=None if own.user_id is None else _octets(own.user_id),
        reply_to=own.reply_to,
        content_type=_ascii(own.content_type),
        content_encoding=_ascii(own.content_encoding),
        creation_time=None if own.timestamp is None else _milliseconds(own.timestamp),
        group_id=own.app_id,
        annotations=annotations,
        application_properties=application,
    )
    if sections:
        before, after = encode_around(message)
        return Message.from_payload(before + content.body + after)
    return message


def _are_sections(body: bytes) -> bool:
    try:
        return bool(Message.from_payload(body).sections)
    except AmqpError:
        return False


def _identifier(text: str | None) -> str | uuid.UUID | None:
    if text is not None and text.startswith(_URN):
        with suppress(ValueError):
            return uuid.UUID(text.removeprefix(_URN))
    return text


def _octets(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _ascii(text: str | None) -> str | None:
    """A symbol is ASCII (1.6.21)."""
    return text if text is None or text.isascii() else None


def _milliseconds(when: datetime | int) -> int:
    return (int(when.timestamp()) if isinstance(when, datetime) else int(when)) * 1000


def _class(value: object) -> type:
    return value.__class__


def _to_wire(value: Any) -> Any:
    if isinstance(value, Decimal):
        return _LEFT_OUT
    if isinstance(value, (Seconds, datetime)):
        return Timestamp(_milliseconds(value))
    made = _TO_WIRE.get(_class(value))
    if made is not None:
        return made(value)
    if type(value) is int:
        return Int(value)
    items: list[Any]
    if _class(value) is list:
        items = [_to_wire(each) for each in items_of(value)]
        return [each for each in items if each is not _LEFT_OUT]
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        pairs = {Symbol(name) if name.isascii() else name: _to_wire(each) for name, each in table.items()}
        return {name: each for name, each in pairs.items() if each is not _LEFT_OUT}
    return bytes(value) if isinstance(value, LongString) else value


# -- to 0-9-1 -------------------------------------------------------------------------------


def to_published(content: Content, key: str) -> Published:
    """What a consumer of 0-9-1 gets of any content.

    Args:
        content: in any form.
        key: the routing key of a message that names none: the name of its queue.
    """
    if isinstance(content, Published):
        return content
    message: Message = content.as_message()
    try:
        return _published(message, key)
    except (
        RemoteProtocolError,
        LocalProtocolError,
    ):  # its octets, as the body of a message without properties
        return Published("", key, b"\0\0", content.octets)


def _published(message: Message, key: str) -> Published:
    annotations = {str(name): value for name, value in message.annotations.items()}
    headers: dict[str, Any] = {}
    for name, value in annotations.items():
        if name.startswith("x-") and name not in _OWN and not name.startswith("x-basic-"):
            _add(headers, name, value)
    for name, value in message.application_properties.items():
        _add(headers, name, value)
    if isinstance(annotations.get(_COPIES), list):
        _add(headers, "CC", annotations[_COPIES])
    if "x-opt-deaths" in annotations:
        _add(headers, "x-death", annotations["x-opt-deaths"])
    kind, body = _body_of(message)
    properties = BasicProperties(
        content_type=_short(message.content_type),
        content_encoding=_short(message.content_encoding),
        delivery_mode=_PERSISTENT if message.durable else _TRANSIENT,
        priority=None if message.priority == _DEFAULT_PRIORITY else min(message.priority, _MOST_PRIORITY),
        correlation_id=_text_of(message.correlation_id, "x-correlation-id", headers),
        reply_to=_short(_name_of(message.reply_to)),
        expiration=None if message.ttl is None else str(int(message.ttl)),
        message_id=_text_of(message.message_id, "x-message-id", headers),
        timestamp=_seconds(message.creation_time),
        type=kind or _short(annotations.get(_TYPE)),
        user_id=_user(message.user_id),
        app_id=_short(message.group_id),
    )
    properties.headers = headers or None
    exchange, routing_key = _short(annotations.get(_EXCHANGE)), _short(annotations.get(_KEY))
    return Published(
        exchange or "",
        key if routing_key is None else routing_key,
        _encoded(properties),
        body,
        properties,
        redelivered=not message.first_acquirer,
        failures=message.delivery_count,
    )


def _encoded(properties: BasicProperties) -> bytes:
    """Their octets; without a property that no octets can be made of."""
    try:
        return properties.encode(USUAL)
    except LocalProtocolError:
        for field in fields(properties):
            try:
                BasicProperties(**{field.name: getattr(properties, field.name)}).encode(USUAL)
            except LocalProtocolError:
                setattr(properties, field.name, None)
        return properties.encode(USUAL)


def _add(headers: dict[str, Any], name: str, value: Any) -> None:
    made = _from_wire(value)
    if made is not _LEFT_OUT and _short(name) is not None:
        headers[name] = made


def _short(text: Any) -> str | None:
    """A short string; None for what is none."""
    if not isinstance(text, str) or "\0" in text or len(_octets(text)) > _SHORT:
        return None
    return str(text)


def _name_of(address: str | None) -> str | None:
    """The queue that an address of RabbitMQ names; any other address as it is."""
    return None if address is None else address.removeprefix("/queues/")


def _text_of(value: Any, header: str, headers: dict[str, Any]) -> str | None:
    """A message-id or correlation-id; what is no short string goes into a header."""
    if isinstance(value, uuid.UUID):
        return f"{_URN}{value}"
    if isinstance(value, int):
        return str(int(value))
    short = _short(value)
    if short is None and value is not None:
        headers[header] = bytes(value) if isinstance(value, (bytes, bytearray)) else str(value)
    return short


def _user(user_id: Any) -> str | None:
    try:
        return None if user_id is None else _short(bytes(user_id).decode())
    except UnicodeDecodeError:
        return None


def _seconds(when: Any) -> datetime | Seconds | None:
    return None if when is None else _time(when)


def _time(when: Any) -> datetime | Seconds | None:
    seconds = int(when.timestamp()) if isinstance(when, datetime) else int(when) // 1000
    if seconds < 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return Seconds(seconds)


def _body_of(message: Message) -> tuple[str | None, bytes]:
    """The ``type`` that the body asks for, and its octets: data as it is, any other sections encoded."""
    sections = message.sections
    if all(isinstance(each, Data) for each in sections):
        return None, b"".join(chunk for each in sections if isinstance(each, Data) for chunk in each.chunks)
    return _SECTIONS, b"".join(Message(each).to_payload() for each in sections)


def _from_wire(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (uuid.UUID, Char, Described, Decimal)):
        return _LEFT_OUT
    if isinstance(value, (Timestamp, datetime)):
        made = _time(value)
        return _LEFT_OUT if made is None else made
    kind = _FROM_WIRE.get(_class(value))
    if kind is not None:
        return kind(value)
    if isinstance(value, int):
        if value >= 1 << 63:
            return str(int(value))
        return int(value) if isinstance(value, Int) else Int64(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, (list, tuple)):
        items = [_from_wire(each) for each in cast("Sequence[Any]", value)]
        return [each for each in items if each is not _LEFT_OUT]
    if hasattr(value, "items"):
        pairs: Mapping[Any, Any] = value
        table: dict[str, Any] = {}
        for name, each in pairs.items():
            _add(table, str(name), each)
        return table
    return _LEFT_OUT
