"""Records of the octets of a conversation, and the frame log, their text format.

A frame log has one JSON object on each line. The first line is ``{"format": "amqp10-frame-log", "version": 1}``. Every other
line is one protocol header or one frame::

    {"at": 0.001327, "conversation": 1, "way": ">", "octets": "414d515000010000", "shows": "header AMQP 0 1.0.0 (AMQP)"}

``at`` is in seconds since any start; ``way`` is ``>`` if the dialling (or recording) end wrote the octets, ``<`` if it read
them; ``shows`` is for people, and ignored when a log is read. Knows no file and no clock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from trio_amqp10.core.errors import LocalProtocolError

from .frame_splitter import FrameSplitter, Piece
from .frame_text import describe, redacted

if TYPE_CHECKING:
    from collections.abc import Iterable

Way = Literal[">", "<"]

FORMAT: Final = "amqp10-frame-log"
_HEAD: Final = json.dumps({"format": FORMAT, "version": 1})


@dataclass(frozen=True, slots=True)
class Record:
    """Octets that one end of a conversation wrote.

    Attributes:
        conversation: the number of the conversation, from 1.
        way: ``>`` from the dialling or recording end, ``<`` from the other end.
        octets: the octets of the wire.
        at: seconds since any start; None if unknown.
    """

    conversation: int
    way: Way
    octets: bytes
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A piece of a conversation, its direction and time, as in ``Record``."""

    conversation: int
    way: Way
    piece: Piece
    at: float | None = None


class FrameLog:
    """A writer of a frame log, fed with octets as they arrive.

    Args:
        secrets: whether to keep the secrets of the SASL layer; otherwise they are replaced by ``*``.
    """

    def __init__(self, *, secrets: bool = False) -> None:
        self._secrets = secrets
        self._splitters: dict[tuple[int, Way], FrameSplitter] = {}

    def begin(self) -> str:
        """Return the first line."""
        return f"{_HEAD}\n"

    def feed(self, record: Record) -> str:
        """Return the lines of the pieces that these octets complete."""
        splitter = self._splitters.setdefault((record.conversation, record.way), FrameSplitter())
        pieces = splitter.feed(record.octets)
        return "".join(self._line(record.conversation, record.way, piece, record.at) for piece in pieces)

    def finish(self, at: float | None = None) -> str:
        """Return the lines of the pieces that are incomplete at the end."""
        return "".join(
            self._line(conversation, way, piece, at)
            for (conversation, way), splitter in self._splitters.items()
            for piece in splitter.finish()
        )

    def _line(self, conversation: int, way: Way, piece: Piece, at: float | None) -> str:
        octets = piece.octets if self._secrets else redacted(piece)
        shown = {
            "at": None if at is None else round(at, 6),
            "conversation": conversation,
            "way": way,
            "octets": octets.hex(),
            "shows": describe(piece),
        }
        return f"{json.dumps(shown)}\n"


def read_frame_log(text: str) -> list[Record]:
    """Read the records of a frame log.

    Raises:
        LocalProtocolError: the text is not a frame log, or one of its lines is not valid.
    """
    lines = text.splitlines()
    if not lines or _object(lines[0], 1).get("format") != FORMAT:
        raise LocalProtocolError(
            f'the file is not a frame log, which begins with a line that contains "format": "{FORMAT}"'
        )
    return [_record(line, number) for number, line in enumerate(lines[1:], 2) if line.strip()]


def entries_of(records: Iterable[Record]) -> list[Entry]:
    """Return the pieces of these conversations, in the order of their completion.

    Incomplete pieces come last.
    """
    splitters: dict[tuple[int, Way], FrameSplitter] = {}
    entries: list[Entry] = []
    for record in records:
        splitter = splitters.setdefault((record.conversation, record.way), FrameSplitter())
        entries += [
            Entry(record.conversation, record.way, piece, record.at) for piece in splitter.feed(record.octets)
        ]
    for (conversation, way), splitter in splitters.items():
        entries += [Entry(conversation, way, piece) for piece in splitter.finish()]
    return entries


def _record(line: str, number: int) -> Record:
    fields = _object(line, number)
    try:
        way = fields["way"]
        octets = bytes.fromhex(fields["octets"])
        conversation = int(fields.get("conversation", 1))
        at = None if fields.get("at") is None else float(fields["at"])
    except (KeyError, ValueError, TypeError) as fault:
        raise LocalProtocolError(f"line {number} of the frame log is not valid: {fault!r}") from None
    if way not in (">", "<"):
        raise LocalProtocolError(
            f'line {number} of the frame log is not valid: "way" must be > or <, not {way!r}'
        )
    return Record(conversation, way, octets, at)


def _object(line: str, number: int) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except ValueError as fault:
        raise LocalProtocolError(f"line {number} of the frame log is not JSON: {fault}") from None
    if not isinstance(fields, dict):
        raise LocalProtocolError(f"line {number} of the frame log is not a JSON object")
    return cast("dict[str, Any]", fields)
