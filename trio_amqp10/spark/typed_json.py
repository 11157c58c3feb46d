"""Map values as JSON text and back, for ``map<string, string>`` columns.

The text alone keeps what JSON can tell. Next to it stands a type, so that nothing is lost: the name
of an AMQP type where text and name together say it all, or, for lists, maps, arrays, described values,
decimals and numbers that JSON has not, the name followed by the AMQP encoding in base64. Where the
text was changed and the encoding was not, that is an error, for they contradict each other. A key that
is not what the section's keys are as a rule (a symbol, or a string among application properties)
has its type before a slash: ``ulong/string``.

Sections: 1.6 (types), 3.2.3, 3.2.5, 3.2.10 (the maps). Knows no rows.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import uuid
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.json_values import to_json
from trio_amqp10.wire.decode import decode
from trio_amqp10.wire.encode import encode
from trio_amqp10.wire.values import (
    TYPE_NAMES,
    Byte,
    Char,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "UnfitError",
    "from_text",
    "json_text",
    "map_from_text",
    "map_to_text",
    "map_types",
    "to_text",
    "type_of",
]


class UnfitError(LocalProtocolError):
    """A row that cannot be a message, and why."""


def to_text(value: Any) -> str:
    """Any AMQP value as JSON."""
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))


def type_of(value: Any) -> str:
    """What is to be said of a value next to its JSON."""
    if value is None:
        return "null"
    name = TYPE_NAMES.get(value.__class__)
    if name is not None and name in _SCALARS and not (isinstance(value, float) and not math.isfinite(value)):
        return name
    return f"{name or 'described'} {base64.b64encode(encode(value)).decode()}"


def _integer(cls: Callable[[int], Any]) -> Callable[[Any], Any]:
    def make(value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError("a whole number is due")
        return cls(value)

    return make


def _text(cls: Callable[[str], Any]) -> Callable[[Any], Any]:
    def make(value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError("a string is due")
        return cls(value)

    return make


def _number(cls: Callable[[float], Any]) -> Callable[[Any], Any]:
    def make(value: Any) -> Any:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ValueError("a number is due")
        return cls(value)

    return make


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false is due")
    return value


def _binary(value: Any) -> bytes:
    if not isinstance(value, dict) or cast("dict[str, Any]", value).keys() != {"base64"}:
        raise ValueError('{"base64": "..."} is due')
    return base64.b64decode(cast("dict[str, str]", value)["base64"], validate=True)


_SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    "boolean": _boolean,
    "ubyte": _integer(UByte),
    "ushort": _integer(UShort),
    "uint": _integer(UInt),
    "ulong": _integer(ULong),
    "byte": _integer(Byte),
    "short": _integer(Short),
    "int": _integer(Int),
    "long": _integer(int),
    "float": _number(Float),
    "double": _number(float),
    "char": _text(Char),
    "timestamp": _integer(Timestamp),
    "uuid": _text(uuid.UUID),
    "binary": _binary,
    "string": _text(str),
    "symbol": _text(Symbol),
}


def from_text(text: str | None, type_name: str | None) -> Any:
    """The AMQP value of a text.

    Without a type, JSON is taken for what it is (whole numbers are long), and what is not JSON is a string.

    Raises:
        UnfitError: text and type do not go together.
    """
    if text is None:
        return None
    if type_name is None:
        return _untyped(text)
    name, _, encoded = type_name.partition(" ")
    try:
        value = json.loads(text)
        if name == "null":
            if value is not None:
                raise ValueError("null is due")
            return None
        if encoded:
            return _encoded(text, encoded)
        if name not in _SCALARS:
            raise ValueError(f"no simple AMQP type is called {name!r}")
        return _SCALARS[name](value)
    except (ValueError, LocalProtocolError, RemoteProtocolError) as wrong:
        raise UnfitError(f"{text[:100]!r} cannot be of type {type_name[:100]!r}: {wrong}") from None


def _untyped(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, int) and not -(2**63) <= value < 2**63 and value is not True:
        return ULong(value) if 0 <= value < 2**64 else text
    return value


def _encoded(text: str, encoded: str) -> Any:
    try:
        octets = base64.b64decode(encoded, validate=True)
    except binascii.Error as wrong:
        raise ValueError(str(wrong)) from None
    value, end = decode(octets)
    if end != len(octets):
        raise ValueError("octets are left behind the encoded value")
    if to_text(value) != text:
        raise ValueError("the encoding says otherwise; drop the type where you change the text")
    return value


# Whole maps ---------------------------------------------------------------------------------------


def map_to_text(values: Mapping[Any, Any]) -> list[tuple[str, str]]:
    """A map as pairs of key and JSON."""
    return [
        # A plain string is by far the most frequent, and json.dumps alone does for it.
        (str(key), json_text(value) if value.__class__ is str else to_text(value))
        for key, value in values.items()
    ]


def map_types(values: Mapping[Any, Any], key_type: type[str]) -> list[tuple[str, str]]:
    """The same map as pairs of key and type."""
    return [
        (
            str(key),
            type_of(value) if key.__class__ is key_type else f"{_key_type(key)}/{type_of(value)}",
        )
        for key, value in values.items()
    ]


json_text: Final = json.JSONEncoder(ensure_ascii=False).encode
"""A plain string as JSON."""


def _key_type(key: Any) -> str:
    return TYPE_NAMES.get(key.__class__, "string")


def map_from_text(
    pairs: Iterable[tuple[str, Any]], types: Iterable[tuple[str, str]] | None, key_type: type[str]
) -> dict[Any, Any]:
    """A map of AMQP values; values that are not text are taken as they are.

    Raises:
        UnfitError: a value and its type do not go together.
    """
    named = dict(types or ())
    made: dict[Any, Any] = {}
    for key, text in pairs:
        type_name = named.get(key)
        made_key: Any = key_type(key)
        if type_name is not None and "/" in type_name.partition(" ")[0]:
            key_name, _, type_name = type_name.partition("/")
            make = _SCALARS.get(key_name)
            if make is None or key_name not in ("ulong", "symbol", "string"):
                raise UnfitError(f"a key is a symbol, a string or a ulong, not {key_name[:50]!r}")
            try:
                made_key = make(int(key) if key_name == "ulong" else key)
            except (ValueError, LocalProtocolError) as wrong:
                raise UnfitError(f"key {key[:100]!r} cannot be of type {key_name!r}: {wrong}") from None
        made[made_key] = from_text(text, type_name) if text is None or isinstance(text, str) else text
    return made
