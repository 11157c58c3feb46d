"""Shortcuts for whole publishes and deliveries (0-9-1, 4.2.3 to 4.2.6).

Each function has the effect of the generic code, and leaves every unusual case to it: if a function returns
None, the generic code reads the same octets and reports errors. The package works without this file and without
the branches that call it.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from trio_amqp10.amqp091.spec import BasicDeliver, BasicPublish
from trio_amqp10.amqp091.wire.content import BASIC, BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.frames import (
    BODY,
    FRAME_END,
    HEAD_SIZE,
    HEADER,
    METHOD,
    OVERHEAD,
    body_frames,
    frame,
)
from trio_amqp10.core.errors import LocalProtocolError

from .events import Arrival

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.wire.fields import Letters

_HEAD: Final = struct.Struct(">BHI")
_METHOD: Final = struct.Struct(">BHIHH")
_CONTENT: Final = struct.Struct(">BHIHHQ")
_METHOD_SIZE: Final = _METHOD.size
_CONTENT_SIZE: Final = _CONTENT.size
_head_at, _method_at, _content_at = _HEAD.unpack_from, _METHOD.unpack_from, _CONTENT.unpack_from
_END: Final = bytes([FRAME_END])
_KNOWN: Final = 256
"""Names of deliveries that are cached for each channel."""

_new: Final[Callable[..., Any]] = cast("Any", tuple).__new__
"""Makes a named tuple without its own ``__new__``, in half of the time."""

_TAG: Final = struct.Struct(">QB")

_CONTENT_HEAD: Final = _CONTENT.size - HEAD_SIZE
"""Octets of a content header before its flags: class, weight, size of the body."""

NO_PROPERTIES: Final = b"\0\0"
"""The flags of a content without properties."""

ABSENT: Final = BasicProperties()
"""The empty properties: one object for many messages, which must not be changed."""


_SHARED: Final = 48
"""The longest properties in octets that are cached.

Longer ones contain identifiers or headers, so they seldom repeat.
"""


Extent: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""The position of a content with at most one body frame in a buffer.

The channel; begin and end of the method's payload, of the properties with their flags, and of the body; the
begin of the next frame.
"""


def extent(buffer: bytes | bytearray, pos: int, largest: int) -> Extent | None:
    """Find the frames of a content that begins at ``pos``.

    Return None if they are not all in the buffer, or if anything is unusual.

    Args:
        buffer: received octets.
        pos: the begin of the method frame.
        largest: the largest payload in octets.
    """
    end = len(buffer)
    if end - pos < _METHOD_SIZE:
        return None
    kind, channel, size, class_id, _ = _method_at(buffer, pos)
    header = pos + OVERHEAD + size
    if kind != METHOD or class_id != BASIC or size > largest or end < header + _CONTENT_SIZE:
        return None
    second, same, header_size, class_id, weight, body_size = _content_at(buffer, header)
    body = header + OVERHEAD + header_size
    if (second, same, class_id, weight) != (HEADER, channel, BASIC, 0) or end < body:
        return None
    if header_size > largest or header_size < _CONTENT_HEAD + 2:
        return None
    last = body
    if body_size:
        last = body + OVERHEAD + body_size
        if body_size > largest or end < last:
            return None
        if _head_at(buffer, body) != (BODY, channel, body_size):
            return None
    if not buffer[header - 1] == buffer[body - 1] == buffer[last - 1] == FRAME_END:
        return None
    start = body + HEAD_SIZE if body_size else body
    return (
        channel,
        pos + HEAD_SIZE,
        header - 1,
        header + _CONTENT_SIZE,
        body - 1,
        start,
        start + body_size,
        last,
    )


DeliverNames: TypeAlias = "dict[tuple[bytes, bytes], tuple[str, str, str]]"
"""Names of deliveries, by the octets before and after the delivery tag.

The names are consumer tag, exchange and routing key.
"""


def read_deliver(payload: bytes, known: DeliverNames) -> BasicDeliver | None:
    """Read a basic.deliver; None if it is malformed, or a string is not valid.

    Args:
        payload: that of the method frame.
        known: cached names, to which this function adds: most deliveries differ only in their tags.
    """
    try:
        pos = 5 + payload[4]
        tag, redelivered = _TAG.unpack_from(payload, pos)
        octets = payload[5:pos], payload[pos + 9 :]
        names = known.get(octets)
        if names is None:
            names = _deliver_names(*octets)
            if names is None:
                return None
            if len(known) >= _KNOWN:
                known.clear()
            known[octets] = names
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    return BasicDeliver(
        consumer_tag=names[0],
        delivery_tag=tag,
        redelivered=bool(redelivered & 1),
        exchange=names[1],
        routing_key=names[2],
    )


