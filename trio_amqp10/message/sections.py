"""The sections of a message: order, kinds of body, how to read them (3.2).

None of this needs a message; ``section_writers`` is the way back. Knows nothing of deliveries or frames.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Mapping
from enum import Enum
from struct import Struct
from typing import Any, ClassVar, Final, cast

from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.protocol_rules import BODY_SECTIONS, SECTION_ORDER, SECTIONS, ProtocolRule
from trio_amqp10.spec import messaging as standard
from trio_amqp10.wire import codes
from trio_amqp10.wire.composite import Plan, Registry, Section, plan_of
from trio_amqp10.wire.composite_plan import descriptor_octets
from trio_amqp10.wire.decode import decode
from trio_amqp10.wire.decode_budget import MAX_NODES, Budget
from trio_amqp10.wire.pair_map import PairMap
from trio_amqp10.wire.values import Symbol, Timestamp, UByte, UInt, ULong

from .section_shapes import LearnedSpans
from .usual_readers import USUAL_READERS, short_body

__all__ = [
    "ANNOTATIONS",
    "APPLICATION_PROPERTIES",
    "BODY",
    "CODES",
    "DELIVERY_ANNOTATIONS",
    "FOOTER",
    "HEADER",
    "LAST_VERSION",
    "NAMES",
    "PLACES",
    "PROPERTIES",
    "Data",
    "Mark",
    "Sequence",
    "Span",
    "Value",
    "body_sections",
    "malformed",
    "only_body",
    "plain_octets",
    "read_section",
    "read_unusual",
    "scan",
    "section_code",
    "skip_value",
    "stored_body",
]

# The places of the sections, in the only order that is allowed (3.2); all body sections share one.
HEADER: Final = 0
DELIVERY_ANNOTATIONS: Final = 1
ANNOTATIONS: Final = 2
PROPERTIES: Final = 3
APPLICATION_PROPERTIES: Final = 4
BODY: Final = 5
FOOTER: Final = 6

LAST_VERSION: Final = 0xFF
"""The last message-format that is a version of the format 0: its lower octet is the version (2.8.11)."""

_HEADER: Final = plan_of(standard.Header)
_PROPERTIES: Final = plan_of(standard.Properties)
_KINDS: Final[dict[Plan | Section, int]] = {
    _HEADER: HEADER,
    standard.DELIVERY_ANNOTATIONS: DELIVERY_ANNOTATIONS,
    standard.MESSAGE_ANNOTATIONS: ANNOTATIONS,
    _PROPERTIES: PROPERTIES,
    standard.APPLICATION_PROPERTIES: APPLICATION_PROPERTIES,
    standard.DATA: BODY,
    standard.AMQP_SEQUENCE: BODY,
    standard.AMQP_VALUE: BODY,
    standard.FOOTER: FOOTER,
}
PLACES: Final = {int(kind.code): place for kind, place in _KINDS.items()}
NAMES: Final = {int(kind.code): str(kind.name) for kind in _KINDS}
CODES: Final = {name: code for code, name in NAMES.items()}
_DATA: Final = int(standard.DATA.code)
_SEQUENCE: Final = int(standard.AMQP_SEQUENCE.code)
_VALUE: Final = int(standard.AMQP_VALUE.code)

_TIMES: Final = (8, 9)  # absolute-expiry-time and creation-time, among the properties

Span = tuple[int, int]
_U32: Final = Struct(">I")


class Mark(Enum):
    """Not values of a section: an enum, because its members stay what they are through copy and pickle."""

    UNREAD = 0
    ABSENT = 1


_NO_LISTS: Final[tuple[type, ...]] = (str, bytes, bytearray, Mapping)
"""Iterables that nobody means as the list of their items."""

# The body, said outright --------------------------------------------------------------------------


class Data:
    """A body of opaque octets: one data section for each chunk (3.2.6)."""

    __slots__ = ("chunks",)

    def __init__(self, *chunks: bytes | bytearray | memoryview) -> None:
        for chunk in chunks:
            if not isinstance(chunk, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise LocalProtocolError(f"a data section holds bytes, not {type(chunk).__name__}")
        self.chunks: Final[tuple[bytes, ...]] = tuple([bytes(chunk) for chunk in chunks]) or (b"",)

    def __eq__(self, other: object) -> bool:
        return self.chunks == other.chunks if isinstance(other, Data) else NotImplemented

    def __hash__(self) -> int:
        return hash((Data, self.chunks))

    def __repr__(self) -> str:
        return f"Data({', '.join(map(repr, self.chunks))})"


class Sequence:
    """A body of structured items: one amqp-sequence section for each list (3.2.7)."""

    __slots__ = ("lists",)

    def __init__(self, *lists: Iterable[Any]) -> None:
        for items in lists:
            if isinstance(items, _NO_LISTS):
                raise LocalProtocolError("an amqp-sequence section holds a list, not text, octets or a map")
        self.lists: Final[tuple[list[Any], ...]] = tuple([list(items) for items in lists]) or ([],)

    def __eq__(self, other: object) -> bool:
        return self.lists == other.lists if isinstance(other, Sequence) else NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # its lists may change

    def __repr__(self) -> str:
        return f"Sequence({', '.join(map(repr, self.lists))})"


class Value:
    """A body that is a single value of any type: one amqp-value section (3.2.8)."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return bool(self.value == other.value) if isinstance(other, Value) else NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # its value may change

    def __repr__(self) -> str:
        return f"Value({self.value!r})"


