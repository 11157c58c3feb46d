"""A message of AMQP 0-9-1 as one of AMQP 1.0, and back, by the rules that RabbitMQ 4 publishes.

===============================  =====================================================================
0-9-1                            1.0
===============================  =====================================================================
delivery-mode, priority          header: durable (2 is true), priority (absent: 4, and the other way round)
expiration                       header: ttl
message-id, correlation-id       the same, text; ``urn:uuid:...`` is a uuid
user-id                          the same, octets
reply-to                         the same; a container may write another address
content-type, content-encoding   the same, symbols; left out where they are not ASCII
timestamp                        creation-time, in milliseconds
app-id                           group-id
type                             annotation ``x-basic-type``
exchange, routing key            annotations ``x-exchange``, ``x-routing-key``
header ``CC``                    annotation ``x-cc``
headers ``x-...``                annotations; names that are not ASCII are left out
other headers                    application-properties, but for arrays and tables, which are left out
body                             one data section; with the type ``amqp-1.0``, sections as they are
cluster-id, decimals             left out
===============================  =====================================================================

Back the same, and: message ids that are no short string become headers, ``x-message-id`` and ``x-correlation-id``;
``x-opt-rabbitmq-received-time`` is the header ``timestamp_in_ms``, ``x-opt-deaths`` is ``x-death``; uuids, chars and
decimals in maps, names of more than 255 octets, other annotations and the other fields of 1.0 are left out.

Knows values (``values``) and messages; knows no channel and no link.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trio_amqp10._sections import BODY, HEADER, Data, read_section, scan
from trio_amqp10.amqp091.content import BasicProperties
from trio_amqp10.amqp091.fields import from_seconds, to_seconds
from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.message import Message, encode_around
from trio_amqp10.wire.values import Symbol, Timestamp

from .values import LEFT_OUT, from_standard, is_short, to_standard, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Publication", "to_publication", "to_sections"]

_SECTIONS: Final = "amqp-1.0"
"""The type of a message whose body is sections of AMQP 1.0."""

_PERSISTENT: Final = 2
_TRANSIENT: Final = 1
_MOST_TTL: Final = 2**32 - 1
_URN: Final = "urn:uuid:"

_TYPE: Final = "x-basic-type"
_EXCHANGE: Final = "x-exchange"
_KEY: Final = "x-routing-key"
_CC: Final = "x-cc"
_RENAMED: Final = {
    _CC: "CC",
    "x-opt-rabbitmq-received-time": "timestamp_in_ms",
    "x-opt-deaths": "x-death",
}
"""Annotations that are headers of another name."""
_OWN: Final = frozenset({_EXCHANGE, _KEY, "x-death"})
"""Annotations that are no headers."""


class Publication(NamedTuple):
    """A message as 0-9-1 delivers it.

    Attributes:
        properties: of the content.
        body: the octets.
        exchange, routing_key: that it was published with; None if it does not say so.
    """

    properties: BasicProperties
    body: bytes
    exchange: str | None
    routing_key: str | None


# To AMQP 1.0 ------------------------------------------------------------------------------------


def to_sections(
    properties: BasicProperties,
    body: bytes,
    *,
    exchange: str,
    routing_key: str,
    failures: int = 0,
    redelivered: bool = False,
    reply_to: Callable[[str], str] = str,
) -> bytes:
    """The payload of AMQP 1.0 for a message of 0-9-1.

    Args:
        properties, body: the content.
        exchange, routing_key: that it was published with.
        failures: failed attempts to deliver it.
        redelivered: whether a peer may have had it before.
        reply_to: gives the address for the name of a queue.
    """
    annotations, application = _headers(properties.headers or {})
    annotations[_EXCHANGE] = to_text(exchange)
    annotations[_KEY] = to_text(routing_key)
    is_sections = properties.type == _SECTIONS and _are_body_sections(body)
    if properties.type is not None and not is_sections:
        annotations[_TYPE] = to_text(properties.type)
    message = Message(
        durable=properties.delivery_mode == _PERSISTENT,
        priority=properties.priority,
        ttl=_ttl(properties.expiration),
        first_acquirer=not redelivered,
        delivery_count=failures or None,
        message_id=_standard_id(properties.message_id),
        correlation_id=_standard_id(properties.correlation_id),
        user_id=None if properties.user_id is None else properties.user_id.encode("utf-8", "surrogateescape"),
        reply_to=None if properties.reply_to is None else reply_to(to_text(properties.reply_to)),
        content_type=_symbol(properties.content_type),
        content_encoding=_symbol(properties.content_encoding),
        creation_time=_creation_time(properties.timestamp),
        group_id=None if properties.app_id is None else to_text(properties.app_id),
        application_properties=application,
        annotations={Symbol(name): value for name, value in annotations.items()},
    )
    head, _ = encode_around(message)
    return head + (body if is_sections else Message(Data(body)).to_payload())


def _headers(headers: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Annotations and application-properties."""
    annotations: dict[str, Any] = {}
    application: dict[str, Any] = {}
    for name, value in headers.items():
        now = to_standard(value)
        if now is LEFT_OUT:
            continue
        if name == "CC":
            annotations[_CC] = now
        elif name.startswith("x-"):
            if name.isascii():
                annotations[name] = now
        elif not isinstance(now, (list, dict)):
            application[to_text(name)] = now
    return annotations, application


