"""Records of who wrote which octets when, and the frame log: those as text.

A frame log is JSON, a line each. The first line says ``{"format": "amqp10-frame-log", "version": 1}``. Every other line is
one protocol header or one frame::

    {"at": 0.001327, "conversation": 1, "way": ">", "octets": "414d515000010000", "shows": "header AMQP 0 1.0.0 (AMQP)"}

``at`` is in seconds, from any beginning; ``way`` is ``>`` for what the one who dialled (or recorded) wrote, ``<`` for what it
read; ``shows`` is for people, and not read again. Knows no file and no clock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from trio_amqp10.errors import LocalProtocolError

from .frame_splitter import FrameSplitter, Piece
from .frame_text import describe, redacted

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FORMAT", "Entry", "FrameLog", "Record", "Way", "entries_of", "read_frame_log"]

Way = Literal[">", "<"]

FORMAT: Final = "amqp10-frame-log"
_HEAD: Final = json.dumps({"format": FORMAT, "version": 1})


@dataclass(frozen=True, slots=True)
class Record:
    """Octets that one end of a conversation wrote.

    Attributes:
        conversation: which one, from 1.
        way: ``>`` from the one who dialled or recorded, ``<`` from the other.
        octets: as they were on the wire.
        at: seconds, from any beginning; None where nobody knows.
    """

    conversation: int
    way: Way
    octets: bytes
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A piece of a conversation, and when and which way it went; the fields are those of ``Record``."""

    conversation: int
    way: Way
    piece: Piece
    at: float | None = None


class FrameLog:
    """Makes the lines of a frame log out of octets as they come.

    Args:
        secrets: keep what proves an identity in the SASL layer; otherwise it is replaced by ``*``.
    """

    def __init__(self, *, secrets: bool = False) -> None:
        self._secrets = secrets
        self._splitters: dict[tuple[int, Way], FrameSplitter] = {}

    def begin(self) -> str:
        """The first line."""
        return f"{_HEAD}\n"

    def feed(self, record: Record) -> str:
        """The lines of the pieces that are complete with these octets."""
        splitter = self._splitters.setdefault((record.conversation, record.way), FrameSplitter())
        pieces = splitter.feed(record.octets)
        return "".join(self._line(record.conversation, record.way, piece, record.at) for piece in pieces)

    def finish(self, at: float | None = None) -> str:
        """The lines of what was not complete at the end."""
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
    """The records of a frame log.

    Raises:
        LocalProtocolError: it is none, or a line of it is broken.
    """
    lines = text.splitlines()
    if not lines or _object(lines[0], 1).get("format") != FORMAT:
        raise LocalProtocolError(f'this is no frame log: its first line does not say "format": "{FORMAT}"')
    return [_record(line, number) for number, line in enumerate(lines[1:], 2) if line.strip()]


def entries_of(records: Iterable[Record]) -> list[Entry]:
    """Every piece of these conversations, in the order in which it was complete; unfinished ones come last."""
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
    said = _object(line, number)
    try:
        way = said["way"]
        octets = bytes.fromhex(said["octets"])
        conversation = int(said.get("conversation", 1))
        at = None if said.get("at") is None else float(said["at"])
    except (KeyError, ValueError, TypeError) as fault:
        raise LocalProtocolError(f"line {number} of the frame log is broken: {fault!r}") from None
    if way not in (">", "<"):
        raise LocalProtocolError(f'line {number} of the frame log is broken: "way" is > or <, not {way!r}')
    return Record(conversation, way, octets, at)


def _object(line: str, number: int) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError as fault:
        raise LocalProtocolError(f"line {number} of the frame log is no JSON: {fault}") from None
    if not isinstance(said, dict):
        raise LocalProtocolError(f"line {number} of the frame log is no JSON object")
    return cast("dict[str, Any]", said)
