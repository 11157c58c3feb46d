"""Write message sections; the reverse of ``sections`` (3.2).

The writers do not use the generic codec, because these sections are in every message; tests show that header
and properties have the same octets as from ``spec.messaging``.

Each writer appends a whole section, or nothing if there is no value. Knows no attribute of a message.
"""

from __future__ import annotations

import datetime
import reprlib
import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec import messaging as standard
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.decode_budget import MAX_DEPTH
from trio_amqp10.amqp10.wire.encode import WRITERS, Writer, named, write_compound, write_value
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import TYPE_NAMES, Array, Described, Symbol
from trio_amqp10.core.errors import LocalProtocolError

from .sections import Data, Mark, Sequence, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_BELOW: Final = MAX_DEPTH - 1
"""The levels of nesting that are left inside a section."""

_LIST_BEGIN: Final = bytes((codes.LIST8, 0, 0))
_MAP_BEGIN: Final = bytes((codes.MAP8, 0, 0))
_HEADER_BEGIN: Final = plan_of(standard.Header).prefix + _LIST_BEGIN
_PROPERTIES_BEGIN: Final = plan_of(standard.Properties).prefix + _LIST_BEGIN
_APPLICATION_PROPERTIES_BEGIN: Final = standard.APPLICATION_PROPERTIES.prefix + _MAP_BEGIN
_DATA_PREFIX: Final = standard.DATA.prefix
_SEQUENCE_PREFIX: Final = standard.AMQP_SEQUENCE.prefix
_VALUE_PREFIX: Final = standard.AMQP_VALUE.prefix

_ERROR: Final = (plan_of(Error).code, plan_of(Error).name)

_write_binary: Final = WRITERS["binary"]
_MOST_OF_BINARY8: Final = 255
_write_list: Final = WRITERS["list"]
_write_map: Final = WRITERS["map"]
_write_string: Final = WRITERS["string"]
_write_symbol: Final = WRITERS["symbol"]
_write_ulong: Final = WRITERS["ulong"]

_SHORT_STRINGS: Final = [bytes((codes.STRING8, size)) for size in range(256)]
_SHORT_SYMBOLS: Final = [bytes((codes.SYMBOL8, size)) for size in range(256)]


def _write_text(out: bytearray, value: str, depth: int) -> None:
    """Write a string; the codec writes long or malformed ones."""
    try:
        octets = value.encode()
        out += _SHORT_STRINGS[len(octets)]
        out += octets
    except (IndexError, UnicodeEncodeError):
        _write_string(out, value, depth)


def _write_name(out: bytearray, value: Any, depth: int) -> None:
    """Write a symbol; a ``Symbol`` is known to be ASCII."""
    if value.__class__ is Symbol and len(value) < 256:
        out += _SHORT_SYMBOLS[len(value)]
        out += value.encode()
    else:
        _write_symbol(out, value, depth)


def _write_any(out: bytearray, value: Any, depth: int) -> None:
    if value.__class__ is str:
        _write_text(out, value, depth)
    else:
        write_value(out, value, depth)


def _close(out: bytearray, start: int, long_code: int, count: int) -> None:
    """Fill in size and count of the list or map that began in short form at ``start``."""
    size = len(out) - start - 2
    if size < 256 and count < 256:
        out[start + 1] = size
        out[start + 2] = count
    else:
        body = out[start + 3 :]
        short_code = out[start]
        del out[start:]
        write_compound(out, short_code, long_code, count, body)


_HEADER_WRITERS: Final = tuple(WRITERS[name] for name in ("boolean", "ubyte", "uint", "boolean", "uint"))
_HEADER_DEFAULTS: Final = (False, 4, None, False, 0)
_PROPERTY_WRITERS: Final = (
    _write_any,
    _write_binary,
    _write_any,
    _write_text,
    _write_any,
    _write_any,
    _write_name,
    _write_name,
    WRITERS["timestamp"],
    WRITERS["timestamp"],
    _write_text,
    WRITERS["uint"],
    _write_text,
)


def _write_fields(out: bytearray, begin: bytes, writers: tuple[Writer, ...], fields: Iterable[Any]) -> None:
    start = len(out)
    out += begin
    count = 0
    for index, value in enumerate(fields):
        if value is not None:
            out += _NULLS[index - count]
            writers[index](out, value, 0)
            count = index + 1
    if count:
        _close(out, start + 3, codes.LIST32, count)
    else:
        del out[start:]


def _write_header(out: bytearray, fields: list[Any]) -> None:
    values = [
        None if value == default else value for value, default in zip(fields, _HEADER_DEFAULTS, strict=True)
    ]
    _write_fields(out, _HEADER_BEGIN, _HEADER_WRITERS, values)


def _write_properties(out: bytearray, fields: list[Any]) -> None:
    _write_fields(out, _PROPERTIES_BEGIN, _PROPERTY_WRITERS, fields)


_NULLS: Final = [bytes((codes.NULL,)) * count for count in range(13)]

_SIMPLE: Final[frozenset[type]] = (frozenset(TYPE_NAMES) - {list, dict, Array}) | {
    type(None),
    bytearray,
    memoryview,
    datetime.datetime,
    uuid.UUID,
}
"""The classes of values in application-properties: no map, list or array (3.2.5)."""


