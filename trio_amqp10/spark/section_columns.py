"""Parse the sections of a message into columns, from its octets (3.2).

What nearly every message is made of, short forms of simple types, is read here by hand; anything else
takes the long way, through ``_sections``, and so does whatever is wrong, for there it is told how. The
tests hold both ways against each other: delete the short ones, and all still works.

Sections: 1.6 (encodings), 3.2.1, 3.2.4, 3.2.5, 3.2.10. Knows neither Arrow nor options.
"""

from __future__ import annotations

import uuid
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.message.sections import ANNOTATIONS, BODY, HEADER, PLACES, PROPERTIES, read_section, scan
from trio_amqp10.wire.codes import (
    BINARY8,
    FALSE,
    INT,
    LIST8,
    LONG,
    MAP8,
    NULL,
    SMALL_INT,
    SMALL_LONG,
    SMALL_UINT,
    SMALL_ULONG,
    STRING8,
    SYMBOL8,
    TIMESTAMP,
    TRUE,
    UINT,
    UINT0,
    ULONG,
    ULONG0,
    UUID,
)

from .typed_json import map_to_text, map_types

if TYPE_CHECKING:
    from trio_amqp10.message.sections import Span

    Spans = list[Span | None]
    Pairs = list[tuple[str, str]]
    Tails = dict[bytes, tuple[int, list[Any]]]

__all__ = [
    "NO_HEADER",
    "NO_PROPERTIES",
    "body",
    "header",
    "id_text",
    "pairs",
    "properties",
    "split",
    "split_behind",
    "types",
]

NO_HEADER: Final = (False, 4, None, False, 0)
"""What holds where a header says nothing (3.2.1)."""
NO_PROPERTIES: Final = (None,) * 15

_MOST_MILLISECONDS: Final = 2**63 // 1000
"""Beyond, a moment cannot be told in microseconds."""
_DATA: Final = 0x75
_VALUE: Final = 0x77
_NAMES: Final = [PLACES.get(code) for code in range(256)]


def split(payload: bytes) -> Spans:
    """As ``scan``: where the sections are.

    Raises:
        RemoteProtocolError: that cannot be told.
    """
    return _walk(payload, 0, -1) or scan(payload)


def split_behind(payload: bytes, start: int) -> Spans | None:
    """Where the sections are that begin at ``start``; None if the short way does not tell, or others than those after the annotations."""
    return _walk(payload, start, ANNOTATIONS)


def _walk(payload: bytes, position: int, last: int) -> Spans | None:
    spans: Spans = [None] * 7
    end = len(payload)
    try:
        while position < end:
            place = _NAMES[payload[position + 2]]
            if payload[position] or payload[position + 1] != SMALL_ULONG or place is None or place <= last:
                return None
            kind = payload[position + 3]
            if kind < 0xA0:
                return None
            if kind & 0x10:
                after = position + 8 + int.from_bytes(payload[position + 4 : position + 8], "big")
            else:
                after = position + 5 + payload[position + 4]
            spans[place] = (position, after)
            position, last = after, place
    except IndexError:
        return None
    return spans if position == end else None


def body(payload: bytes, spans: Spans) -> Any:
    """As ``_sections`` reads a body: octets are data, ``Value`` says what could be mistaken; None for no body at all."""
    span = spans[BODY]
    if span is None:
        return None
    start, end = span
    head = payload[start : start + 4]
    if head == b"\x00\x53\x75\xa0":
        if start + 5 + payload[start + 4] == end:  # not so where one data section follows another
            return payload[start + 5 : end]
    elif head == b"\x00\x53\x75\xb0":
        if start + 8 + int.from_bytes(payload[start + 4 : start + 8], "big") == end:
            return payload[start + 8 : end]
    elif head == b"\x00\x53\x77\xa1":
        try:
            return payload[start + 5 : end].decode()
        except UnicodeDecodeError:
            pass
    return read_section(BODY, payload, span)


def header(payload: bytes, span: Span | None) -> tuple[Any, ...]:
    """The five fields, defaults filled in."""
    if span is None:
        return NO_HEADER
    fields = read_section(HEADER, payload, span)
    return tuple([usual if said is None else said for said, usual in zip(fields, NO_HEADER, strict=True)])


# Properties ---------------------------------------------------------------------------------------

_IDS: Final = (0, 5)
_COLUMNS: Final = (0, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14)
"""Where each field goes: an id is followed by its type."""
_STRINGS: Final = frozenset({0, 2, 3, 4, 5, 10, 12})
_BINARIES: Final = frozenset({0, 1, 5})
_SYMBOLS: Final = frozenset({6, 7})
_MOMENTS: Final = frozenset({8, 9})
_GROUP_SEQUENCE: Final = 11


def properties(payload: bytes, span: Span | None, tails: Tails) -> list[Any] | None:
    """The thirteen fields as fifteen columns, each id with its type behind it; None where nothing is said.

    Args:
        payload: the message.
        span: where the section is.
        tails: what fields behind the first have been read as; for the id differs from message to message,
            and all else is often the same.
    """
    if span is None:
        return None
    try:
        found = _properties(payload, *span, tails)
    except (IndexError, UnicodeDecodeError):
        found = None
    if found is None:
        fields = read_section(PROPERTIES, payload, span)
        found = [None] * 15
        for index, value in enumerate(fields):
            if value is not None:
                _place(found, index, value)
    return None if found[0] is None and found.count(None) == 15 else found


