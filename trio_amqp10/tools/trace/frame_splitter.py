"""Split one direction of a connection into protocol headers and frames.

Knows AMQP 1.0 (2.2, 2.3, 5.3.1), its draft of 2010, 0-9-1 (4.2.3), 10.3 and AMQP/Fast. Accepts any octets: octets that cannot be
decoded become a piece too, with the reason. Knows no state of a connection, so it also decodes frames that an engine would refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.draft_2010 import registries as draft_2010
from trio_amqp10.amqp10.spec import PERFORMATIVES, SASL_PERFORMATIVES
from trio_amqp10.amqp10.wire.frames import AMQP_FRAME, SASL_FRAME, parse_frame
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.protocol_headers import HEADER_SIZE

from .amqp091_pieces import READERS_091, reader_of_header, reader_of_server
from .amqp_fast_pieces import begins_fast, piece_fast_at
from .pieces import LARGEST, Piece

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .amqp091_pieces import Reader

__all__ = ["FrameSplitter", "Piece", "piece_at", "read_pieces"]

_REGISTRIES: Final = {AMQP_FRAME: PERFORMATIVES, SASL_FRAME: SASL_PERFORMATIVES}
_DRAFT: Final = {AMQP_FRAME: draft_2010.FRAME_BODIES, SASL_FRAME: draft_2010.SASL_FRAME_BODIES}
_DRAFT_BEGIN: Final = b"\x00\x80\x00\x00\x00\x01"
"""The upper half of a draft descriptor, which no final frame has (D 310-318)."""


READERS: Final[Mapping[str, Reader]] = {**READERS_091, "AMQP/Fast": piece_fast_at}
"""The readers of protocols whose frames are not those of AMQP 1.0, by their names."""


class FrameSplitter:
    """Splits a stream of octets, fed in chunks of any size, into pieces.

    A frame with an invalid header ends the decoding: the rest becomes one piece of octets, because the position of the next
    frame is unknown. If a stream begins with the header of AMQP 0-9-1, 10.3 or AMQP/Fast, or with the first frame of such a server,
    its frames are decoded by that protocol.

    Args:
        protocol: of a stream that begins with any frame, as ``ConnectionStatus.protocol`` has it; None for a stream from its
            first octet on.
    """

    __slots__ = ("_chunks", "_count", "_enough", "_lost", "_piece_at")

    def __init__(self, protocol: str | None = None) -> None:
        # The chunks are joined when the next frame can be complete: otherwise a large frame would be copied with each chunk.
        self._chunks: list[bytes] = []
        self._count = 0
        self._enough = 0
        self._piece_at: Reader | None = None if protocol is None else READERS.get(protocol, piece_at)
        self._lost: str | None = None

    @property
    def rest(self) -> bytes:
        """The octets of the incomplete piece."""
        return b"".join(self._chunks)

    @property
    def lost(self) -> str | None:
        """Why the next frame cannot be found; None while it can."""
        return self._lost

    def feed(self, data: bytes) -> list[Piece]:
        """Add ``data``, and return the pieces that it completes."""
        self._chunks.append(data)
        self._count += len(data)
        if self._count < self._enough:
            return []
        buffer = self.rest
        found: list[Piece] = []
        pos = 0
        while self._lost is None and pos < len(buffer):
            if self._piece_at is None:
                self._piece_at = _protocol_of(buffer)
                if self._piece_at is None:
                    break
            try:
                piece, end = self._piece_at(buffer, pos)
            except RemoteProtocolError as failure:
                self._lost = failure.description
                break
            if piece is None:
                break
            found.append(piece)
            pos = end
            if piece.is_header:
                self._piece_at = reader_of_header(piece.octets) or self._piece_at
        rest = buffer[pos:]
        if self._lost is not None and rest:
            found.append(Piece(rest, fault=self._lost))
            rest = b""
        self._chunks, self._count = [rest], len(rest)
        self._enough = _size_of(rest) if self._piece_at is piece_at else 0
        return found

    def finish(self) -> list[Piece]:
        """Return the incomplete piece at the end of the stream, if any."""
        rest = self.rest
        self._chunks, self._count, self._enough = [], 0, 0
        return [Piece(rest, fault="the stream ends within it")] if rest else []


def _size_of(begun: bytes) -> int:
    """Return the size of the frame that begins with ``begun`` (2.3.1).

    0 for a protocol header, or if the size is not known yet.
    """
    return 0 if len(begun) < 4 or begun[:4] == b"AMQP" else int.from_bytes(begun[:4], "big")


def _protocol_of(head: bytes) -> Reader | None:
    """Return the reader of a stream that begins with ``head``; None if it needs more."""
    older = reader_of_server(head)
    if older:
        return None if older is True else older
    fast = begins_fast(head)
    return None if fast is None else piece_fast_at if fast else piece_at


def read_pieces(octets: bytes) -> list[Piece]:
    """Return all pieces of one direction, including an incomplete last one."""
    splitter = FrameSplitter()
    return [*splitter.feed(octets), *splitter.finish()]


def piece_at(buffer: bytes, pos: int) -> tuple[Piece | None, int]:
    """Return the piece at ``pos`` and its end; None while octets are missing.

    Raises:
        RemoteProtocolError: the header of the frame is not valid, so its end is unknown.
    """
    head = buffer[pos : pos + 4]
    if b"AMQP".startswith(head) and len(head) < 4:
        return None, pos  # a header, or the size of a frame of a gigabyte: the next octet decides
    if head == b"AMQP":
        end = pos + HEADER_SIZE
        return (Piece(buffer[pos:end]), end) if len(buffer) >= end else (None, pos)
    frame = parse_frame(buffer, pos, LARGEST)
    if frame is None:
        return None, pos
    frame_type, channel, start, end = frame
    return _read(buffer[pos:end], frame_type, channel, buffer[start:end]), end


def _read(octets: bytes, frame_type: int, channel: int, body: bytes) -> Piece:
    registry = _REGISTRIES.get(frame_type)
    if registry is None:
        return Piece(octets, channel, frame_type, fault=f"unknown frame type {frame_type:#04x}")
    if not body:
        return Piece(octets, channel, frame_type)
    try:
        if body.startswith(_DRAFT_BEGIN):
            content = draft_2010.read(body, _DRAFT[frame_type])
            parts = (each.payload or b"" for each in getattr(content, "fragments", ()))
            return Piece(octets, channel, frame_type, content, b"".join(parts))
        performative, end = registry.decode(body)
    except RemoteProtocolError as failure:
        return Piece(octets, channel, frame_type, fault=failure.description)
    if frame_type == SASL_FRAME and body[end:]:  # They may be a part of a secret.
        return Piece(octets, channel, frame_type, fault=f"{len(body) - end} octets after a SASL performative")
    return Piece(octets, channel, frame_type, performative, body[end:])
