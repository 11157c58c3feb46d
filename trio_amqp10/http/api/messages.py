"""Publish a message to an exchange, and get messages of a queue.

Messages are published in the form of AMQP 0-9-1, whose properties RabbitMQ's API has. Those that came in another protocol are shown
as a consumer of 0-9-1 would get them.

Knows calls and the form of 0-9-1; the management does the work.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from trio_amqp10.amqp091.server.native_message import Published, to_published
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.broker.exchanges.addresses import exchange_address
from trio_amqp10.broker.exchanges.argument_equality import to_json
from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.short_strings import to_text

from .bodies import bad, field
from .paging import json_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from trio_amqp10.container.management import MessageStatus

    from .call import Call

_MOST_MESSAGES: Final = 10_000
_MOST_OCTETS: Final = 16 * 1024 * 1024
"""Octets of the messages in one answer; a larger message is returned alone."""
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999."""

_ENDINGS: Final[Mapping[str, Literal["accept", "release", "reject"]]] = {
    "ack_requeue_true": "release",
    "reject_requeue_true": "release",
    "ack_requeue_false": "accept",
    "reject_requeue_false": "reject",
}
_TEXTS: Final = (
    "content_type",
    "content_encoding",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
)
_LONGEST: Final = 255


# -- publish --------------------------------------------------------------------------------


async def publish(call: Call) -> Response:
    """Publish a message; the answer has whether a queue took it."""
    body = await call.body()
    properties = _properties(call, cast("dict[str, Any]", field(body, "properties", dict)))
    key = _short("routing_key", field(body, "routing_key", str))
    octets = _payload(field(body, "payload", str), field(body, "payload_encoding", str))
    exchange = call.exchange("name")
    try:
        raw = properties.encode(USUAL)
    except LocalProtocolError as wrong:
        raise bad(f"properties: {wrong}") from None
    content = Published(exchange, key, raw, octets, properties)
    model = call.management
    if exchange:
        routed = await model.publish_content(exchange_address(exchange, key), content)
    else:
        try:
            routed = await model.publish_content(model.queue_address(key), content)
        except ManagementError as fault:
            if fault.reason != "not-found":
                raise
            routed = False
    return await json_response({"routed": routed})


def _payload(text: str, encoding: str) -> bytes:
    if encoding == "string":
        return text.encode()
    if encoding != "base64":
        raise bad(f"payload_encoding={encoding[:64]!r}: expected string or base64")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise bad(f"payload={text[:64]!r}: expected base64") from None


def _short(name: str, value: str) -> str:
    if len(value.encode()) > _LONGEST:
        raise bad(f"{name}: {len(value.encode())} octets: expected at most {_LONGEST}")
    if "\0" in value:
        raise bad(f"{name}={value[:64]!r}: expected a string without NUL")
    return value


def _properties(call: Call, given: Mapping[str, Any]) -> BasicProperties:
    """Return the properties of a message; unknown ones are ignored, as at RabbitMQ."""
    found: dict[str, Any] = {name: _short(name, field(given, name, str)) for name in _TEXTS if name in given}
    for name, most in (("delivery_mode", 2), ("priority", 255), ("timestamp", _LATEST)):
        if name in given:
            number = field(given, name, int)
            if not 0 <= number <= most:
                raise bad(f"{name}={number}: expected a number from 0 to {most}")
            found[name] = datetime.fromtimestamp(number, UTC) if name == "timestamp" else number
    expiration = found.get("expiration")
    if expiration is not None and not (
        expiration.isascii() and expiration.isdecimal() and len(expiration) < 13
    ):
        raise bad(f"expiration={expiration[:64]!r}: expected milliseconds, as a string of at most 12 digits")
    user = None if call.identity is None else call.identity.name
    if found.get("user_id") not in (None, user):
        raise bad(f"user_id={found['user_id'][:64]!r}: expected the user of this request, {user!r}")
    if "headers" in given:
        headers = cast("dict[str, Any]", field(given, "headers", dict))
        for name in headers:
            _short("headers", name)
        if not {"CC", "BCC"}.isdisjoint(headers):
            raise bad("headers: CC and BCC are not supported here: publish once with each routing key")
        found["headers"] = headers
    return BasicProperties(**found)


# -- get ------------------------------------------------------------------------------------


async def get(call: Call) -> Response:
    """Take messages, and give each of them the same outcome.

    Cancelled: some may have been taken.
    """
    body = await call.body()
    missing = [name for name in ("ackmode", "encoding", "count") if name not in body]
    if missing:
        raise bad(f"{missing[0]} is missing")
    ending = _ENDINGS.get(field(body, "ackmode", str))
    if ending is None:
        raise bad(f"ackmode={body['ackmode'][:64]!r}: expected one of {', '.join(_ENDINGS)}")
    encoding = field(body, "encoding", str)
    if encoding not in ("auto", "base64"):
        raise bad(f"encoding={encoding[:64]!r}: expected auto or base64")
    count, truncate = field(body, "count", int), cast("int | None", field(body, "truncate", int, None))
    if not 0 <= count <= _MOST_MESSAGES:
        raise bad(f"count={count}: expected a number from 0 to {_MOST_MESSAGES}")
    if truncate is not None and truncate < 0:
        raise bad(f"truncate={truncate}: expected a number of at least 0")
    name = call.name("name")
    address = call.management.queue_address(name)
    fitting = await call.management.browse(address, count, octets=_MOST_OCTETS)
    ready = (await call.management.queue(address)).ready
    found = await call.management.get(address, len(fitting), outcome=ending)
    return await json_response(
        [
            _shown(each, name, max(0, ready - place - 1), encoding == "auto", truncate)
            for place, each in enumerate(found)
        ]
    )


def _shown(
    status: MessageStatus, queue: str, left: int, as_text: bool, truncate: int | None
) -> dict[str, Any]:
    message = to_published(status.content, queue, like_rabbitmq=True)
    body = message.body if truncate is None else message.body[:truncate]
    payload, encoding = base64.b64encode(body).decode(), "base64"
    if as_text:
        with contextlib.suppress(UnicodeDecodeError):
            payload, encoding = body.decode(), "string"
    return {
        "exchange": to_text(message.exchange),
        "message_count": left,
        "payload": payload,
        "payload_bytes": len(message.body),
        "payload_encoding": encoding,
        "properties": _shown_properties(message.properties),
        "redelivered": status.redelivered or message.redelivered,
        "routing_key": to_text(message.routing_key),
    }


def _shown_properties(properties: BasicProperties) -> dict[str, Any] | list[Any]:
    """Return the properties; an empty list without any, as RabbitMQ does."""
    found: dict[str, Any] = {}
    for _, name, _ in properties.rows:
        value = getattr(properties, name)
        if value is None:
            continue
        if isinstance(value, datetime):
            value = int(value.timestamp())
        elif isinstance(value, str):
            value = to_text(value)
        found[name] = to_json(value)
    return found or []
