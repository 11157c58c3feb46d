"""Frames: a head, a payload, one octet that marks the end (0-9-1, 4.2.3).

Everything about a frame but its end is judged from its head, before an octet of the payload is waited for or stored.
Heartbeats have type 8, as in the grammar (4.2.1) and in every implementation; the 4 of 4.2.3 is an error of the text.

The head of 0-9-1 has seven octets. Versions with another head give an engine a ``FrameFormat`` of their own.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from trio_amqp10.reply_codes import ReplyCode091

from .faults import ReplyError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ANY_SIZE",
    "BODY",
    "FRAMES",
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
    "FrameFormat",
    "body_frames",
    "frame",
    "read_head",
]

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8

FRAME_MIN: Final = 4096
"""The smallest frame-max that may be agreed, and the largest frame before there is an agreement (4.2.3)."""

ANY_SIZE: Final = 0xFFFFFFFF
"""Octets of the largest payload that a head can announce: no limit."""

FRAME_END: Final = 0xCE

PROTOCOL_HEADER: Final = b"AMQP\0\0\x09\x01"
"""What a client begins with (4.2.2)."""

PROTOCOL_HEADER_09: Final = b"AMQP\x01\x01\0\x09"
"""What clients of 0-9 begin with; they are taken as clients of 0-9-1."""

_END: Final = bytes([FRAME_END])


class FrameFormat:
    """How the frames of a version of the protocol look; this one is 0-9-1's.

    Attributes:
        overhead: octets of a frame beside its payload; frame-max counts them.
        head_size: octets of the head.
        heartbeat: a heartbeat, whole.
        dropped: the types of frames that carry nothing for us.
    """

    __slots__ = ("_head", "_misplaced", "_types", "dropped", "head_size", "heartbeat", "overhead")

    def __init__(
        self,
        head: str = ">BHI",
        types: frozenset[int] = frozenset({METHOD, HEADER, BODY, HEARTBEAT}),
        dropped: frozenset[int] = frozenset({HEARTBEAT}),
        misplaced: ReplyCode091 = ReplyCode091.UNEXPECTED_FRAME,
    ) -> None:
        self._head = struct.Struct(head)
        self._types = types
        self._misplaced = misplaced
        self.dropped: Final = dropped
        self.head_size: Final = self._head.size
        self.overhead: Final = self.head_size + len(_END)
        self.heartbeat: bytes = self.frame(HEARTBEAT, 0, b"")

    def read_head(
        self, buf: bytes | bytearray, pos: int, largest: int, largest_header: int = 0
    ) -> tuple[int, int, int]:
        """Type, channel and size of the payload, from the octets of a head.

        Args:
            buf: what came.
            pos: where the frame begins; ``head_size`` octets are there.
            largest: octets that the payload may have.
            largest_header: octets that the payload of a content header may have, if that is more.

        Raises:
            ReplyError: 501 for an unknown type, too large a payload and a heartbeat with one; 505 for a heartbeat on a
                channel; and what a version says of its own types.
        """
        kind, channel, size = self._unpack(buf, pos)
        if kind not in self._types:
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"unknown frame type {kind}")
        if size > largest and not (kind == HEADER and size <= largest_header):
            raise ReplyError(
                ReplyCode091.FRAME_ERROR, f"a payload of {size} octets, where a frame takes {largest}"
            )
        if kind == HEARTBEAT:
            if size:
                raise ReplyError(ReplyCode091.FRAME_ERROR, f"a heartbeat with a payload of {size} octets")
            if channel:
                raise ReplyError(self._misplaced, f"a heartbeat on channel {channel}")
        return kind, channel, size

    def _unpack(self, buf: bytes | bytearray, pos: int) -> tuple[int, int, int]:
        """Type, channel and size of the payload; errors as ``read_head``."""
        found: tuple[int, int, int] = self._head.unpack_from(buf, pos)
        return found

    def _pack(self, kind: int, channel: int, size: int) -> bytes:
        """The head of a frame."""
        return self._head.pack(kind, channel, size)

    def frame(self, kind: int, channel: int, payload: bytes) -> bytes:
        """A whole frame."""
        return b"".join((self._pack(kind, channel, len(payload)), payload, _END))

    def body_frames(self, channel: int, body: bytes, largest: int) -> Iterator[bytes]:
        """The body frames of a content, none for an empty body (4.2.6.2)."""
        for start in range(0, len(body), largest):
            yield self.frame(BODY, channel, body[start : start + largest])


FRAMES: Final = FrameFormat()
"""The frames of 0-9-1."""

read_head: Final = FRAMES.read_head
frame: Final = FRAMES.frame
body_frames: Final = FRAMES.body_frames

HEAD_SIZE: Final = FRAMES.head_size
OVERHEAD: Final = FRAMES.overhead
HEARTBEAT_FRAME: Final = FRAMES.heartbeat
