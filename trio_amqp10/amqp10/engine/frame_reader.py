"""Read the protocol header and frames from chunks of any size (2.2, 2.3).

Knows where frames begin and end, and recognises transfers and dispositions by their first octets; the
connection and its sessions know the meaning of all frames.

Octets are read completely, or in slices, between which other connections can be served. A slice is 64
transfers or dispositions, or 64 KiB, or as much other work: another frame counts as eight, and so do 64
deliveries that a disposition changes. A disposition that changes very many deliveries is processed in part
and ends the slice: the rest is processed first in the next slices. A slice takes about half a millisecond.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.wire.frames import AMQP_FRAME, FRAME_HEADER_SIZE, parse_frame
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.protocol_headers import AMQP_ID, HEADER_SIZE, header_id

from .codec_shortcut import DISPOSITION, TRANSFER
from .incoming_transfers import fast_transfer
from .session_dispatch import fast_disposition
from .states import ConnectionState, SessionState

if TYPE_CHECKING:
    from .connection import Connection
    from .connection_context import Context

_END = ConnectionState.END
_MAPPED = SessionState.MAPPED
_FRAME_HEADER = Struct(">IBBH")

_SLICE: Final = 64
_OTHER_FRAME: Final = 8
_CHANGED: Final = 8
"""Units of a slice; units of another frame; deliveries that count as one unit."""
_ENDLESS: Final = 1 << 62
_WORTH: Final = 8192
"""If more octets than this follow a frame's end, only the frame is joined."""


