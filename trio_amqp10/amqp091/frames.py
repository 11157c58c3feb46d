"""Frames: seven octets of head, a payload, one octet that marks the end (0-9-1, 4.2.3).

Everything about a frame but its end is judged from its head, before an octet of the payload is waited for or stored.
Heartbeats have type 8, as in the grammar (4.2.1) and in every implementation; the 4 of 4.2.3 is an error of the text.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from trio_amqp10.reply_codes import ReplyCode091

from .faults import ReplyError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BODY",
    "FRAME_END",
    "FRAME_MIN",
    "HEADER",
    "HEAD_SIZE",
    "HEARTBEAT",
    "HEARTBEAT_FRAME",
    "METHOD",
    "OVERHEAD",
    "PROTOCOL_HEADER",
    "PROTOCOL_HEADER_09",
    "body_frames",
    "frame",
    "read_head",
]

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8

HEAD_SIZE: Final = 7
OVERHEAD: Final = 8
"""Octets of a frame beside its payload; frame-max counts them."""

FRAME_MIN: Final = 4096
"""The smallest frame-max that may be agreed, and the largest frame before there is an agreement (4.2.3)."""

FRAME_END: Final = 0xCE

PROTOCOL_HEADER: Final = b"AMQP\0\0\x09\x01"
"""What a client begins with (4.2.2)."""

PROTOCOL_HEADER_09: Final = b"AMQP\x01\x01\0\x09"
"""What clients of 0-9 begin with; they are taken as clients of 0-9-1."""

_HEAD: Final = struct.Struct(">BHI")
_END: Final = bytes([FRAME_END])

HEARTBEAT_FRAME: Final = _HEAD.pack(HEARTBEAT, 0, 0) + _END


def read_head(buf: bytes | bytearray, pos: int, largest: int) -> tuple[int, int, int]:
    """Type, channel and size of the payload, from seven octets.

    Args:
        buf: what came.
        pos: where the frame begins; seven octets are there.
        largest: octets that the payload may have.

    Raises:
        ReplyError: 501 for an unknown type, too large a payload and a heartbeat with one; 505 for a heartbeat on a channel.
    """
    kind, channel, size = _HEAD.unpack_from(buf, pos)
    if kind not in (METHOD, HEADER, BODY, HEARTBEAT):
        raise ReplyError(ReplyCode091.FRAME_ERROR, f"unknown frame type {kind}")
    if size > largest:
        raise ReplyError(
            ReplyCode091.FRAME_ERROR, f"a payload of {size} octets, where a frame takes {largest}"
        )
    if kind == HEARTBEAT:
        if size:
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"a heartbeat with a payload of {size} octets")
        if channel:
            raise ReplyError(ReplyCode091.UNEXPECTED_FRAME, f"a heartbeat on channel {channel}")
    return kind, channel, size


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """A whole frame."""
    return b"".join((_HEAD.pack(kind, channel, len(payload)), payload, _END))


def body_frames(channel: int, body: bytes, largest: int) -> Iterator[bytes]:
    """The body frames of a content, none for an empty body (4.2.6.2)."""
    for start in range(0, len(body), largest):
        yield frame(BODY, channel, body[start : start + largest])
