"""What the page of a capture shows: a row for each frame, its errors, lanes, deliveries and figures.

Made frame by frame, so that a live conversation needs to be kept once only. Knows no HTML. Secrets of the SASL layer are
not in it.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import Condition
from trio_amqp10.reply_codes import condition_of
from trio_amqp10.spec.messaging import Rejected
from trio_amqp10.spec.security import SaslCode, SaslOutcome

from .error_causes import cause_of
from .frame_text import describe, fields_of, redacted
from .lanes import Lanes
from .pieces import OtherProtocolPiece
from .session_tracking import ConversationTracker, outcome_name

if TYPE_CHECKING:
    from .frame_log import Entry, Way
    from .pieces import Piece

__all__ = ["MOST_ROWS", "PageModel"]

MOST_ROWS: Final = 200_000
"""Frames on a page; a browser can do no more. Those that follow are counted."""
_MOST_OCTETS: Final = 1024
"""Octets of a frame that are shown; the rest is counted."""
_MOST_TEXT: Final = 2000
"""Characters of a field, a headline or a description."""

_HEADLINE: Final = (
    "mechanism",
    "container_id",
    "name",
    "handle",
    "delivery_id",
    "first",
    "last",
    "link_credit",
    "code",
)
"""Fields that tell at a glance what a frame is about."""


class PageModel:
    """Fed with the frames of a capture, in their order."""

    def __init__(self) -> None:
        self._lanes = Lanes()
        self._trackers: dict[int, ConversationTracker] = {}
        self._rows: list[dict[str, Any]] = []
        self._headers: dict[int, dict[Way, list[bytes]]] = {}
        self._left_out = 0

    def __len__(self) -> int:
        """How many frames there were."""
        return len(self._rows) + self._left_out

    def feed(self, entry: Entry) -> None:
        """Another frame; beyond ``MOST_ROWS`` it is counted only."""
        if len(self._rows) >= MOST_ROWS:
            self._left_out += 1
            return
        number, piece = entry.conversation, entry.piece
        if number not in self._trackers:
            self._trackers[number] = ConversationTracker(number, self._lanes)
        lane, broken = self._trackers[number].place(len(self._rows), entry.way, piece)
        row: dict[str, Any] = {
            "at": None if entry.at is None or not isfinite(entry.at) else round(entry.at, 6),
            "way": entry.way,
            "lane": lane,
            "text": _cut(_headline(piece)),
            "fields": [] if piece.performative is None else _fields(piece),
            "octets": b64encode(redacted(piece)[:_MOST_OCTETS]).decode(),
            "size": len(piece.octets),
        }
        error = _error_of(piece) or (None if broken is None else _error("2.6.7", broken, _NO_CREDIT))
        if piece.is_header:
            error = self._compare_header(number, entry.way, piece) or error
        if error is not None:
            row["error"] = error
        self._rows.append(row)

    def _compare_header(self, number: int, way: Way, piece: Piece) -> dict[str, str] | None:
        """Each header of an end is answered by one of the other: the same, or what that end would rather have (2.2)."""
        ends = self._headers.setdefault(number, {">": [], "<": []})
        own, other = ends[way], ends["<" if way == ">" else ">"]
        own.append(piece.octets)
        if len(other) < len(own) or other[len(own) - 1] == piece.octets:
            return None
        return _error("2.2", "the two ends do not mean the same protocol", _OTHER_PROTOCOL)

    def as_json(self) -> dict[str, Any]:
        """All of it, in dicts, lists, strings and numbers. Lanes are numbered from left to right."""
        order = self._lanes.left_to_right()
        place = {lane: index for index, lane in enumerate(order)}
        lanes = [asdict(self._lanes.lanes[lane]) for lane in order]
        for lane in lanes:
            lane["parent"] = None if lane["parent"] is None else place[lane["parent"]]
            lane["name"] = _cut(lane["name"])
            lane["address"] = None if lane["address"] is None else _cut(lane["address"])
        deliveries = [
            {**asdict(each), "lane": place[each.lane], "tag": _tag_text(each.tag)}
            for each in self._lanes.deliveries
        ]
        return {
            "rows": [{**row, "lane": place[row["lane"]]} for row in self._rows],
            "leftOut": self._left_out,
            "lanes": lanes,
            "deliveries": deliveries,
            "series": [{**asdict(each), "lane": place[each.lane]} for each in self._lanes.series],
        }


_NO_CREDIT: Final = "The sender counts otherwise than the receiver, or the capture has missed a flow: look at the credit above."
_OTHER_PROTOCOL: Final = "The listener wants SASL or TLS first, or speaks another version or another protocol: its header says which."
_SASL_CODES: Final = {
    SaslCode.AUTH: "Wrong user name or password, or a mechanism that this user may not use.",
    SaslCode.SYS: "The server could not find out who this is: its log says more.",
    SaslCode.SYS_PERM: "The server cannot find out who this is until somebody repairs it: its log says more.",
    SaslCode.SYS_TEMP: "The server cannot find out who this is for now: try again later.",
}


def _error(section: str, what: str, usually: str) -> dict[str, str]:
    return {"section": section, "what": _cut(what), "usually": usually}


def _error_of(piece: Piece) -> dict[str, str] | None:
    """What went wrong by this frame, where, and what usually leads to it."""
    said = piece.performative
    if piece.fault is not None:
        cause = cause_of(Condition.FRAMING_ERROR if piece.frame_type is None else Condition.DECODE_ERROR)
        return _error("2.3", piece.fault, cause.usually)
    if isinstance(piece, OtherProtocolPiece):
        return _error_of_reply(piece) if piece.is_error else None
    if isinstance(said, SaslOutcome) and said.code is not SaslCode.OK:
        return _error("5.3.3.6", f"SASL outcome {said.code.name.lower()}", _SASL_CODES[said.code])
    error = getattr(said, "error", None)
    state = getattr(said, "state", None)
    if isinstance(state, Rejected):
        error = state.error
        if error is None:
            return _error(
                "3.4.2", "rejected", "The receiver does not take this message, and does not say why."
            )
    if error is None:
        return None
    cause = cause_of(str(error.condition))
    description = f": {error.description}" if error.description else ""
    return _error(cause.section, f"{error.condition}{description}", cause.usually)


def _error_of_reply(piece: OtherProtocolPiece) -> dict[str, str]:
    """An error of a protocol with reply codes; these are judged by what they amount to."""
    code = int(piece.performative.reply_code)
    text = getattr(piece.performative, "reply_text", "")
    condition = condition_of(code) or Condition.INTERNAL_ERROR
    return _error("reply codes", f"{code} {text}".rstrip(), cause_of(condition).usually)


def _headline(piece: Piece) -> str:
    """What can be read at a glance: the name, and where it leads."""
    said = piece.performative
    if said is None or isinstance(piece, OtherProtocolPiece):
        return describe(piece)
    parts = [piece.name]
    for name in _HEADLINE:
        value = getattr(said, name, None)
        if value is not None:
            parts.append(f"{name.replace('_', '-')} {int(value) if isinstance(value, int) else value}")
    for name in ("source", "target"):
        address = getattr(getattr(said, name, None), "address", None)
        if address is not None:
            parts.append(f"{name} {address}")
    outcome = outcome_name(getattr(said, "state", None))
    if outcome is not None:
        parts.append(outcome)
    error = getattr(said, "error", None)
    if error is not None:
        parts.append(str(error.condition))
    if piece.payload:
        parts.append(f"{len(piece.payload)} octets")
    return " \u00b7 ".join(parts)


def _fields(piece: Piece) -> list[list[str]]:
    return [[name.replace("_", "-"), _cut(value)] for name, value in fields_of(piece.performative).items()]


def _cut(text: str) -> str:
    rest = len(text) - _MOST_TEXT
    return text if rest <= 0 else f"{text[:_MOST_TEXT]} ... and {rest} characters more"


def _tag_text(tag: bytes) -> str:
    """A delivery-tag as people read it: as it is where it is ASCII, otherwise in hex."""
    return tag.decode() if tag and all(0x20 < octet < 0x7F for octet in tag) else tag.hex()
