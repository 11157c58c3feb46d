"""The frame reader of the draft (Book III, 3.1).

The layout of frames is that of the final standard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.engine.frame_reader import FrameReader
from trio_amqp10.amqp10.wire.frames import FRAME_HEADER_SIZE

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.connection import Connection

_OTHER_FRAME: Final = 8


class DraftFrameReader(FrameReader):
    """A ``FrameReader`` without the shortcuts for frames of the final standard."""

    __slots__ = ()

    frames: int

    def _read_frames(self, connection: Connection, buf: bytes) -> bool:
        """See ``FrameReader``.

        Every frame is read in the general way, and counts as much as eight frames of the shortcuts.
        """
        budget = max(1, self._budget // _OTHER_FRAME)
        while budget > 0:
            frame = self._find_frame(buf, self._pos, connection.frame_limit())
            if frame is None:
                return False
            kind, channel, body, end = frame
            self._pos = end
            self.frames += 1
            budget -= 1
            connection.on_frame(kind, channel, buf[body:end])
        return len(buf) - self._pos >= FRAME_HEADER_SIZE
