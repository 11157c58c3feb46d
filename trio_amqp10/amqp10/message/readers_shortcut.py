"""Fast readers of the sections that nearly all messages have (3.2).

Each function is a shortcut beside ``sections``, and tests check that both give the same result. For an
unusual shape a reader returns None, and the general reader decides whether it is an error, and which. Without
this module the result is the same, but slower.

=======================  ====================================================================
header, properties       ``list8`` of null and scalars: see ``header_and_properties_generated``
maps                     ``map8`` of scalars by short strings, or by short symbols
body                     one data section, or one short string
=======================  ====================================================================

A reader takes the octets of a message, and the start and end of its section. Its result counts only if it
ends at that end, and for a map only if no key came twice. Before it, ``section_shapes_shortcut`` reads
sections that look like earlier ones in one step.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec import messaging as standard
from trio_amqp10.amqp10.wire.codes import (
    BINARY8,
    BINARY32,
    FALSE,
    LONG,
    MAP8,
    SMALL_LONG,
    SMALL_ULONG,
    STRING8,
    SYMBOL8,
    TRUE,
)
from trio_amqp10.amqp10.wire.decode_budget import NO_BUDGET
from trio_amqp10.amqp10.wire.readers import SCALARS
from trio_amqp10.amqp10.wire.shortcut_memos import READ_FAULTS, SYMBOLS

from .header_and_properties_generated import read_header, read_properties
from .section_shapes_shortcut import Learned

if TYPE_CHECKING:
    from collections.abc import Callable

_I64: Final = Struct(">q")


def read_application_properties(buf: bytes, start: int, end: int) -> dict[str, Any] | None:
    """Read a map of scalars by short strings; None for any other."""
    if buf[start + 1] != SMALL_ULONG or buf[start + 3] != MAP8:
        return None
    pairs: dict[str, Any] = {}
    pos = start + 6
    try:
        while pos < end:
            if buf[pos] != STRING8:
                return None
            stop = pos + 2 + buf[pos + 1]
            key = buf[pos + 2 : stop].decode()
            code = buf[stop]
            if code == STRING8:
                pos = stop + 2 + buf[stop + 1]
                pairs[key] = buf[stop + 2 : pos].decode()
            elif code == SMALL_LONG:
                octet = buf[stop + 1]
                pairs[key] = octet - 256 if octet > 127 else octet
                pos = stop + 2
            elif code == LONG:
                pairs[key] = _I64.unpack_from(buf, stop + 1)[0]
                pos = stop + 9
            elif code == TRUE:
                pairs[key] = True
                pos = stop + 1
            elif code == FALSE:
                pairs[key] = False
                pos = stop + 1
            else:
                pairs[key], pos = SCALARS[code](buf, stop + 1, NO_BUDGET)
    except READ_FAULTS:
        return None
    return pairs if pos == end and buf[start + 5] == 2 * len(pairs) else None


def read_annotations(buf: bytes, start: int, end: int) -> dict[str, Any] | None:
    """Read a map of scalars by short symbols; None for any other."""
    if buf[start + 1] != SMALL_ULONG or buf[start + 3] != MAP8:
        return None
    pairs: dict[str, Any] = {}
    pos = start + 6
    try:
        while pos < end:
            if buf[pos] != SYMBOL8:
                return None
            stop = pos + 2 + buf[pos + 1]
            key = SYMBOLS[buf[pos + 2 : stop]]
            pairs[key], pos = SCALARS[buf[stop]](buf, stop + 1, NO_BUDGET)
    except READ_FAULTS:
        return None
    return pairs if pos == end and buf[start + 5] == 2 * len(pairs) else None


def short_body(buf: bytes, start: int, end: int) -> bytes | str | None:
    """Read one data section, or one short string; None for any other."""
    head = buf[start : start + 4]
    try:
        if head == _DATA8:
            return buf[start + 5 : end] if buf[start + 4] == end - start - 5 else None
        if head == _DATA32:
            size = int.from_bytes(buf[start + 4 : start + 8], "big")
            return buf[start + 8 : end] if size == end - start - 8 else None
        if head == _TEXT8 and buf[start + 4] == end - start - 5:
            return buf[start + 5 : end].decode()
    except READ_FAULTS:
        pass
    return None


_DATA8: Final = standard.DATA.prefix + bytes((BINARY8,))
_DATA32: Final = standard.DATA.prefix + bytes((BINARY32,))
_TEXT8: Final = standard.AMQP_VALUE.prefix + bytes((STRING8,))
try:
    from .readers_compiled import section_readers
except ImportError:  # only the compiled wheel has it
    section_readers = (
        Learned(read_annotations).read,
        Learned(read_properties).read,
        Learned(read_application_properties).read,
    )
_annotations, _properties, _application_properties = section_readers

USUAL_READERS: Final[tuple[Callable[[bytes, int, int], Any], ...]] = (
    read_header,
    _annotations,
    _annotations,
    _properties,
    _application_properties,
    short_body,
    _annotations,
)
"""The readers by place; each returns what ``sections.read_section`` does, or None."""
