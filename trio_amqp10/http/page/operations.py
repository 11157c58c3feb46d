"""Operations on one queue, its messages, or one connection, by a POST.

The address is in the body, because an address of AMQP 1.0 may be longer than a path of HTTP.

Knows calls and shapes; the management does the work.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.http.api.bodies import bad, field
from trio_amqp10.http.api.paging import json_response

from . import shapes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from trio_amqp10.http.api.call import Call

    from .history import History

_MOST_MESSAGES: Final = 100
_MOST_OCTETS: Final = 4 * 1024 * 1024
"""Octets of the messages of an answer; a larger message is returned alone."""
_MOST_BODY: Final = 64 * 1024
"""Octets of the body of one message that are shown."""
_MOST_LINKS: Final = 500
_LONGEST_REASON: Final = 255
_TEXTS: Final = ("message_id", "subject", "reply_to", "correlation_id", "content_type", "to", "group_id")


async def queue(call: Call, history: History) -> Response:
    """Return one queue with its rules, and its consumers as far as they may be seen."""
    address = field(await call.body(), "address", str)
    found = await call.management.queue(address)
    consumers: list[dict[str, Any]] = []
    if found.consumers and await call.may_watch("link"):
        async for each in call.management.links(role="sender"):
            if each.address == address and len(consumers) < _MOST_LINKS:
                consumers.append(shapes.link(each))
    return await json_response(
        {
            **shapes.queue(found),
            "rules": shapes.rules(found),
            "arguments": shapes.plain(found.arguments),
            "depths": history.depths(address),
            "growth": history.growth(address),
            "consumer_list": consumers,
        }
    )


async def browse(call: Call, _history: History) -> Response:
    """Look at messages of a queue, and leave them there."""
    body = await call.body()
    count, offset = field(body, "count", int, 20), field(body, "offset", int, 0)
    if not 1 <= count <= _MOST_MESSAGES:
        raise bad(f"count={count}: expected a number from 1 to {_MOST_MESSAGES}")
    found = await call.management.browse(
        field(body, "address", str), count, offset=offset, octets=_MOST_OCTETS
    )
    return await json_response([shapes.message(each, _MOST_BODY) for each in found])


async def publish(call: Call, _history: History) -> Response:
    """Publish a message to a node; the answer has whether a queue took it."""
    body = await call.body()
    routed = await call.management.publish(field(body, "address", str), _message(body))
    return await json_response({"routed": routed})


def _message(body: Mapping[str, Any]) -> Message:
    text, encoding = field(body, "body", str), field(body, "encoding", str, "text")
    if encoding not in ("text", "base64"):
        raise bad(f"encoding={encoding[:64]!r}: expected text or base64")
    try:
        octets = text.encode() if encoding == "text" else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise bad(f"body={text[:64]!r}: expected base64") from None
    given = cast("dict[str, Any]", field(body, "properties", dict, {}))
    unknown = sorted(given.keys() - {*_TEXTS, "durable", "priority", "ttl"})
    if unknown:
        raise bad(f"properties: {unknown[0][:64]!r} is no property that can be set here")
    properties: dict[str, Any] = {name: field(given, name, str) for name in _TEXTS if name in given}
    properties |= {name: field(given, name, int) for name in ("priority", "ttl") if name in given}
    if "durable" in given:
        properties["durable"] = field(given, "durable", bool)
    own = cast("dict[str, Any]", field(body, "application_properties", dict, {}))
    try:
        return Message(octets, **properties, application_properties=own or None)
    except LocalProtocolError as wrong:
        raise bad(str(wrong)) from None


async def purge(call: Call, _history: History) -> Response:
    """Remove the ready and the delayed messages of a queue."""
    removed = await call.management.purge(field(await call.body(), "address", str))
    return await json_response({"purged": removed})


async def delete(call: Call, _history: History) -> Response:
    """Delete a queue or a topic."""
    body = await call.body()
    ready = await call.management.delete(
        field(body, "address", str),
        if_empty=field(body, "if_empty", bool, False),
        if_unused=field(body, "if_unused", bool, False),
    )
    return await json_response({"deleted": ready})


async def move(call: Call, _history: History) -> Response:
    """Move messages of a queue elsewhere, each exactly once.

    Cancelled: every message is at exactly one of the two.
    """
    body = await call.body()
    moved = await call.management.move(field(body, "source", str), field(body, "target", str), _count(body))
    return await json_response({"moved": moved})


async def redrive(call: Call, _history: History) -> Response:
    """Send dead letters back to the queues where they died.

    Cancelled: every message is at exactly one of the queues.
    """
    body = await call.body()
    died_in = None if body.get("died_in") is None else field(body, "died_in", str)
    done = await call.management.redrive(field(body, "address", str), _count(body), died_in=died_in)
    return await json_response({"moved": shapes.plain(done.moved), "left": done.left})


def _count(body: Mapping[str, Any]) -> int | None:
    return None if body.get("count") is None else field(body, "count", int)


async def route(call: Call, _history: History) -> Response:
    """Return the queues that a message would reach."""
    body = await call.body()
    headers = cast("dict[str, Any]", field(body, "headers", dict, {}))
    found = await call.management.route(field(body, "exchange", str), field(body, "key", str), headers)
    return await json_response([{"name": each.name, "address": each.address} for each in found])


async def connection(call: Call, _history: History) -> Response:
    """Return one connection; its channels and links as far as they may be seen."""
    number = field(await call.body(), "connection", int)
    found = await call.management.connection(number)
    channels: list[dict[str, Any]] = []
    if await call.may_watch("channel"):
        async for channel in call.management.channels():
            if channel.connection == number and len(channels) < _MOST_LINKS:
                channels.append(shapes.status(channel))
    links: list[dict[str, Any]] = []
    if await call.may_watch("link"):
        async for link in call.management.links():
            if link.connection == number and len(links) < _MOST_LINKS:
                links.append(shapes.link(link))
    return await json_response({**shapes.status(found), "channel_list": channels, "link_list": links})


async def close_connection(call: Call, _history: History) -> Response:
    """Close a connection; the reason is what its peer gets to read."""
    body = await call.body()
    await call.management.close_connection(field(body, "connection", int), _reason(body))
    return await json_response({})


async def close_link(call: Call, _history: History) -> Response:
    """End a link; the reason is what its peer gets to read."""
    body = await call.body()
    await call.management.close_link(field(body, "link", str), _reason(body))
    return await json_response({})


def _reason(body: Mapping[str, Any]) -> str:
    reason = field(body, "reason", str, "") or "closed by an operator"
    if len(reason) > _LONGEST_REASON:
        raise bad(f"reason: {len(reason)} characters: expected at most {_LONGEST_REASON}")
    return reason
