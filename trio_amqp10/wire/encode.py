"""Values to octets, each in its shortest encoding: ``encode(value)`` (1.6).

Knows nothing of frames or of the fields of composites: an object whose class has
``__amqp_encode__(self, out)`` encodes itself, wherever it stands. Such an object that nests further
values and should count towards the depth has ``__amqp_encode_at__(self, out, depth)`` instead.

Every function has the shape ``(out, value, depth)`` and appends a constructor and its octets;
``depth`` is how many more levels may open below here. The functions of ``WRITERS`` check the type
of what they are given, so that they serve declared fields as well.
"""

from __future__ import annotations

import contextlib
import datetime
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from trio_amqp10.errors import LocalProtocolError

from . import codes
from .decode_budget import MAX_DEPTH
from .values import TYPE_NAMES, Array, Described, ZeroWidthArray
from .writers import (
    SCALARS,
    Writer,
    binary_octets,
    check_class,
    check_integer,
    four,
    string_octets,
    symbol_octets,
    write_int,
    write_null,
)

__all__ = ["WRITERS", "Writer", "below", "encode", "encode_into", "write_compound", "write_value"]


def encode(value: Any) -> bytes:
    """The octets of ``value``.

    Raises:
        LocalProtocolError: AMQP has no such value, or it is nested more than 32 levels deep.
    """
    out = bytearray()
    write_value(out, value, MAX_DEPTH)
    return bytes(out)


def encode_into(out: bytearray, value: Any) -> None:
    """Append the octets of ``value``; after an error ``out`` is as it was.

    Raises:
        LocalProtocolError: as for ``encode``.
    """
    start = len(out)
    try:
        write_value(out, value, MAX_DEPTH)
    except BaseException:
        del out[start:]
        raise


def write_value(out: bytearray, value: Any, depth: int) -> None:
    """Append any value, by its class."""
    writer = _BY_CLASS.get(value.__class__)
    (writer or _find_writer(value))(out, value, depth)


def _find_writer(value: Any) -> Writer:
    """For what is not exactly one of the known classes: what encodes itself, and subclasses."""
    cls: type[Any] = value.__class__
    at = getattr(cls, "__amqp_encode_at__", None)
    if at is not None:
        return lambda out, value, depth: at(value, out, depth)
    hook = getattr(cls, "__amqp_encode__", None)
    if hook is not None:
        return lambda out, value, _depth: hook(value, out)
    for base in cls.__mro__:
        if base in _BY_CLASS:
            return _BY_CLASS[base]
    if isinstance(value, Mapping):
        return _write_map
    hint = "; use Decimal128.from_decimal(...)" if cls.__name__ == "Decimal" else ""
    raise LocalProtocolError(f"AMQP has no type for a {cls.__module__}.{cls.__qualname__}{hint}")


# Compounds, arrays and described values ----------------------------------------------------------


def below(depth: int, levels: int = 1) -> int:
    """What is left of ``depth`` after ``levels`` more."""
    if depth < levels:
        raise LocalProtocolError(f"values are nested more than {MAX_DEPTH} levels deep")
    return depth - levels


def write_compound(out: bytearray, code8: int, code32: int, count: int, body: bytes | bytearray) -> None:
    """Append constructor, size and count, then ``body``: in the short form where both fit an octet."""
    size = len(body) + 1
    if size < 256 and count < 256:
        out += bytes((code8, size, count))
    else:
        out.append(code32)
        out += four(size + 3)
        out += four(count)
    out += body


def _write_list(out: bytearray, value: Any, depth: int) -> None:
    check_class(value, (list, tuple), "a list")
    depth = below(depth)
    if not value:
        out.append(codes.LIST0)
        return
    write_compound(out, codes.LIST8, codes.LIST32, len(value), _list_body(value, depth))


def _list_body(value: Iterable[Any], depth: int) -> bytearray:
    body = bytearray()
    for item in value:
        write_value(body, item, depth)
    return body


def _write_map(out: bytearray, value: Any, depth: int) -> None:
    check_class(value, Mapping, "a mapping")
    write_compound(out, codes.MAP8, codes.MAP32, 2 * len(value), _map_body(value, below(depth)))


def _map_body(value: Mapping[Any, Any], depth: int) -> bytearray:
    body = bytearray()
    for key, each in value.items():
        write_value(body, key, depth)
        write_value(body, each, depth)
    return body


def _write_described(out: bytearray, value: Any, depth: int) -> None:
    depth = below(depth)
    out.append(codes.DESCRIBED)
    _write_descriptor(out, value.descriptor, depth)
    write_value(out, value.value, depth)


def _write_descriptor(out: bytearray, value: Any, depth: int) -> None:
    """Whatever a peer may send goes out again as it came; the classes see to what people write."""
    if value is not None and value.__class__ not in _PRIMITIVE:
        raise LocalProtocolError(f"a descriptor is a Symbol or a ULong, not {value!r}")
    write_value(out, value, depth)


def _write_array(out: bytearray, value: Any, depth: int) -> None:
    if value.__class__ is ZeroWidthArray:
        return _write_zero_width_array(out, value, depth)
    check_class(value, Array, "an Array")
    array: Array[Any] = value
    depth = below(depth, 1 + len(array.descriptors))
    body = bytearray()
    for descriptor in array.descriptors:
        body.append(codes.DESCRIBED)
        _write_descriptor(body, descriptor, depth)
    try:
        body += _ELEMENTS[array.type](array, depth)
    except LocalProtocolError as error:
        raise LocalProtocolError(f"an array of {array.type}: {error}") from None
    write_compound(out, codes.ARRAY8, codes.ARRAY32, len(array), body)
    return None


