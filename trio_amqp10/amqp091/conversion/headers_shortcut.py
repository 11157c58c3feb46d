"""A shortcut from headers of 0-9-1 to encoded sections of AMQP 1.0.

For headers of usual types the octets are the same as those of ``translate``, and all other headers are left to
it. The package works without this file and without the branch that calls it.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trio_amqp10.amqp10.spec import messaging as standard
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.encode import write_compound

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST: Final = 255
"""The longest text in octets whose size takes one octet."""

_OTHER: Final = frozenset({"CC", "x-death"})
"""Headers that become annotations of another name."""

_SMALL: Final = {number: struct.pack(">Bb", codes.SMALL_INT, number) for number in range(-128, 128)}
_TRUE: Final = bytes((codes.TRUE,))
_FALSE: Final = bytes((codes.FALSE,))
_NULL: Final = bytes((codes.NULL,))
_TEXT_HEADS: Final = [bytes((codes.STRING8, size)) for size in range(_LONGEST + 1)]
ANNOTATIONS_PREFIX: Final = standard.MESSAGE_ANNOTATIONS.prefix
APPLICATION_PROPERTIES_PREFIX: Final = standard.APPLICATION_PROPERTIES.prefix

_int = struct.Struct(">Bi").pack
_double = struct.Struct(">Bd").pack


class HeaderOctets(NamedTuple):
    """Encoded keys and values of two sections, with their numbers of pairs.

    Attributes:
        annotations, annotated: those of message-annotations.
        properties, named: those of application-properties.
    """

    annotations: list[bytes]
    annotated: int
    properties: list[bytes]
    named: int


@lru_cache(512)
def _key(name: str) -> tuple[bool, bytes] | None:
    """Return whether a header is an annotation, and its encoded name; None if unusual."""
    if not name.isascii() or len(name) > _LONGEST or name in _OTHER:
        return None
    annotation = name.startswith("x-")
    return annotation, bytes((codes.SYMBOL8 if annotation else codes.STRING8, len(name))) + name.encode()


def header_octets(headers: Mapping[str, Any]) -> HeaderOctets | None:
    """Encode headers as keys and values of two sections; None if one is unusual."""
    annotations: list[bytes] = []
    properties: list[bytes] = []
    for name, value in headers.items():
        kind = value.__class__
        if kind is str:
            if not value.isascii() or len(value) > _LONGEST:
                return None
            octets = _TEXT_HEADS[len(value)] + value.encode()
        elif kind is int:
            small = _SMALL.get(value)
            if small is not None:
                octets = small
            elif -(1 << 31) <= value < 1 << 31:
                octets = _int(codes.INT, value)
            else:
                return None
        elif kind is bool:
            octets = _TRUE if value else _FALSE
        elif kind is float:
            octets = _double(codes.DOUBLE, value)
        elif value is None:
            octets = _NULL
        else:
            return None
        key = _key(name)
        if key is None:
            return None
        section = annotations if key[0] else properties
        section.append(key[1])
        section.append(octets)
    return HeaderOctets(annotations, len(annotations) // 2, properties, len(properties) // 2)


def map_section(out: bytearray, prefix: bytes, pairs: list[bytes], count: int) -> None:
    """Append a section with a map of ``count`` pairs, or nothing if there are none."""
    if not count:
        return
    body = b"".join(pairs)
    if len(body) < _LONGEST and count < 128:
        out += prefix
        out += bytes((codes.MAP8, len(body) + 1, 2 * count))
        out += body
    else:
        out += prefix
        write_compound(out, codes.MAP8, codes.MAP32, 2 * count, bytearray(body))
