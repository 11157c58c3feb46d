"""AMQP types beside JSON, so that a value survives the conversion and back (1.6).

JSON has one kind of number and of string. Beside a JSON value stand its *types*: names of AMQP types by JSON pointers (RFC 6901),
only for the values that would be read as another type without them:

==========================  ==============================================================
JSON                        read without a type as
==========================  ==============================================================
``null``, a boolean         null, a boolean
a string                    a string
a number                    a long or, with a point or an exponent, a double
``{"base64": "..."}``       binary
an array, another object    a list, a map with strings as keys
==========================  ==============================================================

A type is the standard's name; ``array of NAME``; ``described``, for ``{"descriptor": ..., "value": ...}``; or ``encoded:`` and
base64, the octets of a value that has no other form here, such as a map whose keys are no strings. Knows no message.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.json_values import READERS, as_text, to_json
from trio_amqp10.amqp10.wire.values import (
    TYPE_NAMES,
    Array,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Symbol,
    ULong,
)
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ARRAY: Final = "array of "
_ENCODED: Final = "encoded:"
_LONG: Final = 2**63
_PLAIN: Final = frozenset({type(None), bool, str, bytes, int})

TYPES: Final = (*sorted({*TYPE_NAMES.values()} - {"list", "map", "array"}),)
"""The names of the types of single values."""


def pointer(where: str, *keys: str | int) -> str:
    """Return the JSON pointer of a member."""
    return where + "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)


# -- to JSON --------------------------------------------------------------------------------


def types_of(value: Any, where: str, types: dict[str, str]) -> None:
    """Add to ``types`` what ``from_json(to_json(value))`` needs to return the value.

    Args:
        value: an AMQP value.
        where: its JSON pointer.
        types: the types by pointer.
    """
    cls = value.__class__
    if cls in _PLAIN or (cls is float and math.isfinite(value)):
        return
    if cls is list:
        for place, item in enumerate(value):
            types_of(item, pointer(where, place), types)
        return
    if cls is dict and all(key.__class__ is str for key in value):
        if _looks_binary(value):
            types[where] = "map"
        for key, item in value.items():
            types_of(item, pointer(where, key), types)
        return
    if cls is Described and value.descriptor.__class__ in (Symbol, ULong):
        types[where] = "described"
        types_of(value.value, pointer(where, "value"), types)
        return
    if cls is Array and not value.descriptors and value.type in TYPES:
        found = f"{_ARRAY}{value.type}"
    else:
        found = TYPE_NAMES.get(cls, "")
    try:
        octets = encode(value)
    except LocalProtocolError:
        return  # an object of our own, which JSON only describes
    written = json.loads(json.dumps(to_json(value)))
    if _is_read_as(octets, written, ""):
        return
    types[where] = (
        found
        if found and _is_read_as(octets, written, found)
        else f"{_ENCODED}{base64.b64encode(octets).decode()}"
    )


def _is_read_as(octets: bytes, written: Any, name: str) -> bool:
    try:
        return encode(from_json(written, "", {"": name} if name else {})) == octets
    except ValueError:
        return False


def _looks_binary(members: Mapping[Any, Any]) -> bool:
    return len(members) == 1 and isinstance(members.get("base64"), str)


# -- from JSON ------------------------------------------------------------------------------


def from_json(value: Any, where: str, types: Mapping[str, Any]) -> Any:
    """Return the AMQP value of a JSON value.

    Args:
        value: as ``json.loads`` returns it.
        where: its JSON pointer.
        types: the types by pointer.

    Raises:
        ValueError: a type is unknown, or the value does not have it; the message begins with the pointer.
    """
    name = types.get(where)
    if name is not None:
        return _typed(value, where, name, types)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if _looks_binary(members):
            return _binary(members["base64"], where)
        return _map(members, where, types)
    if isinstance(value, list):
        return _list(_items(value), where, types)
    if value.__class__ is int and not -_LONG <= value < _LONG:
        raise ValueError(f"{where}: {value} is not a long; add its type, as in {{{where!r}: 'ulong'}}")
    return value


def _typed(value: Any, where: str, name: Any, types: Mapping[str, Any]) -> Any:
    if not isinstance(name, str):
        raise ValueError(f"{where}: the type must be a string, not {name!r}")
    if name.startswith(_ENCODED):
        return _decoded(name, where)
    if name == "map" and isinstance(value, dict):
        return _map(cast("dict[str, Any]", value), where, types)
    if name == "list" and isinstance(value, list):
        return _list(_items(value), where, types)
    if (
        name == "described"
        and isinstance(value, dict)
        and {*cast("dict[str, Any]", value)} == {"descriptor", "value"}
    ):
        parts = cast("dict[str, Any]", value)
        return Described(parts["descriptor"], from_json(parts["value"], pointer(where, "value"), types))
    if name.startswith(_ARRAY) and isinstance(value, list):
        kind = name.removeprefix(_ARRAY)
        items = [_scalar(item, pointer(where, place), kind) for place, item in enumerate(_items(value))]
        return Array(items, kind)
    return _scalar(value, where, name)


def _items(value: Any) -> list[Any]:
    return value  # type: ignore[no-any-return]


def _scalar(value: Any, where: str, name: str) -> Any:
    read = _READERS.get(name)
    if read is None:
        raise ValueError(
            f"{where}: {name!r} is not a type that fits here; the types are {', '.join(TYPES)}, map, list, described and array of TYPE"
        )
    try:
        return read(value)
    except (
        ValueError,
        TypeError,
        LocalProtocolError,
        InvalidOperation,
        OverflowError,
        AttributeError,
    ) as wrong:
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
        raise ValueError(f"{where}: {shown} is not of type {name} ({_one_line(wrong)})") from None


def _one_line(wrong: Exception) -> str:
    if isinstance(wrong, InvalidOperation):
        return "expected a decimal number as a string"
    return " ".join(str(wrong).split())


def _list(items: list[Any], where: str, types: Mapping[str, Any]) -> list[Any]:
    return [from_json(item, pointer(where, place), types) for place, item in enumerate(items)]


def _map(members: dict[str, Any], where: str, types: Mapping[str, Any]) -> dict[str, Any]:
    return {key: from_json(item, pointer(where, key), types) for key, item in members.items()}


def _binary(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as wrong:
        raise ValueError(f"{where}: this is not base64 ({wrong})") from None


def _decoded(name: str, where: str) -> Any:
    octets = _binary(name.removeprefix(_ENCODED), where)
    try:
        value, end = decode(octets)
    except RemoteProtocolError as wrong:
        raise ValueError(f"{where}: these are not the octets of a value: {wrong.description}") from None
    if end != len(octets):
        raise ValueError(f"{where}: {len(octets) - end} octets follow the value")
    return value


def _long(value: Any) -> int:
    number: int = READERS["long"](value)
    if not -_LONG <= number < _LONG:
        raise ValueError("expected a number of 64 bits")
    return number


def _number(kind: Callable[[float], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError("expected a number")
        return kind(float(value))

    return read


def _octets(value: Any) -> bytes:
    if isinstance(value, dict) and _looks_binary(cast("dict[str, Any]", value)):
        return _binary(cast("dict[str, Any]", value)["base64"], "")
    if isinstance(value, str):
        return value.encode(errors="surrogateescape")
    raise ValueError('expected {"base64": "..."}')


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **READERS,
    "long": _long,
    "float": _number(Float),
    "double": _number(float),
    "decimal32": as_text(lambda text: Decimal32.from_decimal(Decimal(text))),
    "decimal64": as_text(lambda text: Decimal64.from_decimal(Decimal(text))),
    "decimal128": as_text(lambda text: Decimal128.from_decimal(Decimal(text))),
    "binary": _octets,
}

_WORDS: Final = {"true": True, "false": False}


def parse_scalar(name: str, text: str) -> Any:
    """Return the value of a type from the text of a command line.

    Raises:
        ValueError: there is no such type, or the text has no such value.
    """
    value: Any = text
    if name == "boolean":
        value = _WORDS.get(text, text)
    elif name in _NUMBERS:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"{text!r} is not of type {name} (expected a whole number)") from None
    elif name not in TYPES:
        raise ValueError(f"{name!r} is not a type; the types are {', '.join(TYPES)}")
    try:
        return _scalar(value, "", name)
    except ValueError as wrong:
        raise ValueError(str(wrong).removeprefix(": ")) from None


_NUMBERS: Final = frozenset({"ubyte", "ushort", "uint", "ulong", "byte", "short", "int", "long", "timestamp"})