def _are_body_sections(octets: bytes) -> bool:
    """Whether these are sections of a body, and nothing else, that can be read."""
    try:
        message = Message.from_payload(octets)
        return bool(message.sections) and scan(octets)[BODY] == (0, len(octets))
    except RemoteProtocolError:
        return False


def _ttl(expiration: str | None) -> int | None:
    """Milliseconds; None for text that is no number."""
    if expiration is None or not (expiration.isascii() and expiration.isdigit()):
        return None
    return min(int(expiration[:20]), _MOST_TTL)


def _standard_id(text: str | None) -> str | uuid.UUID | None:
    if text is None:
        return None
    if text.startswith(_URN):
        try:
            found = uuid.UUID(text.removeprefix(_URN))
        except ValueError:
            return to_text(text)
        if found.urn == text:
            return found
    return to_text(text)


def _symbol(text: str | None) -> Symbol | None:
    return Symbol(text) if text is not None and text.isascii() else None


def _creation_time(timestamp: Any) -> Timestamp | None:
    if timestamp is None:
        return None
    milliseconds = to_seconds(timestamp) * 1000
    return Timestamp(milliseconds) if milliseconds <= Timestamp.MAX else None


# To AMQP 0-9-1 ----------------------------------------------------------------------------------


def to_publication(
    message: Message, *, durable: bool = False, reply_to: Callable[[str], str] = str
) -> Publication:
    """The message of 0-9-1 for one of AMQP 1.0.

    Args:
        message: as it was received or made.
        durable: what a message that does not say so is.
        reply_to: gives the name of a queue for an address.

    Raises:
        RemoteProtocolError: its sections cannot be read.
        LocalProtocolError: it was made here, and cannot be encoded.
    """
    payload = message.to_payload()
    message = Message.from_payload(payload)
    annotations = {str(name): value for name, value in message.annotations.items() if isinstance(name, str)}
    headers = _annotated_headers(annotations)
    for name, value in message.application_properties.items():
        _put(headers, name, value)
    is_data, body = _body(message, payload)
    says_durable, priority = _header(payload)
    address = message.reply_to
    properties = BasicProperties(
        content_type=_short(message.content_type),
        content_encoding=_short(message.content_encoding),
        delivery_mode=_PERSISTENT if (durable if says_durable is None else says_durable) else _TRANSIENT,
        priority=priority,
        correlation_id=_id(message.correlation_id, headers, "x-correlation-id"),
        reply_to=None if address is None else _short(reply_to(address)),
        expiration=None if message.ttl is None else str(message.ttl),
        message_id=_id(message.message_id, headers, "x-message-id"),
        timestamp=_seconds(message.creation_time),
        type=_short(annotations.get(_TYPE)) if is_data else _SECTIONS,
        user_id=_user(message.user_id),
        app_id=_short(message.group_id),
    )
    properties.headers = headers or None
    return Publication(properties, body, _short(annotations.get(_EXCHANGE)), _short(annotations.get(_KEY)))


def _header(payload: bytes) -> tuple[bool | None, int | None]:
    """``durable`` and ``priority``, where the header says so (3.2.1)."""
    span = scan(payload)[HEADER]
    if span is None:
        return None, None
    durable, priority, *_ = read_section(HEADER, payload, span)
    return durable, None if priority is None else int(priority)


def _annotated_headers(annotations: Mapping[str, Any]) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    for name, value in annotations.items():
        if name in _RENAMED:
            _put(headers, _RENAMED[name], int(value) if isinstance(value, Timestamp) else value)
        elif name.startswith("x-") and name not in _OWN and not name.startswith(("x-basic-", "x-opt-")):
            _put(headers, name, value)
    return headers


def _put(headers: dict[str, Any], name: Any, value: Any) -> None:
    now = from_standard(value)
    if now is not LEFT_OUT and is_short(name):
        headers[str(name)] = now


def _body(message: Message, payload: bytes) -> tuple[bool, bytes]:
    """Whether the body is data, and its octets: else those of its sections."""
    sections = message.sections
    if all(isinstance(each, Data) for each in sections):
        return True, b"".join(chunk for each in sections if isinstance(each, Data) for chunk in each.chunks)
    span = scan(payload)[BODY]
    assert span is not None
    return False, payload[span[0] : span[1]]


def _id(value: Any, headers: dict[str, Any], name: str) -> str | None:
    """The id as a short string; any other becomes a header of this name."""
    if isinstance(value, uuid.UUID):
        return value.urn
    if isinstance(value, int):
        return str(int(value))
    if value is None or is_short(value):
        return value  # type: ignore[no-any-return]
    headers[name] = value
    return None


def _short(text: Any) -> str | None:
    return str(text) if is_short(text) else None


def _user(octets: bytes | None) -> str | None:
    return None if octets is None else _short(octets.decode("utf-8", "surrogateescape"))


def _seconds(time: Timestamp | None) -> Any:
    return None if time is None or time < 0 else from_seconds(int(time) // 1000)
