"""Parses the sections of a message into columns, from its octets (3.2).

The short encodings of simple types, of which nearly every message consists, are parsed here (the short way). All
others, and all damaged messages, are decoded by ``read_section`` (the long way), which raises errors with a reason.
Tests compare both: without the short way, all would still work.

Sections: 1.6 (encodings), 3.2.1, 3.2.4, 3.2.5, 3.2.10. Knows neither Arrow nor options.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message.sections import (
    ANNOTATIONS,
    BODY,
    HEADER,
    PLACES,
    PROPERTIES,
    read_section,
    scan,
)
from trio_amqp10.amqp10.wire.codes import (
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
    from trio_amqp10.amqp10.message.sections import Span

    Spans = list[Span | None]
    Pairs = list[tuple[str, str | None]]
    Tails = dict[bytes, tuple[int, list[Any]]]

NO_HEADER: Final = (False, 4, None, False, 0)
"""The values of the header fields if they are not set (3.2.1)."""
NO_PROPERTIES: Final = (None,) * 15

_MOST_MILLISECONDS: Final = 2**63 // 1000
"""The largest timestamp that can be expressed in microseconds."""
_NAMES: Final = [PLACES.get(code) for code in range(256)]


def split(payload: bytes) -> Spans:
    """Return where the sections are, as ``scan`` does.

    Raises:
        RemoteProtocolError: the message is damaged.
    """
    return _walk(payload, 0, -1) or scan(payload)


def split_behind(payload: bytes, start: int) -> Spans | None:
    """Return where the sections from ``start`` on are.

    None if the short way cannot parse them, or one is not of those after the annotations.
    """
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
    """Return the body as ``read_section`` does; None if there is no body.

    Bytes are a data section; a ``Value`` wraps a value that could be mistaken for another kind of body.
    """
    span = spans[BODY]
    if span is None:
        return None
    start, end = span
    head = payload[start : start + 4]
    if head == b"\x00\x53\x75\xa0":
        if start + 5 + payload[start + 4] == end:  # not true if another data section follows
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
    """Return the five fields, with defaults (3.2.1)."""
    if span is None:
        return NO_HEADER
    fields = read_section(HEADER, payload, span)
    return tuple([usual if value is None else value for value, usual in zip(fields, NO_HEADER, strict=True)])


# Properties ---------------------------------------------------------------------------------------

_IDS: Final = (0, 5)
_COLUMNS: Final = (0, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14)
"""The column of each field: an id is followed by a column with its type."""
_STRINGS: Final = frozenset({0, 2, 3, 4, 5, 10, 12})
_BINARIES: Final = frozenset({0, 1, 5})
_SYMBOLS: Final = frozenset({6, 7})
_MOMENTS: Final = frozenset({8, 9})


def properties(payload: bytes, span: Span | None, tails: Tails) -> list[Any] | None:
    """Return the thirteen fields as fifteen columns: each id is followed by its type.

    Fields that are not set are None; so is the result, if no field is set.

    Args:
        payload: the message.
        span: where the section is.
        tails: a cache of the fields after the first: usually only the message-id differs from message to message.
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
    """Parse the fields the short way; None if it cannot parse them."""
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
    """Return a message-id as text, and the name of its type (3.2.11)."""
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
    """Return the keys of a map, and its values as text; None for no entries."""
    if span is None:
        return None
    try:
        found = _pairs(payload, *span)
    except (IndexError, UnicodeDecodeError):
        found = None
    if found is None:
        found = map_to_text(read_section(place, payload, span))
    return found or None


def types(place: int, payload: bytes, span: Span | None, key_type: type[str]) -> list[tuple[str, str]] | None:
    """Return the keys of a map, and the types of its values; None as for ``pairs``."""
    if span is None:
        return None
    return map_types(read_section(place, payload, span), key_type) or None


def _pairs(payload: bytes, position: int, end: int) -> Pairs | None:
    """Parse a map the short way; None if it cannot parse the map.

    That is so for large maps, compound values, long texts, and repeated keys.
    """
    if payload[position + 3] != MAP8:
        return None
    count = payload[position + 5]
    position += 6
    if count & 1:
        return None
    found: dict[str, str | None] = {}
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
            found[key] = payload[start:position].decode()
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
"""The integers by code: the number of octets, and whether they are signed."""
_WORDS: Final = {
    TRUE: "true",
    FALSE: "false",
    NULL: None,
    UINT0: "0",
    ULONG0: "0",
}