def _write_zero_width_array(out: bytearray, value: ZeroWidthArray, depth: int) -> None:
    depth = below(depth, 1 + len(value.descriptors))
    body = bytearray()
    for descriptor in value.descriptors:
        body.append(codes.DESCRIBED)
        _write_descriptor(body, descriptor, depth)
    body.append(value.code)
    write_compound(out, codes.ARRAY8, codes.ARRAY32, value.count, body)


# The elements of an array share one constructor, which comes first: the shortest that fits them all.

Elements = Callable[[list[Any], int], bytes]


def _booleans(items: list[Any], _depth: int) -> bytes:
    for item in items:
        if item.__class__ is not bool:
            raise LocalProtocolError(f"{item!r} is not a boolean")
    return bytes((codes.BOOLEAN, *items))


def _integers(
    name: str, code: int, form: str, small_code: int | None = None, small_form: str = ""
) -> Elements:
    def elements(items: list[Any], _depth: int) -> bytes:
        for item in items:
            check_integer(item, name)
        if small_code is not None:
            with contextlib.suppress(struct.error):
                return struct.pack(f">B{len(items)}{small_form}", small_code, *items)
        try:
            return struct.pack(f">B{len(items)}{form}", code, *items)
        except struct.error:
            raise LocalProtocolError(f"an element is out of the range of {name}") from None

    return elements


def _fixed(name: str, code: int) -> Elements:
    """Elements with one encoding: what the writer of a single one appends, less its constructor."""
    writer = SCALARS[name]

    def elements(items: list[Any], depth: int) -> bytes:
        out = bytearray((code,))
        for item in items:
            start = len(out)
            writer(out, item, depth)
            del out[start]
        return bytes(out)

    return elements


def _variable(code8: int, code32: int, octets: Callable[[Any], bytes]) -> Elements:
    def elements(items: list[Any], _depth: int) -> bytes:
        chunks = [octets(item) for item in items]
        if all(len(chunk) < 256 for chunk in chunks):
            return bytes((code8,)) + b"".join([bytes((len(chunk),)) + chunk for chunk in chunks])
        return bytes((code32,)) + b"".join([four(len(chunk)) + chunk for chunk in chunks])

    return elements


def _compounds(name: str, code8: int, code32: int) -> Elements:
    """Lists, maps or arrays in an array: all short, or all long, and never the empty list's own code."""
    writer = WRITERS[name]

    def elements(items: list[Any], depth: int) -> bytes:
        chunks: list[tuple[int, bytes]] = []
        for item in items:
            one = bytearray()
            writer(one, item, depth)
            if one[0] == code32:
                chunks.append((int.from_bytes(one[5:9], "big"), bytes(one[9:])))
            else:
                chunks.append((one[2] if len(one) > 1 else 0, bytes(one[3:])))
        short = all(count < 256 and len(body) < 255 for count, body in chunks)
        out = bytearray((code8 if short else code32,))
        for count, body in chunks:
            if short:
                out += bytes((len(body) + 1, count))
            else:
                out += four(len(body) + 4) + four(count)
            out += body
        return bytes(out)

    return elements


WRITERS: Final[dict[str, Writer]] = SCALARS | {
    "list": _write_list,
    "map": _write_map,
    "array": _write_array,
}
"""The writer of each type of the standard, by name; each refuses values of another type."""

_ELEMENTS: Final[dict[str, Elements]] = {
    "boolean": _booleans,
    "ubyte": _integers("a ubyte", codes.UBYTE, "B"),
    "ushort": _integers("a ushort", codes.USHORT, "H"),
    "uint": _integers("a uint", codes.UINT, "I", codes.SMALL_UINT, "B"),
    "ulong": _integers("a ulong", codes.ULONG, "Q", codes.SMALL_ULONG, "B"),
    "byte": _integers("a byte", codes.BYTE, "b"),
    "short": _integers("a short", codes.SHORT, "h"),
    "int": _integers("an int", codes.INT, "i", codes.SMALL_INT, "b"),
    "long": _integers("a long", codes.LONG, "q", codes.SMALL_LONG, "b"),
    "float": _fixed("float", codes.FLOAT),
    "double": _fixed("double", codes.DOUBLE),
    "decimal32": _fixed("decimal32", codes.DECIMAL32),
    "decimal64": _fixed("decimal64", codes.DECIMAL64),
    "decimal128": _fixed("decimal128", codes.DECIMAL128),
    "char": _fixed("char", codes.CHAR),
    "timestamp": _fixed("timestamp", codes.TIMESTAMP),
    "uuid": _fixed("uuid", codes.UUID),
    "binary": _variable(codes.BINARY8, codes.BINARY32, binary_octets),
    "string": _variable(codes.STRING8, codes.STRING32, string_octets),
    "symbol": _variable(codes.SYMBOL8, codes.SYMBOL32, symbol_octets),
    "list": _compounds("list", codes.LIST8, codes.LIST32),
    "map": _compounds("map", codes.MAP8, codes.MAP32),
    "array": _compounds("array", codes.ARRAY8, codes.ARRAY32),
}


_BY_CLASS: Final[dict[type, Writer]] = {cls: WRITERS[name] for cls, name in TYPE_NAMES.items()} | {
    type(None): write_null,
    int: write_int,
    tuple: _write_list,
    bytearray: SCALARS["binary"],
    memoryview: SCALARS["binary"],
    datetime.datetime: SCALARS["timestamp"],
    ZeroWidthArray: _write_array,
    Described: _write_described,
}

_PRIMITIVE: Final = frozenset(TYPE_NAMES) - {list, dict, Array}
