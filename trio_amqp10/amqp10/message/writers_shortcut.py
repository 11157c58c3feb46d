"""Fast writer of the usual messages (3.2).

A shortcut beside ``section_writers``, and tests check that both give the same result. For a message with
anything unusual it returns None, and the general writer decides whether the message can be sent. Without this
module the result is the same, but slower.

Encoded strings that recur in other messages are remembered: addresses, a subject, the keys of maps, and whole
headers. Ids and values are not.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from trio_amqp10.amqp10.spec import messaging as standard
from trio_amqp10.amqp10.wire.bounded_memo import BoundedMemo
from trio_amqp10.amqp10.wire.codes import BINARY8, BINARY32, DOUBLE, FALSE, LONG, MAP8, SMALL_LONG, TRUE
from trio_amqp10.amqp10.wire.shortcut_memos import ENCODED_STRINGS, STRING_HEADS, WRITE_FAULTS

from .header_and_properties_generated import write_properties
from .section_writers import SECTION_WRITERS
from .sections import ANNOTATIONS, BODY, DELIVERY_ANNOTATIONS, FOOTER, HEADER


def usual_payload(sections: list[Any]) -> bytes | None:
    """Return the octets of a message whose fields were checked; None if it is unusual."""
    header, delivery_annotations, annotations, properties, application_properties, body, footer = sections
    parts: list[bytes] = []
    append = parts.append
    try:
        if header is not None:
            append(HEADERS[tuple(header)])
        if delivery_annotations:
            append(general_section(DELIVERY_ANNOTATIONS, delivery_annotations))
        if annotations:
            append(general_section(ANNOTATIONS, annotations))
        if properties is not None:
            octets = write_properties(properties)
            if octets is None:
                return None
            append(octets)
        if application_properties:
            octets = _application_properties(application_properties)
            if octets is None:
                return None
            append(octets)
        if body.__class__ is not bytes:
            append(general_section(BODY, body))
        elif len(body) < 256:
            append(_DATA8[len(body)])
            append(body)
        else:
            append(_DATA32 + len(body).to_bytes(4, "big"))
            append(body)
        if footer:
            append(general_section(FOOTER, footer))
    except FAULTS:
        return None
    return b"".join(parts)


def general_section(place: int, value: Any) -> bytes:
    """Return a section as the general writer writes it."""
    out = bytearray()
    SECTION_WRITERS[place](out, value)
    return bytes(out)


FAULTS: Final = (*WRITE_FAULTS, OverflowError)
HEADERS: Final = BoundedMemo[tuple[Any, ...], bytes](lambda fields: general_section(HEADER, list(fields)))
_DATA8: Final = [standard.DATA.prefix + bytes((BINARY8, size)) for size in range(256)]
_DATA32: Final = standard.DATA.prefix + bytes((BINARY32,))


def _application_properties(properties: Any) -> bytes | None:
    if properties.__class__ is not dict:
        return None
    parts = [_COUNTS[len(properties)]]
    append = parts.append
    for key, value in properties.items():
        if key.__class__ is not str:
            return None
        append(ENCODED_STRINGS[key])
        kind = value.__class__
        if kind is str:
            octets = value.encode()
            append(STRING_HEADS[len(octets)])
            append(octets)
        elif kind is int:
            append(_SMALL_LONGS.get(value) or _pack_long(LONG, value))
        elif kind is bool:
            append(_TRUE if value else _FALSE)
        elif kind is float:
            append(_pack_double(DOUBLE, value))
        else:
            return None
    octets = b"".join(parts)
    return _MAPS[len(octets)] + octets


_MAPS: Final = [standard.APPLICATION_PROPERTIES.prefix + bytes((MAP8, size)) for size in range(256)]
_COUNTS: Final = [bytes((2 * pairs,)) for pairs in range(128)]
_SMALL_LONGS: Final = {number: bytes((SMALL_LONG, number & 0xFF)) for number in range(-128, 128)}
_TRUE: Final = bytes((TRUE,))
_FALSE: Final = bytes((FALSE,))
_pack_long: Final = Struct(">Bq").pack
_pack_double: Final = Struct(">Bd").pack
