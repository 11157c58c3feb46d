"""The hot path by hand: a publish as octets, and a content that came whole (0-9-1, 4.2.3 to 4.2.6).

Each function does what the generic path does, and leaves to it whatever is not as usual: where one answers None, the generic
path reads the same octets, and says what is wrong with them. Delete this file and its callers' branches, and all still works.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from trio_amqp10.errors import LocalProtocolError

from .content import BASIC, BasicProperties, Content, write_header
from .frames import BODY, FRAME_END, HEAD_SIZE, HEADER, METHOD, OVERHEAD, body_frames, frame
from .spec import BasicDeliver, BasicPublish

if TYPE_CHECKING:
    from .fields import Letters

__all__ = [
    "NO_PROPERTIES",
    "Extent",
    "extent",
    "publish_prefix",
    "publish_rest",
    "read_deliver",
    "read_properties",
]

_HEAD: Final = struct.Struct(">BHI")
_METHOD: Final = struct.Struct(">BHIHH")
_CONTENT: Final = struct.Struct(">BHIHHQ")
_END: Final = bytes([FRAME_END])
_TAG: Final = struct.Struct(">QB")

_CONTENT_HEAD: Final = _CONTENT.size - HEAD_SIZE
"""Octets of a content header before its flags: class, weight, size of the body."""

NO_PROPERTIES: Final = b"\0\0"
"""The flags of a content without properties."""


class Extent(NamedTuple):
    """Where a content stands in a buffer: a method, its header, its body in one frame or in none."""

    channel: int
    method: int
    """Where the method's payload begins."""
    method_end: int
    properties: int
    """Where the flags begin."""
    properties_end: int
    body: int
    body_end: int
    end: int
    """Where the next frame begins."""


def extent(buffer: bytearray, pos: int, largest: int) -> Extent | None:
    """The three frames of a content that begins here; None if they are not all here, or anything is unusual.

    Args:
        buffer: what came.
        pos: where the method frame begins.
        largest: octets that a payload may have.
    """
    end = len(buffer)
    if end - pos < _METHOD.size:
        return None
    kind, channel, size, class_id, _ = _METHOD.unpack_from(buffer, pos)
    header = pos + OVERHEAD + size
    if kind != METHOD or class_id != BASIC or size > largest or end < header + _CONTENT.size:
        return None
    second, same, header_size, class_id, weight, body_size = _CONTENT.unpack_from(buffer, header)
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
        if _HEAD.unpack_from(buffer, body) != (BODY, channel, body_size):
            return None
    if not buffer[header - 1] == buffer[body - 1] == buffer[last - 1] == FRAME_END:
        return None
    start = body + HEAD_SIZE if body_size else body
    return Extent(
        channel,
        pos + HEAD_SIZE,
        header - 1,
        header + _CONTENT.size,
        body - 1,
        start,
        start + body_size,
        last,
    )


def read_deliver(payload: bytes) -> BasicDeliver | None:
    """A basic.deliver; None if it is malformed, or a string is no UTF-8 or has a NUL."""
    try:
        pos = 5 + payload[4]
        consumer_tag = payload[5:pos].decode()
        tag, redelivered = _TAG.unpack_from(payload, pos)
        key = pos + 10 + payload[pos + 9]
        exchange = payload[pos + 10 : key].decode()
        routing_key = payload[key + 1 :].decode()
        whole = key + 1 + payload[key] == len(payload)
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    if not whole or "\0" in consumer_tag or "\0" in exchange or "\0" in routing_key:
        return None
    return BasicDeliver(
        consumer_tag=consumer_tag,
        delivery_tag=tag,
        redelivered=bool(redelivered & 1),
        exchange=exchange,
        routing_key=routing_key,
    )


def publish_prefix(
    channel: int, exchange: str, routing_key: str, mandatory: bool, letters: Letters, largest: int
) -> bytes:
    """The method frame of a basic.publish.

    Raises:
        LocalProtocolError: a name is no short string.
    """
    method = BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
    payload = method.plan.write(method, letters)
    _check(payload, largest)
    return frame(METHOD, channel, payload)


def publish_rest(channel: int, content: Content, letters: Letters, largest: int) -> list[bytes]:
    """The content header and the bodies that follow it.

    Raises:
        LocalProtocolError: a property does not fit its type, or all of them a frame.
    """
    body = content.body
    octets = content.octets
    if octets is None or len(body) > largest or len(octets) > largest - _CONTENT_HEAD:
        header = write_header(content, letters)
        _check(header, largest)
        return [frame(HEADER, channel, header), *body_frames(channel, body, largest)]
    size = len(body)
    header = _CONTENT.pack(HEADER, channel, _CONTENT_HEAD + len(octets), BASIC, 0, size)
    if not size:
        return [header, octets, _END]
    return [header, octets, _END, _HEAD.pack(BODY, channel, size), body, _END]


def _check(payload: bytes, largest: int) -> None:
    if len(payload) > largest:
        raise LocalProtocolError(f"{len(payload)} octets, where a frame takes {largest}")


def read_properties(octets: bytes, letters: Letters) -> BasicProperties:
    """The properties of a content.

    Raises:
        ReplyError: as ``BasicProperties.decode``.
    """
    return BasicProperties() if octets == NO_PROPERTIES else BasicProperties.decode(octets, 0, letters)