class FrameReader:
    """The reader of the octets of one connection.

    Attributes:
        frames: the number of frames read so far, including empty ones.
        greeted: whether the peer's protocol header was read.
        deaf: whether the boundaries of frames are lost, so that nothing more can be read.
        more: whether a slice ended before the octets did: call ``read`` again, with more octets or none.
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
        self._left: bytes = b""  # after _pos, the octets that the last slice left
        self._budget = 0
        self._sliced = False
        self.frames: int = 0
        self.greeted: bool = False
        self.deaf: bool = False
        self.more: bool = False

    def read(
        self, connection: Connection, data: bytes, *, sliced: bool = False
    ) -> RemoteProtocolError | None:
        """Read all complete frames, or a slice of them, and keep the rest.

        Return the first fault that was sent to the peer. Frames after a fault are read too, because they may
        include the peer's close.

        The connection is an argument, not an attribute, so that no reference cycle keeps a finished
        connection alive.
        """
        if self.more:
            # The last slice left octets: continue there, and append the new ones.
            self.more = False
            if data:
                self._left, self._pos = self._left[self._pos :] + data, 0
            data, self._left = self._left, b""
        else:
            self._pos = 0
        self._sliced = sliced
        self._budget = _SLICE if sliced else _ENDLESS
        failure: RemoteProtocolError | None = None
        # A frame (or the protocol header) has begun and is not complete. Its chunks are joined once, when
        # the last has come, so that a large frame in small chunks costs no repeated copying.
        if self._chunks:
            missing = self._need - self._have
            self._have += len(data)
            if missing > len(data):
                self._chunks.append(data)
                return None
            if missing > 0 and len(data) - missing > _WORTH:
                # Many octets follow the end of this frame: join and read only the frame, and do not copy the rest.
                self._chunks.append(data[:missing])
                failure = self._read_all(connection, b"".join(self._chunks))
                self._chunks, self._pos = [], missing
            else:
                data = b"".join((*self._chunks, data))
        # The first eight octets are the protocol header (2.2), not a frame.
        if not self.greeted:
            try:
                if not self._read_header(connection, data):
                    self._keep(data)
                    return None
            except RemoteProtocolError as fault:
                connection.refuse_header()
                return fault
        later = self._read_all(connection, data)
        failure = failure or later
        if self.more:
            self._left, self._chunks = data, []
        elif self._pos < len(data):
            self._keep(data)
        elif self._chunks:
            self._chunks = []
        return failure

    def _read_all(self, connection: Connection, data: bytes) -> RemoteProtocolError | None:
        """Read the complete frames of ``data``, as far as the budget allows.

        Return the first fault that was sent to the peer.
        """
        failure: RemoteProtocolError | None = None
        while not (self.deaf or connection.state is _END):
            try:
                self.more = self._read_frames(connection, data)
            except RemoteProtocolError as fault:
                failure = failure or connection.fail(fault)
            else:
                break
        return failure

    def unread(self) -> bytes:
        """Return the octets that were given and not read yet."""
        return self._left[self._pos :] if self.more else b"".join(self._chunks)

    def clear(self) -> None:
        """Drop incomplete octets, because the transport is gone."""
        self._chunks, self._have, self._need = [], 0, 0
        self._left, self.more = b"", False

    def _keep(self, buf: bytes) -> None:
        """Keep an incomplete frame, with the size at which to look at it again."""
        pos = self._pos
        self._have = len(buf) - pos
        self._chunks = [buf[pos:]]
        self._need = int.from_bytes(buf[pos : pos + 4], "big") if self.greeted and self._have >= 4 else 0

    def _read_header(self, connection: Connection, buf: bytes) -> bool:
        """Read the protocol header; return False if it is not complete (2.2)."""
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
        """Read frame by frame; return whether the slice ended before the octets."""
        context = self._context
        pos, length = self._pos, len(buf)
        mapped = connection.channels.theirs
        limit = self._usual if connection.remote is not None else connection.frame_limit()
        # ``last`` is the channel of the frame before and ``session`` its session, so that a run of frames on one
        # channel, the usual case, looks up its session once.
        last, session, frames, budget = -1, None, 0, self._budget
        if context.unfinished:
            # A disposition of the last slice has not changed all its deliveries yet (2.7.6). The frames
            # after it must not overtake it.
            self._go_on(context)
            if context.unfinished:
                return True
            budget -= context.changed // _CHANGED
            context.changed = 0
        end_of_frames = length - FRAME_HEADER_SIZE
        try:
            while pos <= end_of_frames and frames < budget:
                size, doff, kind, channel = _FRAME_HEADER.unpack_from(buf, pos)
                # A complete frame with the usual header of eight octets (2.3.1). ``parse_frame`` reads every other
                # header, and raises the error of each rule that it may break.
                if doff == 2 and 8 < size <= limit and pos + size <= length:
                    body, end = pos + 8, pos + size
                else:
                    frame = self._find_frame(buf, pos, limit)
                    if frame is None:
                        # The frame is not complete: ``read`` keeps it.
                        return False
                    kind, channel, body, end = frame
                pos = end
                frames += 1
                # Look up the session that the peer mapped to this channel (2.5.1).
                if channel != last:
                    last, session = channel, mapped.get(channel)
                # On a mapped session a transfer or disposition of a common shape is processed directly in
                # the buffer. On a session that is ending, frames are discarded (2.5.5), which the general
                # path does.
                if session is not None and kind == AMQP_FRAME and session.state is _MAPPED:
                    head = buf[body : body + 3]
                    if head == TRANSFER:
                        if fast_transfer(session, buf, body, end):
                            # The frame counts as one unit of the slice, in ``frames``.
                            continue
                    elif head == DISPOSITION and fast_disposition(session, buf, body, end):
                        # One range may change any number of deliveries, so they are charged apart (2.7.6).
                        budget -= context.changed // _CHANGED
                        context.changed = 0
                        if context.unfinished and self._puts_off(context):
                            return True
                        continue
                # Every other frame, and a shape that the shortcuts do not know: decode it completely.
                budget -= _OTHER_FRAME - 1
                connection.on_frame(kind, channel, buf[body:end])
                budget -= context.changed // _CHANGED
                context.changed = 0
                if context.unfinished and self._puts_off(context):
                    return True
                if connection.state is _END:
                    return False
                # The frame may have been a begin, an end or an open, which change the session of a channel or the
                # largest frame (2.7.1): look up both again.
                last, limit = -1, connection.frame_limit()
            if pos <= end_of_frames:
                return True
            if pos < length:
                # Fewer octets than a frame header: an illegal size is already an error in its first four octets.
                self._find_frame(buf, pos, limit)
            return False
        finally:
            self._pos = pos  # after a frame that is at fault, too
            self.frames += frames
            self._budget = budget - frames

    def _puts_off(self, context: Context) -> bool:
        """Whether the rest of a disposition waits for the next slice.

        If octets are not read in slices, the rest is processed now.
        """
        if self._sliced:
            return True
        context.finish_frame()
        return False

    def _go_on(self, context: Context) -> None:
        """Process the next part of a disposition, or all of it if there are no slices."""
        if self._sliced:
            context.go_on()
        else:
            context.finish_frame()

    def _find_frame(self, buf: bytes, pos: int, limit: int) -> tuple[int, int, int, int] | None:
        """Parse a frame header; set ``deaf`` if it is malformed.

        Then the beginning of the next frame is not known.
        """
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