def plain_octets(value: Any) -> Any:
    """A bytearray or memoryview as the bytes that it holds now; anything else as it is."""
    return bytes(cast("bytearray", value)) if isinstance(value, (bytearray, memoryview)) else value


def stored_body(body: Any) -> Any:
    """A body as a message keeps it: never None, which means a section that is not there."""
    if body is None:
        return Value(None)
    return plain_octets(body)


def body_sections(body: Any) -> tuple[Data | Sequence | Value, ...]:
    """A body as one object for each of its sections."""
    if body is Mark.ABSENT:
        return ()
    if isinstance(body, bytes):
        return (Data(body),)
    if isinstance(body, Data):
        return tuple([Data(chunk) for chunk in body.chunks])
    if isinstance(body, Sequence):
        return tuple([Sequence(items) for items in body.lists])
    return (body if isinstance(body, Value) else Value(body),)


# Octets to sections ---------------------------------------------------------------------------------


def scan(payload: bytes, in_order: bool = True) -> list[Span | None]:
    """Find the sections, without reading what is in them: (start, end) for each place, or None.

    Args:
        payload: a message, whole.
        in_order: False takes them in any order, the body still in one piece and all others once.

    Raises:
        RemoteProtocolError: unknown, repeated or misplaced sections, or octets that are none (3.2).
    """
    return _usual_spans(payload) or _scan_unusual(payload, in_order)


_USUAL: Final = {
    descriptor_octets(code) + bytes((constructor,)): place
    for code, place in PLACES.items()
    for constructor in (codes.LIST8, codes.MAP8, codes.BINARY8, codes.STRING8)
}
"""The place of a section, by four octets that are nearly always its first: then the fifth is the size of the rest."""

_LONG_BODIES: Final = (
    standard.DATA.prefix + bytes((codes.BINARY32,)),
    standard.AMQP_VALUE.prefix + bytes((codes.STRING32,)),
)
"""What a body that is not short nearly always begins with: then four octets are the size of the rest."""


def _read_usual_spans(payload: bytes) -> list[Span | None] | None:
    """Where the sections are, where each is there once and in order, and is short or, if it is the body, the last; or None."""
    spans: list[Span | None] = [None] * 7
    pos = 0
    end = len(payload)
    last_place = -1
    try:
        while (place := _USUAL.get(head := payload[pos : pos + 4], -1)) > last_place:
            stop = pos + 5 + payload[pos + 4]
            spans[place] = (pos, stop)
            if stop == end:
                return spans
            last_place, pos = place, stop
    except IndexError:
        return None
    if head in _LONG_BODIES and last_place < BODY:
        size = int.from_bytes(payload[pos + 4 : pos + 8], "big")
        if pos + 8 + size == end:
            spans[BODY] = (pos, end)
            return spans
    return None


_usual_spans: Final = LearnedSpans(_read_usual_spans).find


def _scan_unusual(payload: bytes, in_order: bool) -> list[Span | None]:
    """As ``scan``, of any sections."""
    spans: list[Span | None] = [None] * 7
    pos = 0
    end = len(payload)
    last_place = last_code = -1
    sections = 0
    while pos < end:
        start = pos
        try:
            code, pos = section_code(payload, pos)
            pos = skip_value(payload, pos)
            place = PLACES[code]
        except (IndexError, struct.error):
            raise malformed("the octets end inside a section") from None
        if pos > end:
            raise malformed("the octets end inside a section")
        if place > last_place:
            spans[place] = (start, pos)
        elif code == last_code and code in (_DATA, _SEQUENCE):
            sections += 1
            if sections == MAX_NODES:
                raise BODY_SECTIONS.broken(f"more than {MAX_NODES} body sections")
            first = spans[BODY]
            assert first is not None
            spans[BODY] = (first[0], pos)
        elif not in_order and spans[place] is None:
            spans[place] = (start, pos)
            place = last_place  # what was passed by is still judged by the furthest that came
        else:
            raise malformed(f"section {NAMES[code]} after {NAMES[last_code]}", SECTION_ORDER)
        last_place, last_code = place, code
    return spans


def section_code(payload: bytes, pos: int) -> tuple[int, int]:
    """The code of the section whose descriptor is at ``pos``, and where its value begins."""
    if payload[pos : pos + 2] == b"\x00\x53":
        descriptor: Any = payload[pos + 2]
        pos += 3
    elif payload[pos] == codes.DESCRIBED:
        descriptor, pos = _decode(payload, pos + 1, "the descriptor of a section")
        if isinstance(descriptor, Symbol):
            descriptor = CODES.get(descriptor, descriptor)
        elif not isinstance(descriptor, ULong):
            raise malformed(f"{descriptor!r} describes no section")
    else:
        raise malformed(f"{payload[pos]:#04x} begins no section")
    if descriptor not in PLACES:
        raise malformed(f"{descriptor!r} describes no section")
    return int(descriptor), pos


