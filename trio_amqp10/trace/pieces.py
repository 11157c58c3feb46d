"""One direction of a conversation, cut into protocol headers and frames (2.2, 2.3, 5.3.1).

Takes whatever comes: what cannot be read is a piece too, and says why. Knows no state of a connection,
so it reads what no engine would let pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.frames import AMQP_FRAME, SASL_FRAME, parse_frame
from trio_amqp10.headers import HEADER_SIZE
from trio_amqp10.spec import PERFORMATIVES, SASL_PERFORMATIVES

__all__ = ["FrameSplitter", "Piece", "piece_at", "read_pieces"]

_LARGEST: Final = 64 * 1024 * 1024
"""Octets of a frame that is believed: more begins no frame but HTTP, TLS, or the middle of something."""
_REGISTRIES: Final = {AMQP_FRAME: PERFORMATIVES, SASL_FRAME: SASL_PERFORMATIVES}


@dataclass(frozen=True, slots=True)
class Piece:
    """A protocol header, a frame, or octets that are neither.

    Attributes:
        octets: all of it, from the first octet to the last.
        channel: of a frame; None for anything else.
        frame_type: 0 for AMQP, 1 for SASL (2.3.1, 5.3.1); None where it is no frame.
        performative: what the frame carries; None for an empty frame, a header, or what could not be read.
        payload: what follows the performative (2.3.2).
        fault: why it could not be read, or None.
    """

    octets: bytes
    channel: int | None = None
    frame_type: int | None = None
    performative: Any = None
    payload: bytes = b""
    fault: str | None = None

    @property
    def is_header(self) -> bool:
        """Whether this is a protocol header (2.2)."""
        return self.frame_type is None and self.fault is None

    @property
    def is_empty(self) -> bool:
        """Whether this is an empty frame, which only keeps a connection from going idle (2.4.5)."""
        return self.frame_type is not None and self.performative is None and self.fault is None

    @property
    def name(self) -> str:
        """What it is in a word: the class of the performative, ``header``, ``empty frame`` or ``octets``."""
        if self.performative is not None:
            return type(self.performative).__name__
        if self.fault is not None:
            return "octets"
        return "header" if self.is_header else "empty frame"


class FrameSplitter:
    """Cuts a stream of octets into pieces, however it comes in.

    A frame whose header cannot be right ends it: the rest is one piece of octets, since nobody can
    tell where the next frame begins.
    """

    __slots__ = ("_buffer", "_lost")

    def __init__(self) -> None:
        self._buffer = b""
        self._lost: str | None = None

    @property
    def rest(self) -> bytes:
        """The octets of a piece that is not complete."""
        return self._buffer

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces that are complete with ``data``."""
        self._buffer += data
        found: list[Piece] = []
        pos = 0
        while self._lost is None and pos < len(self._buffer):
            try:
                piece, end = piece_at(self._buffer, pos)
            except RemoteProtocolError as failure:
                self._lost = failure.description
                break
            if piece is None:
                break
            found.append(piece)
            pos = end
        self._buffer = self._buffer[pos:]
        if self._lost is not None and self._buffer:
            found.append(Piece(self._buffer, fault=self._lost))
            self._buffer = b""
        return found

    def finish(self) -> list[Piece]:
        """What is left when the stream has ended: an unfinished piece, or nothing."""
        rest, self._buffer = self._buffer, b""
        return [Piece(rest, fault="the stream ends within it")] if rest else []


def read_pieces(octets: bytes) -> list[Piece]:
    """The pieces of a whole direction, the unfinished last one too."""
    splitter = FrameSplitter()
    return [*splitter.feed(octets), *splitter.finish()]


def piece_at(buffer: bytes, pos: int) -> tuple[Piece | None, int]:
    """The piece that begins at ``pos`` and where it ends; None while octets are missing.

    Raises:
        RemoteProtocolError: the header of a frame cannot be right, so nobody can tell where it ends.
    """
    head = buffer[pos : pos + 4]
    if b"AMQP".startswith(head) and len(head) < 4:
        return None, pos  # a header, or the size of a frame of a gigabyte: the next octet tells
    if head == b"AMQP":
        end = pos + HEADER_SIZE
        return (Piece(buffer[pos:end]), end) if len(buffer) >= end else (None, pos)
    frame = parse_frame(buffer, pos, _LARGEST)
    if frame is None:
        return None, pos
    frame_type, channel, start, end = frame
    return _read(buffer[pos:end], frame_type, channel, buffer[start:end]), end


def _read(octets: bytes, frame_type: int, channel: int, body: bytes) -> Piece:
    registry = _REGISTRIES.get(frame_type)
    if registry is None:
        return Piece(octets, channel, frame_type, fault=f"no frame type {frame_type:#04x}")
    if not body:
        return Piece(octets, channel, frame_type)
    try:
        performative, end = registry.decode(body)
    except RemoteProtocolError as failure:
        return Piece(octets, channel, frame_type, fault=failure.description)
    return Piece(octets, channel, frame_type, performative, body[end:])
