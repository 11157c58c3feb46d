"""The sections of a message: order, kinds of body, how to read them (3.2).

Needs no message; ``section_writers`` is the reverse. Knows nothing of deliveries or frames.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Mapping
from enum import Enum
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from trio_amqp10.amqp10.spec import messaging as standard
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.composite import Plan, Registry, Section, plan_of
from trio_amqp10.amqp10.wire.composite_plan import descriptor_octets
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.decode_budget import MAX_NODES, Budget
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import Symbol, Timestamp, UByte, UInt, ULong
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.peer_rules import BODY_SECTIONS, SECTION_ORDER, SECTIONS, ProtocolRule

from .readers_shortcut import USUAL_READERS, short_body
from .section_shapes_shortcut import LearnedSpans

if TYPE_CHECKING:
    from trio_amqp10.core.tolerances import Tolerances

# The places of the sections, in the only order that is allowed (3.2); all body sections share one.
HEADER: Final = 0
DELIVERY_ANNOTATIONS: Final = 1
ANNOTATIONS: Final = 2
PROPERTIES: Final = 3
APPLICATION_PROPERTIES: Final = 4
BODY: Final = 5
FOOTER: Final = 6

LAST_VERSION: Final = 0xFF
"""The last message-format that is a version of format 0 (2.8.11).

The lower octet is the version.
"""

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
    """Marks in place of a section's value; an enum, so that copy and pickle keep them."""

    UNREAD = 0
    ABSENT = 1


_NO_LISTS: Final[tuple[type, ...]] = (str, bytes, bytearray, Mapping)
"""Iterables that are never meant as a list of their items."""

# Kinds of body -----------------------------------------------------------------------------------


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
    """Return a bytearray or memoryview as bytes, and any other value unchanged."""
    return bytes(cast("bytearray", value)) if isinstance(value, (bytearray, memoryview)) else value


def stored_body(body: Any) -> Any:
    """Return a body in its stored form, never None, which means an absent section."""
    if body is None:
        return Value(None)
    return plain_octets(body)


def body_sections(body: Any) -> tuple[Data | Sequence | Value, ...]:
    """Return a body as one object for each of its sections."""
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


def scan(payload: bytes, in_order: bool = True, tolerances: Tolerances | None = None) -> list[Span | None]:
    """Find the sections without decoding them: (start, end) or None for each place.

    Args:
        payload: a message, complete.
        in_order: False accepts them in any order, but the body in one piece and all other sections once.
        tolerances: counts a message that is accepted only so; None for no count.

    Raises:
        RemoteProtocolError: a section is unknown, repeated, misplaced or malformed (3.2).
    """
    return _usual_spans(payload) or _scan_unusual(payload, in_order, tolerances)


_USUAL: Final = {
    descriptor_octets(code) + bytes((constructor,)): place
    for code, place in PLACES.items()
    for constructor in (codes.LIST8, codes.MAP8, codes.BINARY8, codes.STRING8)
}
"""The place of a section by its usual first four octets; its size is the fifth."""

_LONG_BODIES: Final = (
    standard.DATA.prefix + bytes((codes.BINARY32,)),
    standard.AMQP_VALUE.prefix + bytes((codes.STRING32,)),
)
"""The usual first octets of a long body; the next four are its size."""


def _read_usual_spans(payload: bytes) -> list[Span | None] | None:
    """Find the sections of a usual message; return None for any other.

    Each section is present once, in order and short, or it is the body and the last.
    """
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


try:
    from .readers_compiled import usual_spans as _usual_spans
except ImportError:  # only the compiled wheel has it
    _usual_spans = LearnedSpans(_read_usual_spans).find


def _scan_unusual(payload: bytes, in_order: bool, tolerances: Tolerances | None) -> list[Span | None]:
    """Do as ``scan`` for any message."""
    spans: list[Span | None] = [None] * 7
    pos = 0
    end = len(payload)
    last_place = last_code = -1
    sections = 0
    ordered = True
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
            ordered = False
            place = last_place  # later sections are still compared with the furthest place so far
        else:
            raise malformed(f"section {NAMES[code]} after {NAMES[last_code]}", SECTION_ORDER)
        last_place, last_code = place, code
    if not ordered and tolerances is not None:
        tolerances.note(SECTION_ORDER)
    return spans


def section_code(payload: bytes, pos: int) -> tuple[int, int]:
    """Return the code of the section at ``pos``, and where its value begins."""
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
    """Return the body of a payload that is one data section or one short string.

    None for any other payload.
    """
    return short_body(payload, 0, len(payload))


_WIDTHS: Final = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}


def skip_value(payload: bytes, pos: int) -> int:
    """Return the end of the value at ``pos``; only constructors are read (1.2)."""
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
    """Decode a section: a list of fields, a map, or a body.

    With ``allow_duplicates`` the last of identical map keys counts.

    Raises:
        RemoteProtocolError: with scope ``link``, so that only this message need be refused.
    """
    value = USUAL_READERS[place](payload, *span)
    return read_unusual(place, payload, span, allow_duplicates) if value is None else value


def read_unusual(
    place: int,
    payload: bytes,
    span: Span,
    allow_duplicates: bool = False,
    tolerances: Tolerances | None = None,
) -> Any:
    """Do as ``read_section``, for a caller that has tried ``USUAL_READERS`` itself.

    ``tolerances`` counts the maps with identical keys.
    """
    start, end = span
    budget = Budget(allow_duplicate_keys=True, tolerances=tolerances) if allow_duplicates else None
    if place == BODY:
        return _read_body(payload, start, end, budget or Budget())
    code, pos = section_code(payload, start)
    name = NAMES[code]
    value, _ = _decode(payload, pos, name, budget)
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
    """Return the fields if all have the right class, otherwise None.

    This is several times faster than to decode a composite, which decides whether other fields are an error.
    """
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


def _read_body(payload: bytes, start: int, end: int, budget: Budget) -> Any:
    code, pos = section_code(payload, start)
    values: list[Any] = []
    while True:
        value, pos = _decode(payload, pos, NAMES[code], budget)
        if code == _VALUE:  # described values stay as they are, for the application
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
