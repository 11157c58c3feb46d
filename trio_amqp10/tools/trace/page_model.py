"""The contents of the page of a capture: frames, errors, lanes and figures.

Built frame by frame, so that a live conversation is not kept twice. Knows no HTML. Secrets of the SASL layer are not
included.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec.messaging import Rejected
from trio_amqp10.amqp10.spec.security import SaslCode, SaslOutcome
from trio_amqp10.core.errors import Condition
from trio_amqp10.core.reply_codes import condition_of

from .error_causes import cause_of
from .frame_text import describe, fields_of, redacted
from .lanes import Lanes
from .pieces import OtherProtocolPiece
from .session_tracking import ConversationTracker, outcome_name

if TYPE_CHECKING:
    from .frame_log import Entry, Way
    from .pieces import Piece

MOST_ROWS: Final = 200_000
"""The most frames on a page, which a browser can still show; the rest is counted."""
_MOST_OCTETS: Final = 1024
"""The most octets to show of a frame."""
_MOST_TEXT: Final = 2000
"""The most characters of a field, a headline or a description."""

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
"""The fields that summarise a frame."""


class PageModel:
    """The contents of a page, fed with the frames of a capture in their order."""

    def __init__(self) -> None:
        self._lanes = Lanes()
        self._trackers: dict[int, ConversationTracker] = {}
        self._rows: list[dict[str, Any]] = []
        self._headers: dict[int, dict[Way, list[bytes]]] = {}
        self._left_out = 0

    def __len__(self) -> int:
        """Return the number of frames, including those not shown."""
        return len(self._rows) + self._left_out

    def feed(self, entry: Entry) -> None:
        """Add a frame; after ``MOST_ROWS`` frames it is only counted."""
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
        """Return an error if the two ends sent different protocol headers.

        Each header of one end is answered by a header of the other: the same, or the one that it requires (2.2).
        """
        ends = self._headers.setdefault(number, {">": [], "<": []})
        own, other = ends[way], ends["<" if way == ">" else ">"]
        own.append(piece.octets)
        if len(other) < len(own) or other[len(own) - 1] == piece.octets:
            return None
        return _error("2.2", "the two ends use different protocols", _OTHER_PROTOCOL)

    def as_json(self) -> dict[str, Any]:
        """Return the contents as JSON values; lanes are numbered from left to right."""
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


_NO_CREDIT: Final = (
    "The sender and the receiver count differently, or the capture has missed a flow: see the credit above."
)
_OTHER_PROTOCOL: Final = (
    "The listener requires SASL or TLS first, or supports another version or protocol: see its header."
)
_SASL_CODES: Final = {
    SaslCode.AUTH: "Wrong user name or password, or a mechanism that this user may not use.",
    SaslCode.SYS: "The server failed to authenticate the user: see its log.",
    SaslCode.SYS_PERM: "The server cannot authenticate users until it is repaired: see its log.",
    SaslCode.SYS_TEMP: "The server cannot authenticate users now: try again later.",
}


def _error(section: str, what: str, usually: str) -> dict[str, str]:
    return {"section": section, "what": _cut(what), "usually": usually}


def _error_of(piece: Piece) -> dict[str, str] | None:
    """Return the error that a frame reports or causes: section, text and usual cause."""
    content = piece.performative
    if piece.fault is not None:
        cause = cause_of(Condition.FRAMING_ERROR if piece.frame_type is None else Condition.DECODE_ERROR)
        return _error("2.3", piece.fault, cause.usually)
    if isinstance(piece, OtherProtocolPiece):
        return _error_of_reply(piece) if piece.is_error else None
    if isinstance(content, SaslOutcome) and content.code is not SaslCode.OK:
        return _error("5.3.3.6", f"SASL outcome {content.code.name.lower()}", _SASL_CODES[content.code])
    error = getattr(content, "error", None)
    state = getattr(content, "state", None)
    if isinstance(state, Rejected):
        error = state.error
        if error is None:
            return _error("3.4.2", "rejected", "The receiver refused this message without a reason.")
    if error is None:
        return None
    cause = cause_of(str(error.condition))
    description = f": {error.description}" if error.description else ""
    return _error(cause.section, f"{error.condition}{description}", cause.usually)


def _error_of_reply(piece: OtherProtocolPiece) -> dict[str, str]:
    """Return the error of a reply code, with the cause of the same condition of 1.0."""
    code = int(piece.performative.reply_code)
    text = getattr(piece.performative, "reply_text", "")
    condition = condition_of(code) or Condition.INTERNAL_ERROR
    return _error("reply codes", f"{code} {text}".rstrip(), cause_of(condition).usually)


def _headline(piece: Piece) -> str:
    """Summarise a piece: its name, its main fields and its addresses."""
    content = piece.performative
    if content is None or isinstance(piece, OtherProtocolPiece):
        return describe(piece)
    parts = [piece.name]
    for name in _HEADLINE:
        value = getattr(content, name, None)
        if value is not None:
            parts.append(f"{name.replace('_', '-')} {int(value) if isinstance(value, int) else value}")
    for name in ("source", "target"):
        address = getattr(getattr(content, name, None), "address", None)
        if address is not None:
            parts.append(f"{name} {address}")
    outcome = outcome_name(getattr(content, "state", None))
    if outcome is not None:
        parts.append(outcome)
    error = getattr(content, "error", None)
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
    """Return a delivery-tag as text if it is ASCII, otherwise in hex."""
    return tag.decode() if tag and all(0x20 < octet < 0x7F for octet in tag) else tag.hex()