def _deliver_names(tag: bytes, rest: bytes) -> tuple[str, str, str] | None:
    """Return the three names; None if the lengths do not fit, or a name has a NUL.

    Raises as ``bytes.decode``, or IndexError.
    """
    key = 1 + rest[0]
    if key + 1 + rest[key] != len(rest):
        return None
    names = tag.decode(), rest[1:key].decode(), rest[key + 1 :].decode()
    return None if "\0" in "".join(names) else names


def arrival_of(method: BasicDeliver, octets: bytes, body: bytes, letters: Letters) -> Arrival:
    """Return the arrival of a delivery; absent properties are shared (``ABSENT``).

    Raises:
        ReplyError: as ``BasicProperties.decode``.
    """
    properties = ABSENT if octets == NO_PROPERTIES else BasicProperties.decode(octets, 0, letters)
    content = _new(Content, (properties, body, octets))
    arrival: Arrival = _new(Arrival, (method, content, None, (), 0, len(octets) + len(body)))
    return arrival


def publish_prefix(
    channel: int, exchange: str, routing_key: str, mandatory: bool, letters: Letters, largest: int
) -> bytes:
    """Return the method frame of a basic.publish.

    Raises:
        LocalProtocolError: a name is not a valid short string.
    """
    method = BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
    payload = method.plan.write(method, letters)
    _check(payload, largest)
    return frame(METHOD, channel, payload)


def deliver_parts(
    channel: int, consumer_tag: str, exchange: str, routing_key: str, letters: Letters, largest: int
) -> tuple[bytes, bytes]:
    """Return the method frame of a basic.deliver, split around ``deliver_tag``.

    Raises:
        LocalProtocolError: a name is not a valid short string.
    """
    method = BasicDeliver(consumer_tag=consumer_tag, exchange=exchange, routing_key=routing_key)
    payload = method.plan.write(method, letters)
    _check(payload, largest)
    octets = frame(METHOD, channel, payload)
    changes = HEAD_SIZE + 4 + 1 + len(consumer_tag.encode(errors="surrogateescape"))
    return octets[:changes], octets[changes + _TAG.size :]


deliver_tag: Final = _TAG.pack
"""Encodes the delivery tag and the redelivered bit of a basic.deliver."""


def published_arrival(
    method: BasicPublish, properties: BasicProperties, octets: bytes, body: bytes, number: int
) -> Arrival:
    """Return the arrival of a publish; ``number`` is its number in confirm mode, or 0."""
    content = _new(Content, (properties, body, octets))
    arrival: Arrival = _new(Arrival, (method, content, None, (), number, len(octets) + len(body)))
    return arrival


@lru_cache(maxsize=1024)
def read_publish(payload: bytes) -> BasicPublish:
    """Read a basic.publish; the result is cached and must not be changed.

    Raises:
        ReplyError: as ``Plan.read``.
    """
    method: Any = BasicPublish.plan.read(payload, USUAL)
    return cast("BasicPublish", method)


def publish_rest(
    channel: int, content: Content, letters: Letters, largest: int, largest_header: int
) -> list[bytes]:
    """Return the content header and the body frames.

    Raises:
        LocalProtocolError: a property does not fit its type, or the header exceeds a frame.
    """
    body = content.body
    octets = content.octets
    if octets is None or len(body) > largest or len(octets) > largest - _CONTENT_HEAD:
        header = write_header(content, letters)
        _check(header, largest_header)
        return [frame(HEADER, channel, header), *body_frames(channel, body, largest)]
    size = len(body)
    header = _CONTENT.pack(HEADER, channel, _CONTENT_HEAD + len(octets), BASIC, 0, size)
    if not size:
        return [header, octets, _END]
    return [header, octets, _END, _HEAD.pack(BODY, channel, size), body, _END]


def _check(payload: bytes, largest: int) -> None:
    if len(payload) > largest:
        raise LocalProtocolError(f"{len(payload)} octets exceed the largest frame payload of {largest}")


def read_properties(octets: bytes, letters: Letters) -> BasicProperties:
    """Read the properties of a content.

    Raises:
        ReplyError: as ``BasicProperties.decode``.
    """
    return BasicProperties() if octets == NO_PROPERTIES else BasicProperties.decode(octets, 0, letters)


def shared_properties(octets: bytes, letters: Letters) -> BasicProperties:
    """Read the properties of a content; the result may be shared, so do not change it."""
    if octets == NO_PROPERTIES:
        return ABSENT
    if len(octets) > _SHARED or letters is not USUAL:
        return read_properties(octets, letters)
    return _usual_properties(octets)


@lru_cache(maxsize=1024)
def _usual_properties(octets: bytes) -> BasicProperties:
    return read_properties(octets, USUAL)
