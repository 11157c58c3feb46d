"""Parts: the sections of a message as columns want them, straight from its octets (3.2).

What nearly every message is made of, short forms of simple types, is read here by hand; anything else
takes the long way, through ``_sections``, and so does whatever is wrong, for there it is told how. The
tests hold both ways against each other: delete the short ones, and all still works.

Sections: 1.6 (encodings), 3.2.1, 3.2.4, 3.2.5, 3.2.10. Knows neither Arrow nor options.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10._sections import BODY, HEADER, PLACES, PROPERTIES, read_section, scan
from trio_amqp10.wire import codes

from .typed_json import json_text, map_to_text, map_types

if TYPE_CHECKING:
    from trio_amqp10._sections import Span

    Spans = list[Span | None]
    Pairs = list[tuple[str, str]]

__all__ = ["NO_HEADER", "NO_PROPERTIES", "body", "header", "id_text", "pairs", "properties", "split", "types"]

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
    spans: Spans = [None] * 7
    position, end, last = 0, len(payload), -1
    try:
        while position < end:
            place = _NAMES[payload[position + 2]]
            if (
                payload[position]
                or payload[position + 1] != codes.SMALL_ULONG
                or place is None
                or place <= last
            ):
                return scan(payload)
            kind = payload[position + 3]
            if kind < 0xA0:
                return scan(payload)
            if kind & 0x10:
                after = position + 8 + int.from_bytes(payload[position + 4 : position + 8], "big")
            else:
                after = position + 5 + payload[position + 4]
            spans[place] = (position, after)
            position, last = after, place
    except IndexError:
        return scan(payload)
    return spans if position == end else scan(payload)


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


def properties(payload: bytes, span: Span | None) -> tuple[Any, ...] | None:
    """The thirteen fields as fifteen columns, each id with its type behind it; None where nothing is said."""
    if span is None:
        return None
    try:
        found = _properties(payload, *span)
    except (IndexError, UnicodeDecodeError):
        found = None
    if found is None:
        fields = read_section(PROPERTIES, payload, span)
        found = [None] * 15
        for index, value in enumerate(fields):
            if value is not None:
                _place(found, index, value)
    return None if found.count(None) == 15 else tuple(found)


def _properties(payload: bytes, position: int, end: int) -> list[Any] | None:
    """None for what is not to be read the short way."""
    if payload[position + 3] != codes.LIST8:
        return None
    count = payload[position + 5]
    position += 6
    if count > 13:
        return None
    found: list[Any] = [None] * 15
    for index in range(count):
        code = payload[position]
        if code == codes.NULL:
            position += 1
        elif code == codes.STRING8 and index in _STRINGS:
            start, position = position + 2, position + 2 + payload[position + 1]
            column = _COLUMNS[index]
            found[column] = payload[start:position].decode()
            if index in _IDS:
                found[column + 1] = "string"
        elif code == codes.SYMBOL8 and index in _SYMBOLS:
            start, position = position + 2, position + 2 + payload[position + 1]
            found[_COLUMNS[index]] = payload[start:position].decode("ascii")
        elif code == codes.TIMESTAMP and index in _MOMENTS:
            start, position = position + 1, position + 9
            _place(found, index, int.from_bytes(payload[start:position], "big", signed=True))
        elif code == codes.SMALL_ULONG and index in _IDS:
            _place(found, index, payload[position + 1])
            position += 2
        elif code == codes.ULONG and index in _IDS:
            start, position = position + 1, position + 9
            _place(found, index, int.from_bytes(payload[start:position], "big"))
        elif code == codes.UUID and index in _IDS:
            start, position = position + 1, position + 17
            _place(found, index, uuid.UUID(bytes=payload[start:position]))
        elif code == codes.BINARY8 and index in _BINARIES:
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
        found[column] = value * 1000 if -_MOST_MILLISECONDS < value < _MOST_MILLISECONDS else None
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
    if payload[position + 3] != codes.MAP8:
        return None
    count = payload[position + 5]
    position += 6
    if count & 1:
        return None
    found: dict[str, str] = {}
    for _ in range(count >> 1):
        code = payload[position]
        if code not in (codes.STRING8, codes.SYMBOL8):
            return None
        start, position = position + 2, position + 2 + payload[position + 1]
        key = payload[start:position].decode("ascii" if code == codes.SYMBOL8 else "utf-8")
        code = payload[position]
        if code == codes.STRING8:
            start, position = position + 2, position + 2 + payload[position + 1]
            found[key] = json_text(payload[start:position].decode())
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


_SMALL_SIGNED: Final = frozenset({codes.SMALL_INT, codes.SMALL_LONG})
_FIXED: Final = {
    codes.INT: (4, True),
    codes.LONG: (8, True),
    codes.UINT: (4, False),
    codes.SMALL_UINT: (1, False),
    codes.ULONG: (8, False),
    codes.SMALL_ULONG: (1, False),
}
"""Integers by code: octets, and whether they have a sign."""
_WORDS: Final = {
    codes.TRUE: "true",
    codes.FALSE: "false",
    codes.NULL: "null",
    codes.UINT0: "0",
    codes.ULONG0: "0",
}
