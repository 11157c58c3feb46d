"""Read the protocol header and frames from octets in any chunks (2.2, 2.3).

Knows where frames begin and end, and the usual ones by their first octets; what any of them means is for
the connection and its sessions to know.

Octets are read whole, or in slices, between which other connections may have their turn. A slice is
64 frames of the usual kind, or 64 KiB, or as much work of other kinds: a frame of another kind counts
for eight, and so do 64 deliveries that one disposition changes. A disposition that changes very many is done in part, and ends the slice: the
rest comes first in the next slices. That is about half a millisecond.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.frames import AMQP_FRAME, FRAME_HEADER_SIZE, parse_frame
from trio_amqp10.mypyc_attributes import mypyc_attr
from trio_amqp10.protocol_headers import AMQP_ID, HEADER_SIZE, header_id

from .fast_codec import DISPOSITION, TRANSFER
from .incoming_transfers import fast_transfer
from .session_dispatch import fast_disposition
from .states import ConnectionState, SessionState

if TYPE_CHECKING:
    from .connection import Connection
    from .connection_context import Context

__all__ = ["FrameReader"]

_END = ConnectionState.END
_MAPPED = SessionState.MAPPED
_FRAME_HEADER = Struct(">IBBH")

_SLICE: Final = 64
_OTHER_FRAME: Final = 8
_CHANGED: Final = 8
"""Usual frames that are a slice; that count as one of another kind; and deliveries that count as one of those."""
_ENDLESS: Final = 1 << 62
_WORTH: Final = 8192
"""Octets behind the end of a frame that had begun: more are not copied to stand behind its beginning."""


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameReader:
    """Octets on their way to a connection.

    Attributes:
        frames: that were read so far, empty ones included.
        greeted: whether the peer's protocol header was read.
        deaf: where frames begin is lost: nothing is read any more.
        more: a slice has ended before the octets did: read on, with more octets or none.
    """

    __slots__ = (
        "_budget",
        "_chunks",
        "_context",
        "_have",
        "_left",
        "_need",
        "_pos",
        "_sliced",
        "_usual",
        "deaf",
        "frames",
        "greeted",
        "more",
    )

    def __init__(self, context: Context) -> None:
        self._context = context
        self._usual = context.limits.max_frame_size
        self._chunks: list[bytes] = []
        self._have = 0
        self._need = 0
        self._pos = 0
        self._left: bytes = b""  # behind _pos, if there is more
        self._budget = 0
        self._sliced = False
        self.frames: int = 0
        self.greeted: bool = False
        self.deaf: bool = False
        self.more: bool = False

    def read(
        self, connection: Connection, data: bytes, *, sliced: bool = False
    ) -> RemoteProtocolError | None:
        """Read what is whole by now, or a slice of it, and keep the rest; returns the first fault that the peer was told of.

        The reader does not hold the connection, so that no reference cycle is left of a connection that is over.
        What is behind a fault is read too, for the peer's close may be in it.
        """
        if self.more:
            self.more = False
            if data:
                self._left, self._pos = self._left[self._pos :] + data, 0
            data, self._left = self._left, b""
        else:
            self._pos = 0
        self._sliced = sliced
        self._budget = _SLICE if sliced else _ENDLESS
        told: RemoteProtocolError | None = None
        if self._chunks:
            missing = self._need - self._have
            self._have += len(data)
            if missing > len(data):
                self._chunks.append(data)
                return None
            if missing > 0 and len(data) - missing > _WORTH:
                # The frame that has begun is put together, and not all that came with its end.
                self._chunks.append(data[:missing])
                told = self._read_all(connection, b"".join(self._chunks))
                self._chunks, self._pos = [], missing
            else:
                data = b"".join((*self._chunks, data))
        if not self.greeted:
            try:
                if not self._read_header(connection, data):
                    self._keep(data)
                    return None
            except RemoteProtocolError as fault:
                connection.refuse_header()
                return fault
        later = self._read_all(connection, data)
        told = told or later
        if self.more:
            self._left, self._chunks = data, []
        elif self._pos < len(data):
            self._keep(data)
        elif self._chunks:
            self._chunks = []
        return told

    def _read_all(self, connection: Connection, data: bytes) -> RemoteProtocolError | None:
        """Read what is whole of ``data``, as far as the budget goes; returns the first fault that the peer was told of."""
        told: RemoteProtocolError | None = None
        while not (self.deaf or connection.state is _END):
            try:
                self.more = self._read_frames(connection, data)
            except RemoteProtocolError as fault:
                told = told or connection.fail(fault)
            else:
                break
        return told

    def clear(self) -> None:
        """The transport is gone: what was read in part is of no use."""
        self._chunks, self._have, self._need = [], 0, 0
        self._left, self.more = b"", False

    def _keep(self, buf: bytes) -> None:
        """No whole frame yet: do not look again before there are as many octets as it needs."""
        pos = self._pos
        self._have = len(buf) - pos
        self._chunks = [buf[pos:]]
        self._need = int.from_bytes(buf[pos : pos + 4], "big") if self.greeted and self._have >= 4 else 0

    def _read_header(self, connection: Connection, buf: bytes) -> bool:
        protocol_id = header_id(buf)
        if protocol_id is None:
            return False
        if protocol_id != AMQP_ID:
            raise rules.PROTOCOL_HEADER.broken(f"protocol id {protocol_id} where an AMQP header is due")
        self._pos = HEADER_SIZE
        self.greeted = True
        connection.on_header()
        return True

    def _read_frames(self, connection: Connection, buf: bytes) -> bool:
        """Read frame by frame; whether it was a slice that ended, and perhaps not the frames."""
        context = self._context
        pos, length = self._pos, len(buf)
        mapped = connection.channels.theirs
        limit = self._usual if connection.remote is not None else connection.frame_limit()
        last, session, frames, budget = -1, None, 0, self._budget
        if context.unfinished:
            self._go_on(context)
            if context.unfinished:
                return True
            budget -= context.changed // _CHANGED
            context.changed = 0
        end_of_frames = length - FRAME_HEADER_SIZE
        try:
            while pos <= end_of_frames and frames < budget:
                size, doff, kind, channel = _FRAME_HEADER.unpack_from(buf, pos)
                # The usual frame; parse_frame has the rules, and the error for each.
                if doff == 2 and 8 < size <= limit and pos + size <= length:
                    body, end = pos + 8, pos + size
                else:
                    frame = self._find_frame(buf, pos, limit)
                    if frame is None:
                        return False
                    kind, channel, body, end = frame
                pos = end
                frames += 1
                if channel != last:
                    last, session = channel, mapped.get(channel)
                if session is not None and kind == AMQP_FRAME and session.state is _MAPPED:
                    head = buf[body : body + 3]
                    if head == TRANSFER:
                        if fast_transfer(session, buf, body, end):
                            continue
                    elif head == DISPOSITION and fast_disposition(session, buf, body, end):
                        budget -= context.changed // _CHANGED
                        context.changed = 0
                        if context.unfinished and self._puts_off(context):
                            return True
                        continue
                budget -= _OTHER_FRAME - 1
                connection.on_frame(kind, channel, buf[body:end])
                budget -= context.changed // _CHANGED
                context.changed = 0
                if context.unfinished and self._puts_off(context):
                    return True
                if connection.state is _END:
                    return False
                last, limit = -1, connection.frame_limit()
            if pos <= end_of_frames:
                return True
            if pos < length:
                self._find_frame(buf, pos, limit)  # judges a size from its first four octets
            return False
        finally:
            self._pos = pos  # behind a frame that is at fault, too
            self.frames += frames
            self._budget = budget - frames

    def _puts_off(self, context: Context) -> bool:
        """Whether the rest of a frame is left for the next slice; where all is read at once, it is done now."""
        if self._sliced:
            return True
        context.finish_frame()
        return False

    def _go_on(self, context: Context) -> None:
        if self._sliced:
            context.go_on()
        else:
            context.finish_frame()

    def _find_frame(self, buf: bytes, pos: int, limit: int) -> tuple[int, int, int, int] | None:
        try:
            return parse_frame(
                buf,
                pos,
                limit,
                rules.MAX_FRAME_SIZE if limit == self._usual else rules.OPEN_FRAME_SIZE,
            )
        except RemoteProtocolError:
            self.deaf = True
            raise
