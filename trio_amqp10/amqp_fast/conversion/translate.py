"""Conversion of messages between AMQP/Fast and AMQP 1.0 (RFC 006, 3.4.4).

====================  ====================================================================
AMQP/Fast             AMQP 1.0
====================  ====================================================================
persistent            header: durable
priority              header: priority; above 9 it is 9
expiration            absolute-expiry-time, and a ttl (for protocols without such a time) if it
                      fits in 49 days; in return from either, rounded up to a second
mime-type, encoding   content-type, content-encoding, if they are ASCII; if empty: those
                      of the handle, or ``application/octet-stream`` and ``binary``
identifier            message-id; in return a correlation-id if there is no message-id
headers               application-properties; decimals become text
header REPLY_TO       reply-to
body                  one data section
====================  ====================================================================

In the other direction, a value that is text or binary becomes the body. Any other body is encoded as its AMQP 1.0 sections, with
the MIME type ``application/x-amqp``. Application properties that do not fit in a field table are dropped, and so are all other
fields of AMQP 1.0.

This module does not know handles or links.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Symbol, Timestamp
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.message import Message as FastMessage
from trio_amqp10.amqp_fast.wire.fields import write_table
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.short_strings import to_text

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.content import Content

MIME_TYPE: Final = "application/octet-stream"
ENCODING: Final = "binary"
"""Defaults if neither the message nor its handle states them (3.5.2)."""

SECTIONS: Final = "application/x-amqp"
"""The MIME type of a body that consists of AMQP 1.0 sections."""

REPLY_TO: Final = "REPLY_TO"
_PRIORITY_MAX: Final = 9
_EXPIRATION_MAX: Final = 0xFFFFFFFF
_TTL_MAX: Final = 0xFFFFFFFF
_LATEST: Final = int(datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp())
"""The last second that a ``datetime`` can represent."""


def to_standard(message: FastMessage, opened: spec.HandleOpen, *, reply_to: str | None = None) -> Message:
    """Convert a received message to AMQP 1.0.

    Args:
        message: the received message.
        opened: the command that opened the handle, with default types for messages.
        reply_to: address for replies, if the message itself has none.
    """
    head = message.head
    properties = {to_text(name): _standard(value) for name, value in head.headers.items() if name != REPLY_TO}
    address = head.headers.get(REPLY_TO)
    if isinstance(address, str) and address:
        reply_to = to_text(address)
    mime_type = head.mime_type or opened.mime_type or MIME_TYPE
    encoding = head.encoding or opened.encoding or ENCODING
    return Message(
        message.body,
        durable=head.persistent,
        priority=min(head.priority, _PRIORITY_MAX),
        ttl=_ttl(head.expiration) if head.expiration else None,
        absolute_expiry_time=Timestamp(head.expiration * 1000) if head.expiration else None,
        content_type=Symbol(mime_type) if mime_type.isascii() else None,
        content_encoding=Symbol(encoding) if encoding.isascii() else None,
        message_id=to_text(head.identifier) if head.identifier else None,
        reply_to=reply_to,
        application_properties=properties,
    )


def _ttl(expiration: int) -> int | None:
    """Return the remaining milliseconds; None if they exceed the range of a ttl."""
    left = max(expiration * 1000 - int(time.time() * 1000), 0)
    return left if left <= _TTL_MAX else None


def _standard(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return Timestamp(int(value.timestamp()) * 1000)
    return to_text(value) if isinstance(value, str) else value


def to_fast(content: Content) -> FastMessage:
    """Convert any content for a client of AMQP/Fast.

    Content that cannot be decoded becomes a message whose body is its octets.
    """
    try:
        return _to_fast(content.as_message())
    except (RemoteProtocolError, LocalProtocolError):
        return FastMessage(spec.MessageHead(persistent=content.durable), content.octets)


def _to_fast(message: Message) -> FastMessage:
    message = Message.from_payload(message.to_payload())
    headers: dict[str, Any] = {}
    if message.reply_to is not None:
        _put(headers, REPLY_TO, message.reply_to)
    for name, value in message.application_properties.items():
        _put(headers, str(name), value)
    body, mime_type = _body(message)
    identifier = message.message_id if message.message_id is not None else message.correlation_id
    head = spec.MessageHead(
        persistent=bool(message.durable),
        priority=min(message.priority, _PRIORITY_MAX),
        expiration=_expiration(message),
        mime_type=mime_type or _short(message.content_type),
        encoding="" if mime_type else _short(message.content_encoding),
        identifier=_short(identifier),
        headers=headers,
    )
    return FastMessage(head, body)


def _body(message: Message) -> tuple[bytes, str]:
    """Return the octets of the body, and its MIME type if the message has none."""
    body = message.body
    if isinstance(body, bytes):
        return body, ""
    if isinstance(body, str):
        return body.encode(), "" if message.content_type else "text/plain"
    return Message(body).to_payload(), SECTIONS


def _expiration(message: Message) -> int:
    """Return the expiration in seconds since 1970, rounded up; 0 for never."""
    if message.absolute_expiry_time is not None:
        milliseconds = int(message.absolute_expiry_time)
    elif message.ttl is not None:
        milliseconds = int(time.time() * 1000) + message.ttl
    else:
        return 0
    return min(max(-(-milliseconds // 1000), 1), _EXPIRATION_MAX)


def _short(value: Any) -> str:
    """Return the value as a short string; empty if that is impossible."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = "" if value is None else str(value)
    return text if len(text.encode("utf-8", "replace")) <= 255 and "\0" not in text else ""


def _put(headers: dict[str, Any], name: str, value: Any) -> None:
    """Add a header, unless field tables cannot contain it."""
    if isinstance(value, Timestamp):
        seconds = max(int(value) // 1000, 0)
        if seconds > _LATEST:
            return
        value = datetime.fromtimestamp(seconds, UTC)
    elif isinstance(value, bool | float):
        value = str(value).lower()
    try:
        write_table(bytearray(), {**headers, name: value})
    except (LocalProtocolError, OverflowError):
        return
    headers[name] = value
