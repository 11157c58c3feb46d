"""Translation between messages of AMQP 0-9-1 and of AMQP 1.0, as RabbitMQ 4 does.

===============================  =====================================================================
0-9-1                            1.0
===============================  =====================================================================
delivery-mode, priority          header: durable (2 is true), priority (absent if it is absent)
expiration                       header: ttl
message-id, correlation-id       the same, text; ``urn:uuid:...`` is a uuid
user-id                          the same, octets
reply-to                         the same; a container may write another address
content-type, content-encoding   the same, symbols; omitted if they are not ASCII
timestamp                        creation-time, in milliseconds
app-id                           group-id
type                             annotation ``x-basic-type``
exchange, routing key            annotations ``x-exchange``, ``x-routing-key``
header ``CC``                    annotation ``x-cc``
header ``x-death``               annotation ``x-opt-deaths``, by ``death_translation``
headers ``x-...``                annotations; names that are not ASCII are omitted
other headers                    application-properties, without arrays and tables, which are omitted
body                             one data section; with the type ``amqp-1.0``, its sections. To 0-9-1,
                                 on request a text or a binary value becomes its octets
cluster-id, decimals             omitted
===============================  =====================================================================

The translation to 0-9-1 is the reverse, with these additions: message ids that are not short strings become the
headers ``x-message-id`` and ``x-correlation-id``; ``x-opt-rabbitmq-received-time`` becomes the header
``timestamp_in_ms``; uuids, chars and decimals in maps, names of more than 255 octets, other annotations and the
other fields of 1.0 are omitted.
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.fields import from_seconds, to_seconds
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.section_writers import SECTION_WRITERS, write_body
from trio_amqp10.amqp10.message.sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    BODY,
    HEADER,
    PROPERTIES,
    Data,
    Value,
    read_section,
    scan,
)
from trio_amqp10.amqp10.spec.messaging import Header
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.encode import encode, write_value
from trio_amqp10.amqp10.wire.values import Described, Symbol, Timestamp, UByte, UInt
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.short_strings import is_short, to_text

from .death_translation import deaths_from_standard, deaths_to_standard
from .headers_shortcut import ANNOTATIONS_PREFIX, APPLICATION_PROPERTIES_PREFIX, header_octets, map_section
from .value_translation import LEFT_OUT, from_standard, to_standard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_USUAL: Final = frozenset({str, bool, float, bytes, type(None)})
"""Classes of values that both sides share."""

_SECTIONS: Final = "amqp-1.0"
"""The type of a message whose body consists of sections of AMQP 1.0."""

_write_properties: Final = SECTION_WRITERS[PROPERTIES]
_write_annotations: Final = SECTION_WRITERS[ANNOTATIONS]
_write_application_properties: Final = SECTION_WRITERS[APPLICATION_PROPERTIES]

_PERSISTENT: Final = 2
_TRANSIENT: Final = 1
_MOST_TTL: Final = 2**32 - 1
_MOST_PRIORITY: Final = 255
_HEADER_CODE: Final = plan_of(Header).code
_URN: Final = "urn:uuid:"
_TEXT: Final = "text/plain; charset=utf-8"

_TYPE: Final = Symbol("x-basic-type")
_EXCHANGE: Final = Symbol("x-exchange")
_KEY: Final = Symbol("x-routing-key")
_CC: Final = "x-cc"
_DEATH: Final = "x-death"
_DEATHS: Final = "x-opt-deaths"
_RENAMED: Final = {_CC: "CC", "x-opt-rabbitmq-received-time": "timestamp_in_ms", _DEATHS: _DEATH}
"""Annotations that become headers of another name."""
_OWN: Final = frozenset({_EXCHANGE, _KEY, _DEATH})
"""Annotations that do not become headers."""


class Publication(NamedTuple):
    """A message as 0-9-1 delivers it.

    Attributes:
        properties: the properties of the content.
        body: the octets.
        exchange, routing_key: those of the publish; None if the message does not have them.
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
    """Return the AMQP 1.0 payload of a message of 0-9-1.

    Args:
        properties, body: the content.
        exchange, routing_key: those of the publish.
        failures: failed attempts to deliver it.
        redelivered: whether it may have been delivered before.
        reply_to: translates the name of a queue to an address.
    """
    headers = properties.headers
    usual = header_octets(headers) if headers else None
    annotations, application = _headers(headers) if headers and usual is None else ({}, None)
    kind = properties.type
    is_sections = kind == _SECTIONS and _are_body_sections(body)
    if is_sections:
        kind = None
    out = bytearray(
        _header_octets(
            properties.delivery_mode == _PERSISTENT,
            properties.priority,
            None if properties.expiration is None else _ttl(properties.expiration),
            not redelivered,
            failures or None,
        )
    )
    if usual is not None and usual.annotated:
        place, count = _place_pairs(exchange, routing_key, kind)
        map_section(out, ANNOTATIONS_PREFIX, [*usual.annotations, place], usual.annotated + count)
    elif annotations:
        named: dict[Symbol, Any] = {Symbol(name): value for name, value in annotations.items()}
        _annotate(named, exchange, routing_key, kind)
        _write_annotations(out, named)
    else:
        out += _place_octets(exchange, routing_key, kind)
    # A property that is absent costs no call: most messages have few.
    ident, correlation, user, answer, app = (
        properties.message_id,
        properties.correlation_id,
        properties.user_id,
        properties.reply_to,
        properties.app_id,
    )
    media, coding, timestamp = properties.content_type, properties.content_encoding, properties.timestamp
    _write_properties(
        out,
        [
            None if ident is None else _standard_id(ident),
            None if user is None else user.encode("utf-8", "surrogateescape"),
            None,  # to
            None,  # subject
            None if answer is None else reply_to(to_text(answer)),
            None if correlation is None else _standard_id(correlation),
            None if media is None else _symbol(media),
            None if coding is None else _symbol(coding),
            None,  # absolute-expiry-time
            None if timestamp is None else _creation_time(timestamp),
            None if app is None else to_text(app),
        ],
    )
    if usual is not None:
        map_section(out, APPLICATION_PROPERTIES_PREFIX, usual.properties, usual.named)
    elif application:
        _write_application_properties(out, application)
    if is_sections:
        out += body
    else:
        write_body(out, body)
    return bytes(out)