def _properties(payload: bytes, position: int, end: int, tails: Tails) -> list[Any] | None:
    """None for what is not to be read the short way."""
    if payload[position + 3] != LIST8:
        return None
    count = payload[position + 5]
    position += 6
    if payload[position] != STRING8 or count > 13:
        return _fields(payload, position, end, 0, count)
    start, position = position + 2, position + 2 + payload[position + 1]
    if position > end:
        return None
    name = payload[start:position].decode()
    octets = payload[position:end]
    known = tails.get(octets)
    if known is None or known[0] != count:
        tail = _fields(payload, position, end, 1, count)
        if tail is None:
            return None
        known = tails[octets] = (count, tail[2:])
    return [name, "string", *known[1]]


def _fields(payload: bytes, position: int, end: int, first: int, count: int) -> list[Any] | None:
    if count > 13:
        return None
    found: list[Any] = [None] * 15
    for index in range(first, count):
        code = payload[position]
        if code == NULL:
            position += 1
        elif code == STRING8 and index in _STRINGS:
            start, position = position + 2, position + 2 + payload[position + 1]
            column = _COLUMNS[index]
            found[column] = payload[start:position].decode()
            if index in _IDS:
                found[column + 1] = "string"
        elif code == SYMBOL8 and index in _SYMBOLS:
            start, position = position + 2, position + 2 + payload[position + 1]
            found[_COLUMNS[index]] = payload[start:position].decode("ascii")
        elif code == TIMESTAMP and index in _MOMENTS:
            start, position = position + 1, position + 9
            _place(found, index, int.from_bytes(payload[start:position], "big", signed=True))
        elif code == SMALL_ULONG and index in _IDS:
            _place(found, index, payload[position + 1])
            position += 2
        elif code == ULONG and index in _IDS:
            start, position = position + 1, position + 9
            _place(found, index, int.from_bytes(payload[start:position], "big"))
        elif code == UUID and index in _IDS:
            start, position = position + 1, position + 17
            _place(found, index, uuid.UUID(bytes=payload[start:position]))
        elif code == BINARY8 and index in _BINARIES:
            start, position = position + 2, position + 2 + payload[position + 1]
            _place(found, index, payload[start:position])
        else:
            return None
        if position > end:
            return None
    return found if position == end else None


def _place(found: list[Any], index: int, value: Any) -> None:
    column = _COLUMNS[index]
    if index in _IDS:
        found[column], found[column + 1] = id_text(value)
    elif index in _MOMENTS:
        found[column] = value * 1000 if -_MOST_MILLISECONDS <= value <= _MOST_MILLISECONDS else None
    else:
        found[column] = value


def id_text(value: Any) -> tuple[str | None, str | None]:
    """A message-id as text, and which of its four types it is (3.2.11)."""
    if value is None:
        return None, None
    if isinstance(value, str):
        return str(value), "string"
    if isinstance(value, int):
        return str(int(value)), "ulong"
    if isinstance(value, uuid.UUID):
        return str(value), "uuid"
    return value.hex(), "binary"


# Maps ---------------------------------------------------------------------------------------------


def pairs(place: int, payload: bytes, span: Span | None) -> Pairs | None:
    """The keys of a map, and its values as JSON; None where it is empty, or not there."""
    if span is None:
        return None
    try:
        found = _pairs(payload, *span)
    except (IndexError, UnicodeDecodeError):
        found = None
    if found is None:
        found = map_to_text(read_section(place, payload, span))
    return found or None


def types(place: int, payload: bytes, span: Span | None, key_type: type[str]) -> Pairs | None:
    """The keys of a map, and the types of its values."""
    if span is None:
        return None
    return map_types(read_section(place, payload, span), key_type) or None


def _pairs(payload: bytes, position: int, end: int) -> Pairs | None:
    """None for what is not to be read the short way: large maps, compound values, long texts, keys that come twice."""
    if payload[position + 3] != MAP8:
        return None
    count = payload[position + 5]
    position += 6
    if count & 1:
        return None
    found: dict[str, str] = {}
    for _ in range(count >> 1):
        code = payload[position]
        start = position + 2
        position = start + payload[position + 1]
        if code == STRING8:
            key = payload[start:position].decode()
        elif code == SYMBOL8:
            key = payload[start:position].decode("ascii")
        else:
            return None
        code = payload[position]
        if code == STRING8:
            start = position + 2
            position = start + payload[position + 1]
            found[key] = encode_basestring(payload[start:position].decode())
        elif code in _SMALL_SIGNED:
            value = payload[position + 1]
            found[key] = str(value - 256 if value > 127 else value)
            position += 2
        elif code in _FIXED:
            size, signed = _FIXED[code]
            start, position = position + 1, position + 1 + size
            found[key] = str(int.from_bytes(payload[start:position], "big", signed=signed))
        elif code in _WORDS:
            found[key] = _WORDS[code]
            position += 1
        else:
            return None
        if position > end:
            return None
    return list(found.items()) if position == end and len(found) == count >> 1 else None


_SMALL_SIGNED: Final = frozenset({SMALL_INT, SMALL_LONG})
_FIXED: Final = {
    INT: (4, True),
    LONG: (8, True),
    UINT: (4, False),
    SMALL_UINT: (1, False),
    ULONG: (8, False),
    SMALL_ULONG: (1, False),
}
"""Integers by code: octets, and whether they have a sign."""
_WORDS: Final = {
    TRUE: "true",
    FALSE: "false",
    NULL: "null",
    UINT0: "0",
    ULONG0: "0",
}