def _write_application_properties(out: bytearray, properties: Mapping[Any, Any]) -> None:
    if not properties:
        return
    if properties.__class__ is PairMap:
        out += standard.APPLICATION_PROPERTIES.prefix
        _write_map(out, properties, MAX_DEPTH)
        return
    start = len(out) + 3
    out += _APPLICATION_PROPERTIES_BEGIN
    for key, value in properties.items():
        if not isinstance(key, str):
            raise LocalProtocolError(f"the key {key!r} of application_properties is not a str (3.2.5)")
        _write_text(out, key, 0)
        if value.__class__ is str:
            _write_text(out, value, 0)
        elif value.__class__ is bool:
            out.append(codes.TRUE if value else codes.FALSE)
        elif value.__class__ in _SIMPLE or isinstance(value, _SIMPLE_BASES):
            _write_entry(out, "application_properties", key, value, 0)
        else:
            raise LocalProtocolError(
                f"application_properties[{key!r}] is a {type(value).__name__}: expected a simple value, "
                f"no map, list, array or described value (3.2.5)"
            )
    _close(out, start, codes.MAP32, 2 * len(properties))


_SIMPLE_BASES: Final[tuple[type, ...]] = tuple(_SIMPLE)


def _write_entry(out: bytearray, name: str, key: Any, value: Any, depth: int) -> None:
    """Write the value of a key in the map of this name, which an error names."""
    try:
        write_value(out, value, depth)
    except LocalProtocolError as error:
        raise named(f"{name}[{reprlib.repr(key)}]", error) from None


def _write_annotations(out: bytearray, prefix: bytes, annotations: Mapping[Any, Any], name: str) -> None:
    """Write annotations; str keys are symbols, int keys are ulongs (3.2.10)."""
    if not annotations:
        return
    out += prefix
    if annotations.__class__ is PairMap:
        _write_map(out, annotations, MAX_DEPTH)
        return
    start = len(out)
    out += _MAP_BEGIN
    for key, value in annotations.items():
        if isinstance(key, str):
            _write_name(out, key, 0)
        elif isinstance(key, int) and not isinstance(key, bool):
            _write_ulong(out, key, 0)
        else:
            raise LocalProtocolError(f"the annotation key {key!r} is neither a str nor an int (3.2.10)")
        _write_entry(out, name, key, value, _BELOW)
    _close(out, start, codes.MAP32, 2 * len(annotations))


def _write_delivery_annotations(out: bytearray, annotations: Mapping[Any, Any]) -> None:
    if "rejected" in annotations and not _is_error(annotations["rejected"]):
        raise LocalProtocolError("the delivery annotation 'rejected' is an error of the standard (3.2.2)")
    _write_annotations(out, standard.DELIVERY_ANNOTATIONS.prefix, annotations, "delivery_annotations")


def _is_error(value: Any) -> bool:
    """Whether a value is an error (2.8.14), made here or read from a message."""
    return isinstance(value, Error) or (isinstance(value, Described) and value.descriptor in _ERROR)


def _write_message_annotations(out: bytearray, annotations: Mapping[Any, Any]) -> None:
    _write_annotations(out, standard.MESSAGE_ANNOTATIONS.prefix, annotations, "annotations")


def _write_footer(out: bytearray, footer: Mapping[Any, Any]) -> None:
    _write_annotations(out, standard.FOOTER.prefix, footer, "footer")


def write_body(out: bytearray, body: Any) -> None:
    """Append the body sections.

    Octets are data, ``Data``, ``Sequence`` and ``Value`` as they are, and any other value is an amqp-value.

    Raises:
        LocalProtocolError: the value has no AMQP type.
    """
    try:
        if body.__class__ is str:
            out += _VALUE_PREFIX
            _write_text(out, body, 0)
        elif body.__class__ is bytes and len(body) <= _MOST_OF_BINARY8:
            out += _DATA_PREFIX
            out.append(codes.BINARY8)
            out.append(len(body))
            out += body
        elif isinstance(body, (bytes, bytearray, memoryview)):
            out += _DATA_PREFIX
            _write_binary(out, body, 0)
        elif isinstance(body, Data):
            for chunk in body.chunks:
                out += _DATA_PREFIX
                _write_binary(out, chunk, 0)
        elif isinstance(body, Sequence):
            for items in body.lists:
                out += _SEQUENCE_PREFIX
                _write_list(out, items, MAX_DEPTH)
        elif body is not Mark.ABSENT:
            out += _VALUE_PREFIX
            write_value(out, body.value if isinstance(body, Value) else body, MAX_DEPTH)
    except LocalProtocolError as error:
        raise named("body", error) from None


SECTION_WRITERS: Final[tuple[Callable[[bytearray, Any], None], ...]] = (
    _write_header,
    _write_delivery_annotations,
    _write_message_annotations,
    _write_properties,
    _write_application_properties,
    write_body,
    _write_footer,
)
"""The writers by place; each takes what ``read_section`` returns for that place."""