def only_body(payload: bytes) -> bytes | str | None:
    """The body of a payload that is one data section, or one short string, and nothing else; None for all others."""
    return short_body(payload, 0, len(payload))


_WIDTHS: Final = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}


def skip_value(payload: bytes, pos: int) -> int:
    """Where the value at ``pos`` ends, by its constructor's upper half alone (1.2)."""
    values = 1
    while values:
        code = payload[pos]
        pos += 1
        kind = code >> 4
        if kind >= 0xA:
            if kind & 1:
                pos += 4 + _U32.unpack_from(payload, pos)[0]
            else:
                pos += 1 + payload[pos]
        elif kind >= 0x4:
            pos += _WIDTHS[kind]
        elif code == codes.DESCRIBED:
            values += 2  # the descriptor, and what it describes
        else:
            raise malformed(f"{code:#04x} constructs no type")
        values -= 1
    return pos


_LISTS: Final = Registry(standard.Header, standard.Properties)


def read_section(place: int, payload: bytes, span: Span, allow_duplicates: bool = False) -> Any:
    """What is in the section: a list of fields, a map, or a body; the last of identical map keys, if they are allowed.

    Raises:
        RemoteProtocolError: with scope ``link``, so that only this message need be refused.
    """
    value = USUAL_READERS[place](payload, *span)
    return read_unusual(place, payload, span, allow_duplicates) if value is None else value


def read_unusual(place: int, payload: bytes, span: Span, allow_duplicates: bool = False) -> Any:
    """The same for any shape, for those that have tried ``USUAL_READERS`` themselves."""
    start, end = span
    if place == BODY:
        return _read_body(payload, start, end, allow_duplicates)
    code, pos = section_code(payload, start)
    name = NAMES[code]
    value, _ = _decode(payload, pos, name, Budget(allow_duplicate_keys=True) if allow_duplicates else None)
    if place in (HEADER, PROPERTIES):
        return _plain_fields(place, value) or _read_fields(place, payload, start, name)
    if value.__class__ is not dict and value.__class__ is not PairMap:
        raise malformed(f"{name} is not a map")
    return value


_PLAIN_CLASSES: Final[dict[int, tuple[frozenset[type], ...]]] = {
    HEADER: tuple(frozenset({each}) for each in (bool, UByte, UInt, bool, UInt)),
    PROPERTIES: tuple(
        frozenset(each)
        for each in (
            (str, bytes, uuid.UUID, ULong),
            (bytes,),
            (str,),
            (str,),
            (str,),
            (str, bytes, uuid.UUID, ULong),
            (Symbol,),
            (Symbol,),
            (Timestamp,),
            (Timestamp,),
            (str,),
            (UInt,),
            (str,),
        )
    ),
}


def _plain_fields(place: int, value: Any) -> Any:
    """The fields, if every one is of a class that it should be: several times faster than to
    read a composite. Otherwise None: whether that is wrong, and how, the composite tells."""
    classes = _PLAIN_CLASSES[place]
    if value.__class__ is not list or len(value) > len(classes):
        return None
    for each, allowed in zip(value, classes, strict=False):
        if each is not None and each.__class__ not in allowed:
            return None
    value.extend([None] * (len(classes) - len(value)))
    return value


def _read_fields(place: int, payload: bytes, start: int, name: str) -> list[Any]:
    composite, _ = _decode(payload, start, name, Budget(types=_LISTS))
    fields = list((_HEADER if place == HEADER else _PROPERTIES).values(composite))
    if place == PROPERTIES:
        for index in _TIMES:  # declared fields decode to plain integers
            if fields[index] is not None:
                fields[index] = Timestamp(fields[index])
    return fields


def _read_body(payload: bytes, start: int, end: int, allow_duplicates: bool) -> Any:
    code, pos = section_code(payload, start)
    budget = Budget(allow_duplicate_keys=allow_duplicates)
    values: list[Any] = []
    while True:
        value, pos = _decode(payload, pos, NAMES[code], budget)
        if code == _VALUE:  # described values stay as they are: what they mean, the reader knows
            return Value(value) if value is None or isinstance(value, bytes) else value
        if not isinstance(value, bytes if code == _DATA else list):
            raise malformed(f"{NAMES[code]} of type {type(value).__name__}")
        values.append(value)
        if pos == end:
            break
        _, pos = section_code(payload, pos)
    if code == _SEQUENCE:
        return Sequence(*values)
    return values[0] if len(values) == 1 else Data(*values)


def _decode(payload: bytes, pos: int, name: str, budget: Budget | None = None) -> tuple[Any, int]:
    try:
        return decode(payload, pos, budget)
    except RemoteProtocolError as error:
        raise RemoteProtocolError(
            f"{name}: {error.description}", error.condition, "link", rule=error.rule
        ) from None


def malformed(text: str, rule: ProtocolRule = SECTIONS) -> RemoteProtocolError:
    return rule.broken(text)
