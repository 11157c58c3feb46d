"""Translation of messages between the draft and the final standard (Book IV, 2).

A message of the draft is a list of sections, each with a code and its octets: exactly one header, properties and
footer, and the application's data between them, any of which may have no octets. A message of the final standard is
its sections, one after the other. Fields that only the final standard has are carried in ``message-attrs``, with keys
that receivers may ignore.

In the draft, ``message-attrs`` has the error of a rejection under ``rejected`` (D 1872). In the final standard, which
has no place for it, the annotations of dead letters have it.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trio_amqp10.amqp10.message.sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    BODY,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    PROPERTIES,
    Span,
    scan,
    section_code,
    skip_value,
)
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.composite import Registry, Section
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.decode_budget import Budget
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Symbol, Timestamp, UInt
from trio_amqp10.core.errors import RemoteProtocolError

from .encodings import from_draft, to_draft
from .protocol_rules import invalid_field
from .registries import TYPES, write
from .spec import messaging as draft
from .spec.messaging import SectionCode
from .spec.transport import Error

if TYPE_CHECKING:
    from collections.abc import Callable

DraftSection = tuple[int, bytes]
"""The code of a section, and its octets."""

_FINAL: Final = Registry(final.Header, final.Properties)
_DATA: Final = int(final.DATA.code)
_SEQUENCE: Final = int(final.AMQP_SEQUENCE.code)

_X: Final = "x-opt-"
_APPLICATION_PROPERTIES: Final = Symbol(_X + "application-properties")
_CARRIED: Final = {
    name: Symbol(_X + name.replace("_", "-"))
    for name in (
        "content_encoding",
        "absolute_expiry_time",
        "creation_time",
        "group_id",
        "group_sequence",
        "reply_to_group_id",
    )
}
"""Properties that the draft does not have, and the keys that carry them."""
_TYPES: Final[dict[str, tuple[type[Any], Callable[[Any], Any]]]] = {
    "content_encoding": (str, Symbol),
    "absolute_expiry_time": (int, Timestamp),
    "creation_time": (int, Timestamp),
    "group_id": (str, str),
    "group_sequence": (int, UInt),
    "reply_to_group_id": (str, str),
}
_OURS: Final = frozenset((_APPLICATION_PROPERTIES, *_CARRIED.values()))
_REJECTED: Final = Symbol("rejected")
_CONDITION: Final = Symbol("x-opt-deadletter-condition")
_DESCRIPTION: Final = Symbol("x-opt-deadletter-description")
_MAX_TTL: Final = 0xFFFF_FFFF


class Draft(NamedTuple):
    """A message of the final standard, translated from the draft.

    Attributes:
        payload: its sections.
        message_format: 0, or the format of octets that are no sections.
        message_attrs, delivery_attrs: the attributes of its header in the draft.
    """

    payload: bytes
    message_format: int
    message_attrs: Any
    delivery_attrs: Any


# To the draft --------------------------------------------------------------------------------------


def draft_message(payload: bytes, message_format: int = 0) -> list[DraftSection]:
    """Return the sections of a message in the draft.

    The octets of another message-format become one section of data.
    """
    if message_format:
        header = draft.Header(format_code=message_format)
        return around(write(header), b"", [(SectionCode.DATA, payload)], b"")
    try:
        return _draft_sections(payload)
    except (
        RemoteProtocolError,
        struct.error,
        IndexError,
    ):
        # It cannot be decoded: pass on its octets as data.
        return around(b"", b"", [(SectionCode.DATA, payload)], b"")


def _draft_sections(payload: bytes) -> list[DraftSection]:
    spans = scan(payload, in_order=False)
    read = {place: _value(payload, span) for place, span in enumerate(spans) if span and place != BODY}
    properties: Any = read.get(PROPERTIES)
    attrs: dict[Any, Any] = dict(read.get(ANNOTATIONS) or {})
    if APPLICATION_PROPERTIES in read:
        attrs[_APPLICATION_PROPERTIES] = read[APPLICATION_PROPERTIES]
    for name, key in _CARRIED.items():
        value = None if properties is None else getattr(properties, name)
        if value is not None:
            attrs[key] = _TYPES[name][1](value)
    _to_rejected(attrs)
    header = _draft_header(read.get(HEADER), attrs, read.get(DELIVERY_ANNOTATIONS))
    body = _draft_body(payload, spans[BODY])
    length = sum(len(octets) for _, octets in body)
    about = b"" if properties is None else write(_draft_properties(properties, length))
    notes = read.get(FOOTER)
    footer = write(draft.Footer(message_attrs=notes)) if notes else b""
    return around(header, about, body, footer)


def _to_rejected(attrs: dict[Any, Any]) -> None:
    """Replace the annotations of a dead letter by the error under ``rejected``.

    Annotations that cannot be an error stay.
    """
    condition, description = attrs.get(_CONDITION), attrs.get(_DESCRIPTION)
    if isinstance(condition, str) and condition.isascii() and isinstance(description, str | None):
        del attrs[_CONDITION]
        attrs.pop(_DESCRIPTION, None)
        attrs[_REJECTED] = Error(condition=Symbol(condition), description=description)


def around(header: bytes, properties: bytes, body: list[DraftSection], footer: bytes) -> list[DraftSection]:
    """Return the sections of a message, in the order of the draft (D 1682-1697).

    There is exactly one header, properties and footer, even if it has no octets.
    """
    return [
        (SectionCode.HEADER, header),
        (SectionCode.PROPERTIES, properties),
        *body,
        (SectionCode.FOOTER, footer),
    ]


def _value(payload: bytes, span: Span) -> Any:
    """Return the composite in a section, or the map of a section that is no composite."""
    value, _ = decode(payload, span[0], Budget(types=_FINAL))
    return getattr(value, "value", value)


def _draft_header(header: final.Header | None, attrs: dict[Any, Any], delivery_attrs: Any) -> bytes:
    if header is None and not attrs and not delivery_attrs:
        return b""
    given = header or final.Header()
    return write(
        draft.Header(
            durable=given.durable,
            priority=given.priority,
            ttl=given.ttl,
            former_acquirers=None if header is None else int(not given.first_acquirer),
            delivery_failures=given.delivery_count,
            message_attrs=attrs or None,
            delivery_attrs=delivery_attrs or None,
        )
    )


def _draft_properties(properties: final.Properties, length: int) -> draft.MessageProperties:
    return draft.MessageProperties(
        message_id=_id_octets(properties.message_id),
        user_id=properties.user_id,
        to=properties.to,
        subject=properties.subject,
        reply_to=properties.reply_to,
        correlation_id=_id_octets(properties.correlation_id),
        content_length=length,
        content_type=properties.content_type,
    )


def _id_octets(value: Any) -> bytes | None:
    """Return an id as octets, as the draft has it (D 1771-1775).

    Text is encoded in UTF-8; numbers and uuids as text.
    """
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()


def _draft_body(payload: bytes, span: Span | None) -> list[DraftSection]:
    if span is None:
        return []
    pos, end = span
    sections: list[DraftSection] = []
    while pos < end:
        code, start = section_code(payload, pos)
        pos = skip_value(payload, start)
        octets = payload[start:pos]
        if code == _DATA:
            sections.append((SectionCode.DATA, decode(octets)[0]))
        elif code == _SEQUENCE:
            sections.append((SectionCode.AMQP_LIST, to_draft(octets)))
        else:
            kind = SectionCode.AMQP_MAP if octets[0] in _MAPS else SectionCode.AMQP_DATA
            sections.append((kind, to_draft(octets)))
    return sections


_MAPS: Final = (codes.MAP8, codes.MAP32)


# To the final standard -----------------------------------------------------------------------------


def final_message(sections: list[DraftSection], *, strict: bool = False) -> Draft:
    """Return a message of the draft in the final standard.

    Header and properties without values are left out. A missing header, properties or footer counts as empty.

    Raises:
        RemoteProtocolError: ``amqp:invalid-field`` for sections in another order (D 1695-1697); ``amqp:decode-error`` for
            octets that do not match the code of their section.
    """
    ordered = _in_order(sections)
    header: draft.Header = _read(ordered[0], draft.Header, strict) or draft.Header()
    properties: draft.MessageProperties | None = _read(ordered[1], draft.MessageProperties, strict)
    footer: draft.Footer | None = _read(ordered[2], draft.Footer, strict)
    body = [each for each in sections if each[0] not in _EDGES]
    if header.format_code:
        payload = b"".join(octets for _, octets in body)
        return Draft(payload, header.format_code, header.message_attrs, header.delivery_attrs)
    attrs = dict(header.message_attrs or {})
    _from_rejected(attrs)
    parts = [
        _final_header(header),
        _map_section(final.DELIVERY_ANNOTATIONS, header.delivery_attrs),
        _map_section(final.MESSAGE_ANNOTATIONS, {k: v for k, v in attrs.items() if k not in _OURS}),
        _final_properties(properties, header, attrs),
        _map_section(final.APPLICATION_PROPERTIES, attrs.get(_APPLICATION_PROPERTIES)),
        _final_body(body, strict),
    ]
    if footer is not None:
        notes = {**(footer.message_attrs or {}), **(footer.delivery_attrs or {})}
        parts.append(_map_section(final.FOOTER, notes))
    return Draft(b"".join(parts), 0, header.message_attrs, header.delivery_attrs)


def _from_rejected(attrs: dict[Any, Any]) -> None:
    """Replace the error under ``rejected`` by the annotations of a dead letter."""
    error = attrs.get(_REJECTED)
    if isinstance(error, Error):
        del attrs[_REJECTED]
        attrs[_CONDITION] = str(error.condition)
        if error.description is not None:
            attrs[_DESCRIPTION] = error.description


_EDGES: Final = (SectionCode.HEADER, SectionCode.PROPERTIES, SectionCode.FOOTER)


def _in_order(sections: list[DraftSection]) -> tuple[bytes, bytes, bytes]:
    """Return the octets of header, properties and footer."""
    found = {SectionCode.HEADER: b"", SectionCode.PROPERTIES: b"", SectionCode.FOOTER: b""}
    places = {SectionCode.HEADER: 0, SectionCode.PROPERTIES: 1, SectionCode.FOOTER: 3}
    last = -1
    for code, octets in sections:
        if code not in tuple(SectionCode):
            raise invalid_field(f"unknown section-code {code}", "1691-1701")
        place = places.get(SectionCode(code), 2)
        if place < last or (place == last and place != 2):
            raise invalid_field(f"section {SectionCode(code).name.lower()} out of order", "1695-1697")
        last = place
        if code in found:
            found[SectionCode(code)] = octets
    return found[SectionCode.HEADER], found[SectionCode.PROPERTIES], found[SectionCode.FOOTER]


def _read(octets: bytes, cls: type[Any], strict: bool) -> Any:
    """Return the composite in a section; None if it has no octets."""
    if not octets:
        return None
    value, end = decode(octets := from_draft(octets, strict=strict), 0, Budget(types=TYPES))
    if not isinstance(value, cls) or end != len(octets):
        raise invalid_field(f"the section {cls.__name__.lower()} has another content", "1695-1697")
    return value


def _final_header(header: draft.Header) -> bytes:
    if header.former_acquirers is None and header == replace(
        draft.Header(), message_attrs=header.message_attrs, delivery_attrs=header.delivery_attrs
    ):
        return b""
    made = final.Header(
        durable=bool(header.durable),
        priority=4 if header.priority is None else header.priority,
        ttl=None if header.ttl is None else min(header.ttl, _MAX_TTL),
        first_acquirer=header.former_acquirers == 0,
        delivery_count=header.delivery_failures or 0,
    )
    return encode(made)


def _final_properties(
    properties: draft.MessageProperties | None, header: draft.Header, attrs: dict[Any, Any]
) -> bytes:
    """Return the properties, with those that ``attrs`` carries.

    A time to live counts from ``transmit-time``, if the header has one (D 1741).
    """
    fields: dict[str, Any] = {}
    for name, key in _CARRIED.items():
        kind, made = _TYPES[name]
        value = attrs.get(key)
        if isinstance(value, kind):
            fields[name] = made(value)
    if header.transmit_time is not None and header.ttl is not None:
        fields.setdefault("absolute_expiry_time", min(header.transmit_time + header.ttl, Timestamp.MAX))
    if properties is not None:
        fields |= {
            "message_id": properties.message_id,
            "user_id": properties.user_id,
            "to": _address(properties.to),
            "subject": properties.subject,
            "reply_to": _address(properties.reply_to),
            "correlation_id": properties.correlation_id,
            "content_type": properties.content_type,
        }
    made_of = final.Properties(**fields)
    return b"" if made_of == final.Properties() else encode(made_of)


def _address(value: Any) -> str | None:
    """Return an address as a string, as the final standard requires (3.2.4)."""
    return value if value is None or isinstance(value, str) else str(value)


def _map_section(section: Section, value: Any) -> bytes:
    return section.prefix + encode(value) if value else b""


def _final_body(body: list[DraftSection], strict: bool) -> bytes:
    """Return the body sections of a message.

    Sections of data stay data, a single value becomes a value, lists become sequences, and a mixture becomes one sequence.
    """
    kinds = {code for code, _ in body}
    if kinds == {SectionCode.DATA}:
        return b"".join(final.DATA.prefix + encode(octets) for _, octets in body)
    if kinds == {SectionCode.AMQP_LIST}:
        parts = [_sole(octets, strict, codes.LIST8, codes.LIST32, codes.LIST0) for _, octets in body]
        return b"".join(final.AMQP_SEQUENCE.prefix + part for part in parts)
    if not body:
        return final.AMQP_VALUE.prefix + encode(None)
    values: list[bytes] = []
    for code, octets in body:
        if code == SectionCode.DATA:
            values.append(encode(octets))
        elif code == SectionCode.AMQP_MAP:
            values.append(_sole(octets, strict, *_MAPS))
        elif code == SectionCode.AMQP_LIST:
            values.append(_sole(octets, strict, codes.LIST8, codes.LIST32, codes.LIST0))
        else:
            values += _each(from_draft(octets, strict=strict))
    if len(values) == 1:
        return final.AMQP_VALUE.prefix + values[0]
    size = sum(map(len, values)) + 4
    head = bytes((codes.LIST32,)) + size.to_bytes(4, "big") + len(values).to_bytes(4, "big")
    return final.AMQP_SEQUENCE.prefix + head + b"".join(values)


def _sole(octets: bytes, strict: bool, *constructors: int) -> bytes:
    """Return the map or list of a section; an empty one without octets (D 1700-1701)."""
    if not octets:
        return bytes((constructors[0], 1, 0))
    made = from_draft(octets, strict=strict)
    if made[0] not in constructors or skip_value(made, 0) != len(made):
        raise invalid_field(
            f"a section that begins with {made[0]:#04x}: expected one list or map", "1700-1701"
        )
    return made


def _each(octets: bytes) -> list[bytes]:
    """Split consecutive values."""
    values: list[bytes] = []
    pos = 0
    while pos < len(octets):
        end = skip_value(octets, pos)
        values.append(octets[pos:end])
        pos = end
    return values
