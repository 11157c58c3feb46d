"""Encoding of values, each in its shortest form: ``encode(value)`` (1.6).

An object whose class has ``__amqp_encode__(self, out)`` encodes itself, wherever it occurs. If it contains further values that
should count towards the depth, its class has ``__amqp_encode_at__(self, out, depth)`` instead. This module does not know frames,
or fields of composites.

Every writer has the signature ``(out, value, depth)``, and appends a constructor and the octets of the value; ``depth`` is the
number of levels that may be opened below. The writers in ``WRITERS`` check the type of the value, so that they also serve
declared fields.
"""

from __future__ import annotations

import contextlib
import datetime
import reprlib
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from trio_amqp10.core.errors import LocalProtocolError

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
    """Return the octets of ``value``.

    Raises:
        LocalProtocolError: AMQP has no such value, or it is nested more than 32 levels deep.
    """
    out = bytearray()
    write_value(out, value, MAX_DEPTH)
    return bytes(out)


def encode_into(out: bytearray, value: Any) -> None:
    """Append the octets of ``value``; ``out`` is unchanged after an error.

    Raises:
        LocalProtocolError: as ``encode``.
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
    """Return the writer for an object that encodes itself, or for a subclass."""
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
    remedy = (
        "use Decimal128.from_decimal(...)" if cls.__name__ == "Decimal" else "encode it, for example as JSON"
    )
    raise LocalProtocolError(f"AMQP has no type for a {cls.__module__}.{cls.__qualname__}: {remedy}")


# Compounds, arrays and described values ----------------------------------------------------------


def below(depth: int, levels: int = 1) -> int:
    """Return ``depth`` less ``levels``; raise if the nesting is too deep."""
    if depth < levels:
        raise LocalProtocolError(f"values are nested more than {MAX_DEPTH} levels deep")
    return depth - levels


def write_compound(out: bytearray, code8: int, code32: int, count: int, body: bytes | bytearray) -> None:
    """Append constructor, size, count and ``body``, in the short form if possible."""
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
    item: Any = None
    try:
        for item in value:
            write_value(body, item, depth)
    except LocalProtocolError as error:
        raise _at(next(at for at, each in enumerate(value) if each is item), error) from None
    return body


def _write_map(out: bytearray, value: Any, depth: int) -> None:
    check_class(value, Mapping, "a mapping")
    write_compound(out, codes.MAP8, codes.MAP32, 2 * len(value), _map_body(value, below(depth)))


def _map_body(value: Mapping[Any, Any], depth: int) -> bytearray:
    body = bytearray()
    key: Any = None
    try:
        for key, each in value.items():
            write_value(body, key, depth)
            write_value(body, each, depth)
    except LocalProtocolError as error:
        raise _at(key, error) from None
    return body


def _at(step: Any, error: LocalProtocolError) -> LocalProtocolError:
    """Return the error with the index or key of its value, as in ``['tea'][0]: ...``."""
    return named(f"[{reprlib.repr(step)}]", error)


def named(where: str, error: LocalProtocolError) -> LocalProtocolError:
    """Return the error with the place of its value, as in ``body['tea']: ...``."""
    message = str(error)
    return LocalProtocolError(f"{where}{'' if message.startswith('[') else ': '}{message}")


def _write_described(out: bytearray, value: Any, depth: int) -> None:
    depth = below(depth)
    out.append(codes.DESCRIBED)
    _write_descriptor(out, value.descriptor, depth)
    write_value(out, value.value, depth)


def _write_descriptor(out: bytearray, value: Any, depth: int) -> None:
    """Append a descriptor; any primitive is accepted, to forward those of a peer."""
    if value is not None and value.__class__ not in _PRIMITIVE:
        raise LocalProtocolError(f"a descriptor must be a Symbol or a ULong, not {value!r}")
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
    """Return an encoder of elements of fixed width, based on the writer of the type."""
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
    """Return an encoder of lists, maps or arrays as elements.

    All elements use the short form, or all use the long form; an empty list never uses its own code.
    """
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
"""The writer of each type, by the standard's name; it refuses other types."""

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
