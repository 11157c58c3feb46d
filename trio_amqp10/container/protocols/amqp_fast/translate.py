"""A message of AMQP/Fast as one of AMQP 1.0, and back (RFC 006, 3.4.4).

====================  ====================================================================
AMQP/Fast             AMQP 1.0
====================  ====================================================================
persistent            header: durable
priority              header: priority; above 9 it is 9
expiration            absolute-expiry-time, and a ttl for wires that have no such time, where
                      it fits (49 days); back from either, rounded up to a second
mime-type, encoding   content-type, content-encoding, where they are ASCII; empty: those
                      of the handle, or ``application/octet-stream`` and ``binary``
identifier            message-id; back a correlation-id where there is no message-id
headers               application-properties; decimals are text there
header REPLY_TO       reply-to
body                  one data section
====================  ====================================================================

Back, a value that is text or octets is the body, and any other body is its sections, with the mime type
``application/x-amqp``. Application properties that no field table can have are left out; so are the other fields of 1.0.

Knows messages; knows no handle and no link.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.fields import write_table
from trio_amqp10.amqp_fast.message import Message as FastMessage
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Message
from trio_amqp10.wire.values import Symbol, Timestamp

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.content import Content

__all__ = ["MIME_TYPE", "SECTIONS", "to_fast", "to_standard"]

MIME_TYPE: Final = "application/octet-stream"
ENCODING: Final = "binary"
"""What a message is that does not say so, on a handle that does not either (3.5.2)."""

SECTIONS: Final = "application/x-amqp"
"""The mime type of a body that is sections of AMQP 1.0."""

REPLY_TO: Final = "REPLY_TO"
_PRIORITY_MAX: Final = 9
_EXPIRATION_MAX: Final = 0xFFFFFFFF
_TTL_MAX: Final = 0xFFFFFFFF
_LATEST: Final = int(datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp())
"""The last second that a ``datetime`` has."""


def to_standard(message: FastMessage, opened: spec.HandleOpen, *, reply_to: str | None = None) -> Message:
    """The message of AMQP 1.0 for one that came by a handle.

    Args:
        message: as it came.
        opened: the handle, with the types of messages that do not name theirs.
        reply_to: where a reply is to go, unless the message says that itself.
    """
    head = message.head
    properties = {_text(name): _standard(value) for name, value in head.headers.items() if name != REPLY_TO}
    address = head.headers.get(REPLY_TO)
    if isinstance(address, str) and address:
        reply_to = _text(address)
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
        message_id=_text(head.identifier) if head.identifier else None,
        reply_to=reply_to,
        application_properties=properties,
    )


def _ttl(expiration: int) -> int | None:
    """Milliseconds that are left, if a ttl can say so."""
    left = max(expiration * 1000 - int(time.time() * 1000), 0)
    return left if left <= _TTL_MAX else None


def _standard(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return Timestamp(int(value.timestamp()) * 1000)
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    """Text that UTF-8 can express."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def to_fast(content: Content) -> FastMessage:
    """What a client of AMQP/Fast gets of any content; one that cannot be read is a body of its octets."""
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
    """The octets of the body, and its mime type where the message does not say it."""
    body = message.body
    if isinstance(body, bytes):
        return body, ""
    if isinstance(body, str):
        return body.encode(), "" if message.content_type else "text/plain"
    return Message(body).to_payload(), SECTIONS


def _expiration(message: Message) -> int:
    """Seconds since 1970, rounded up; 0 for never."""
    if message.absolute_expiry_time is not None:
        milliseconds = int(message.absolute_expiry_time)
    elif message.ttl is not None:
        milliseconds = int(time.time() * 1000) + message.ttl
    else:
        return 0
    return min(max(-(-milliseconds // 1000), 1), _EXPIRATION_MAX)


def _short(value: Any) -> str:
    """A short string; empty for what has none."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = "" if value is None else str(value)
    return text if len(text.encode("utf-8", "replace")) <= 255 and "\0" not in text else ""


def _put(headers: dict[str, Any], name: str, value: Any) -> None:
    """Add a header, if field tables can have it."""
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