@lru_cache(256, typed=True)
def _header_octets(
    durable: bool, priority: Any, ttl: int | None, first_acquirer: bool, delivery_count: int | None
) -> bytes:
    """Encode the header section (3.2.1); cached, because few of them occur.

    A priority of 4 is written although it is the default: without it a message has the lowest priority in
    0-9-1.
    """
    if priority is not None and (not isinstance(priority, int) or not 0 <= priority <= _MOST_PRIORITY):
        raise LocalProtocolError(f"priority={priority!r}: expected an int of 0 to 255")
    fields = [
        durable or None,
        None if priority is None else UByte(priority),
        None if ttl is None else UInt(ttl),
        first_acquirer or None,
        None if delivery_count is None else UInt(delivery_count),
    ]
    while fields and fields[-1] is None:
        fields.pop()
    return encode(Described(_HEADER_CODE, fields)) if fields else b""


@lru_cache(256)
def _place_octets(exchange: str, routing_key: str, kind: str | None) -> bytes:
    """Encode the annotations if no header is one; cached, because few places occur."""
    annotations: dict[Symbol, Any] = {}
    _annotate(annotations, exchange, routing_key, kind)
    out = bytearray()
    _write_annotations(out, annotations)
    return bytes(out)


@lru_cache(256)
def _place_pairs(exchange: str, routing_key: str, kind: str | None) -> tuple[bytes, int]:
    """Encode the same annotations as pairs; return the octets and their number."""
    annotations: dict[Symbol, Any] = {}
    _annotate(annotations, exchange, routing_key, kind)
    out = bytearray()
    for name, value in annotations.items():
        write_value(out, name, 0)
        write_value(out, value, 0)
    return bytes(out), len(annotations)


def _annotate(annotations: dict[Symbol, Any], exchange: str, routing_key: str, kind: str | None) -> None:
    annotations[_EXCHANGE] = to_text(exchange)
    annotations[_KEY] = to_text(routing_key)
    if kind is not None:
        annotations[_TYPE] = to_text(kind)


