"""Frames: a head, a payload, and an end octet (0-9-1, 4.2.3).

Everything about a frame except its end octet is checked from its head, before the payload is awaited or stored.
Heartbeats have type 8, as in the grammar (4.2.1) and in every implementation; the 4 of 4.2.3 is an error of the
text.

The head of 0-9-1 has seven octets. Versions with another head give the engine a ``FrameFormat`` of their own.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from trio_amqp10.core.reply_codes import ReplyCode091

from .faults import ReplyError

if TYPE_CHECKING:
    from collections.abc import Iterator

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8

FRAME_MIN: Final = 4096
"""The smallest permitted frame-max, and the largest frame before tune (4.2.3)."""

ANY_SIZE: Final = 0xFFFFFFFF
"""The largest payload that a frame head can announce: no limit."""

FRAME_END: Final = 0xCE

PROTOCOL_HEADER: Final = b"AMQP\0\0\x09\x01"
"""The first octets of a client (4.2.2)."""

PROTOCOL_HEADER_09: Final = b"AMQP\x01\x01\0\x09"
"""The first octets of a 0-9 client, which is treated as a client of 0-9-1."""

_END: Final = bytes([FRAME_END])


class FrameFormat:
    """The frame format of a version of the protocol; the defaults are 0-9-1's.

    Attributes:
        overhead: octets of a frame in addition to its payload; frame-max includes them.
        head_size: octets of the head.
        heartbeat: a whole heartbeat frame.
        dropped: the frame types that are ignored.
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
        """Read a frame head; return the type, the channel and the payload's size.

        Args:
            buf: received octets.
            pos: the begin of the frame; at least ``head_size`` octets must follow.
            largest: the largest permitted payload in octets.
            largest_header: the same for a content header, if that is more.

        Raises:
            ReplyError: 501 for an unknown type, a payload that is too large, and a heartbeat with a payload;
                505 for a heartbeat on a channel; other codes for types that only some versions have.
        """
        kind, channel, size = self._unpack(buf, pos)
        if kind not in self._types:
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"unknown frame type {kind}")
        if size > largest and not (kind == HEADER and size <= largest_header):
            raise ReplyError(
                ReplyCode091.FRAME_ERROR,
                f"a payload of {size} octets exceeds the largest frame payload of {largest}",
            )
        if kind == HEARTBEAT:
            if size:
                raise ReplyError(ReplyCode091.FRAME_ERROR, f"a heartbeat with a payload of {size} octets")
            if channel:
                raise ReplyError(self._misplaced, f"a heartbeat on channel {channel}")
        return kind, channel, size

    def _unpack(self, buf: bytes | bytearray, pos: int) -> tuple[int, int, int]:
        """Return type, channel and payload size; errors as ``read_head``."""
        found: tuple[int, int, int] = self._head.unpack_from(buf, pos)
        return found

    def _pack(self, kind: int, channel: int, size: int) -> bytes:
        """Return the head of a frame."""
        return self._head.pack(kind, channel, size)

    def frame(self, kind: int, channel: int, payload: bytes | memoryview) -> bytes:
        """Return a whole frame."""
        return b"".join((self._pack(kind, channel, len(payload)), payload, _END))

    def body_frames(self, channel: int, body: bytes, largest: int) -> Iterator[bytes]:
        """Return the body frames of a content, none for an empty body (4.2.6.2)."""
        view = memoryview(body)
        for start in range(0, len(body), largest):
            yield self.frame(BODY, channel, view[start : start + largest])


FRAMES: Final = FrameFormat()
"""The frame format of 0-9-1."""

read_head: Final = FRAMES.read_head
frame: Final = FRAMES.frame
body_frames: Final = FRAMES.body_frames

HEAD_SIZE: Final = FRAMES.head_size
OVERHEAD: Final = FRAMES.overhead
HEARTBEAT_FRAME: Final = FRAMES.heartbeat
