"""Frames of 10.3: as those of 0-9-1, with a cycle octet behind the type, and types of its own.

======  ==================================================
type    meaning
======  ==================================================
1 to 3  method, content header, content body
4 to 6  the same out of band, which is not implemented here
7       trace, which is dropped
8       heartbeat
======  ==================================================

The class reference has no octets of frames; these are those of OpenAMQ of spring 2006 (``asl``). The cycle is 0: another
one is a frame error.
"""

from __future__ import annotations

import struct
from typing import Final

from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.amqp091.frames import BODY, HEADER, HEARTBEAT, METHOD, FrameFormat
from trio_amqp10.reply_codes import ReplyCode091

__all__ = ["FRAMES", "PROTOCOL_HEADER", "TRACE", "CycleFrames"]

PROTOCOL_HEADER: Final = b"AMQP\1\1\x0a\3"
"""What a client begins with: class 1, instance 1, version 10.3 (C 99)."""

TRACE: Final = 7
_OUT_OF_BAND: Final = (4, 5, 6)
_HEAD: Final = struct.Struct(">BBHI")


class CycleFrames(FrameFormat):
    """Frames whose head has a cycle octet: type, cycle, channel, size of the payload."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(
            _HEAD.format,
            types=frozenset({METHOD, HEADER, BODY, TRACE, HEARTBEAT}),
            dropped=frozenset({TRACE, HEARTBEAT}),
            misplaced=ReplyCode091.FRAME_ERROR,
        )

    def _unpack(self, buf: bytes | bytearray, pos: int) -> tuple[int, int, int]:
        kind, cycle, channel, size = _HEAD.unpack_from(buf, pos)
        if kind in _OUT_OF_BAND:
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, f"a frame out of band, of type {kind}")
        if cycle:
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"a frame with cycle {cycle}, where 0 is due")
        return kind, channel, size

    def _pack(self, kind: int, channel: int, size: int) -> bytes:
        return _HEAD.pack(kind, 0, channel, size)


FRAMES: Final = CycleFrames()
"""The frames of 10.3."""
