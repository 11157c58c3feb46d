"""Frames of 10.3: those of 0-9-1, with a cycle octet and more types.

======  ==================================================
type    meaning
======  ==================================================
1 to 3  method, content header, content body
4 to 6  the same out of band, which is not implemented here
7       trace, which is dropped
8       heartbeat
======  ==================================================

The document (C, the class reference of 10.3) does not define the octets of frames; these are the frames of OpenAMQ of spring
2006 (``asl``). The cycle must be 0: any other value is a frame error.
"""

from __future__ import annotations

import struct
from typing import Final

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, HEARTBEAT, METHOD, FrameFormat
from trio_amqp10.core.reply_codes import ReplyCode091

PROTOCOL_HEADER: Final = b"AMQP\1\1\x0a\3"
"""The first octets of a client: class 1, instance 1, version 10.3 (C 99)."""

TRACE: Final = 7
_OUT_OF_BAND: Final = (4, 5, 6)
_HEAD: Final = struct.Struct(">BBHI")


class CycleFrames(FrameFormat):
    """Frames whose head is type, cycle, channel and size of the payload."""

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
            raise ReplyError(
                ReplyCode091.NOT_IMPLEMENTED, f"out-of-band frames (type {kind}) are not supported"
            )
        if cycle:
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"the cycle of a frame must be 0, not {cycle}")
        return kind, channel, size

    def _pack(self, kind: int, channel: int, size: int) -> bytes:
        return _HEAD.pack(kind, 0, channel, size)


FRAMES: Final = CycleFrames()
"""The frames of 10.3."""