def _headers(headers: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return annotations and application-properties."""
    annotations: dict[str, Any] = {}
    application: dict[str, Any] = {}
    for name, value in headers.items():
        if name[:1] != "x" and name != "CC" and value.__class__ in _USUAL and name.isascii():
            application[name] = value if value.__class__ is not str else to_text(value)
            continue
        if name == _DEATH and (deaths := deaths_to_standard(value)) is not None:
            annotations[_DEATHS] = deaths
            continue
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
    """Whether these octets are valid sections of a body, and nothing more."""
    try:
        message = Message.from_payload(octets)
        return bool(message.sections) and scan(octets)[BODY] == (0, len(octets))
    except RemoteProtocolError:
        return False


def _ttl(expiration: str) -> int | None:
    """Return the expiration in milliseconds; None if it is not a number."""
    digits = expiration.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        return None
    return min(int(digits[:20]), _MOST_TTL)


def _standard_id(text: str) -> str | uuid.UUID:
    if text.startswith(_URN):
        try:
            found = uuid.UUID(text.removeprefix(_URN))
        except ValueError:
            return to_text(text)
        if found.urn == text:
            return found
    return to_text(text)


@lru_cache(256)
def _symbol(text: str) -> Symbol | None:
    """Return the symbol of a media type, if it is ASCII; cached, because few occur."""
    return Symbol(text) if text.isascii() else None


def _creation_time(timestamp: Any) -> Timestamp | None:
    milliseconds = to_seconds(timestamp) * 1000
    return Timestamp(milliseconds) if milliseconds <= Timestamp.MAX else None


# To AMQP 0-9-1 ----------------------------------------------------------------------------------


def to_publication(
    message: Message,
    *,
    durable: bool = False,
    plain_text: bool = False,
    reply_to: Callable[[str], str] = str,
) -> Publication:
    """Return the message of 0-9-1 for a message of AMQP 1.0.

    Args:
        message: as received or created.
        durable: whether a message without ``durable`` in its header is persistent.
        plain_text: whether a body of one text or binary value becomes its octets; a text then gets the content
            type ``text/plain; charset=utf-8`` if the message has none. Otherwise such a body stays a section,
            and the message has the type ``amqp-1.0``.
        reply_to: translates an address to the name of a queue.

    Raises:
        RemoteProtocolError: its sections are malformed.
        LocalProtocolError: it was created here, and cannot be encoded.
    """
    payload = message.to_payload()
    message = Message.from_payload(payload)
    annotations = {str(name): value for name, value in message.annotations.items() if isinstance(name, str)}
    headers = _annotated_headers(annotations)
    for name, value in message.application_properties.items():
        _put(headers, name, value)
    plain = _plain(message) if plain_text else None
    is_data, body = _body(message, payload) if plain is None else (True, plain)
    usual_type = _TEXT if plain is not None and isinstance(message.body, str) else None
    stated_durable, priority = _header(payload)
    address = message.reply_to
    properties = BasicProperties(
        content_type=usual_type if message.content_type is None else _short(message.content_type),
        content_encoding=_short(message.content_encoding),
        delivery_mode=_PERSISTENT if (durable if stated_durable is None else stated_durable) else _TRANSIENT,
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
    """Return ``durable`` and ``priority`` of the header (3.2.1); None if absent."""
    span = scan(payload)[HEADER]
    if span is None:
        return None, None
    durable, priority, *_ = read_section(HEADER, payload, span)
    return durable, None if priority is None else int(priority)


def _annotated_headers(annotations: Mapping[str, Any]) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    for name, value in annotations.items():
        if name == _DEATHS and (deaths := deaths_from_standard(value)) is not None:
            headers[_DEATH] = deaths
        elif name in _RENAMED:
            _put(headers, _RENAMED[name], int(value) if isinstance(value, Timestamp) else value)
        elif name.startswith("x-") and name not in _OWN and not name.startswith("x-basic-"):
            _put(headers, name, value)
    return headers


def _put(headers: dict[str, Any], name: Any, value: Any) -> None:
    now = from_standard(value)
    if now is not LEFT_OUT and is_short(name):
        headers[str(name)] = now


def _body(message: Message, payload: bytes) -> tuple[bool, bytes]:
    """Return whether the body is data, and its octets or those of its sections."""
    sections = message.sections
    if all(isinstance(each, Data) for each in sections):
        return True, b"".join(chunk for each in sections if isinstance(each, Data) for chunk in each.chunks)
    span = scan(payload)[BODY]
    assert span is not None
    return False, payload[span[0] : span[1]]


def _plain(message: Message) -> bytes | None:
    """Return the octets of a body that is one text or binary value; otherwise None."""
    sections = message.sections
    if len(sections) != 1 or not isinstance(sections[0], Value):
        return None
    value: Any = sections[0].value
    if type(value) is str:
        return value.encode()
    return value if type(value) is bytes else None


def _id(value: Any, headers: dict[str, Any], name: str) -> str | None:
    """Return the id as a short string; otherwise add it to the headers as ``name``."""
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
