"""Converts map values to text and back, for ``map<string, string>`` columns.

A string, a symbol, a char or a uuid is its text, null is null, and any other value is JSON. Back, a text without a type is
a string, whatever it looks like. So a second map has the type of each value: the name
of an AMQP type, if text and name determine the value; or, for lists, maps, arrays, described values,
decimals and numbers that JSON cannot express, the name followed by the AMQP encoding in base64. It is an error if
the text was changed and the encoding was not, because they contradict each other. A key that
does not have the usual type of the section's keys (a symbol, or a string in application-properties)
has its type before a slash: ``ulong/string``.

Sections: 1.6 (types), 3.2.3, 3.2.5, 3.2.10 (the maps). Does not know rows.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.json_values import READERS, to_json
from trio_amqp10.amqp10.wire.values import TYPE_NAMES
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class UnfitError(LocalProtocolError):
    """A row cannot be a message; the text has the reason."""


def to_json_text(value: Any) -> str:
    """Return an AMQP value as JSON."""
    return _dumps(to_json(value))


def to_text(value: Any) -> str | None:
    """Return a value of a map as text.

    A string is its text, null is None, and other values are JSON.
    """
    plain = to_json(value)
    if plain is None:
        return None
    return str(plain) if isinstance(plain, str) else _dumps(plain)


def _dumps(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def type_of(value: Any) -> str:
    """Return the type of a value, as it stands beside its JSON."""
    if value is None:
        return "null"
    name = TYPE_NAMES.get(value.__class__)
    if name is not None and name in _SCALARS and not (isinstance(value, float) and not math.isfinite(value)):
        return name
    return f"{name or 'described'} {base64.b64encode(encode(value)).decode()}"


def _binary(value: Any) -> bytes:
    if not isinstance(value, dict) or cast("dict[str, Any]", value).keys() != {"base64"}:
        raise ValueError('expected {"base64": "..."}')
    return base64.b64decode(cast("dict[str, str]", value)["base64"], validate=True)


_SCALARS: Final[Mapping[str, Callable[[Any], Any]]] = {**READERS, "binary": _binary}
_TEXTS: Final = frozenset({"char", "string", "symbol", "uuid"})
"""The types whose text is no JSON."""


def from_text(text: str | None, type_name: str | None) -> Any:
    """Return the AMQP value of a text; without a type, a string.

    Raises:
        UnfitError: the text does not fit the type.
    """
    if text is None:
        return None
    if type_name is None:
        return text
    name, _, encoded = type_name.partition(" ")
    try:
        if name == "null":
            raise ValueError("expected null")
        if encoded:
            return _encoded(text, encoded)
        if name not in _SCALARS:
            raise ValueError(f"no simple AMQP type is called {name!r}")
        return _SCALARS[name](text if name in _TEXTS else json.loads(text))
    except (ValueError, LocalProtocolError, RemoteProtocolError) as wrong:
        raise UnfitError(f"{text[:100]!r} cannot be of type {type_name[:100]!r}: {wrong}") from None


def _encoded(text: str, encoded: str) -> Any:
    try:
        octets = base64.b64decode(encoded, validate=True)
    except binascii.Error as wrong:
        raise ValueError(str(wrong)) from None
    value, end = decode(octets)
    if end != len(octets):
        raise ValueError("there are octets after the encoded value")
    if to_text(value) != text:
        raise ValueError("the encoding is that of another value; remove the type if the text has changed")
    return value


# Whole maps ---------------------------------------------------------------------------------------


def map_to_text(values: Mapping[Any, Any]) -> list[tuple[str, str | None]]:
    """Return a map as pairs of key and text."""
    return [(str(key), to_text(value)) for key, value in values.items()]


def map_types(values: Mapping[Any, Any], key_type: type[str]) -> list[tuple[str, str]]:
    """Return a map as pairs of key and type."""
    return [
        (
            str(key),
            type_of(value) if key.__class__ is key_type else f"{_key_type(key)}/{type_of(value)}",
        )
        for key, value in values.items()
    ]


def _key_type(key: Any) -> str:
    return TYPE_NAMES.get(key.__class__, "string")


def map_from_text(
    pairs: Iterable[tuple[str, Any]], types: Iterable[tuple[str, str]] | None, key_type: type[str]
) -> dict[Any, Any]:
    """Return a map of AMQP values; values that are not text are used unchanged.

    Raises:
        UnfitError: a value does not fit its type.
    """
    named = dict(types or ())
    made: dict[Any, Any] = {}
    for key, text in pairs:
        type_name = named.get(key)
        made_key: Any
        if type_name is not None and "/" in type_name.partition(" ")[0]:
            key_name, _, type_name = type_name.partition("/")
            make = _SCALARS.get(key_name)
            if make is None or key_name not in ("ulong", "symbol", "string"):
                raise UnfitError(f"a key is a symbol, a string or a ulong, not {key_name[:50]!r}")
            try:
                made_key = make(int(key) if key_name == "ulong" else key)
            except (ValueError, LocalProtocolError) as wrong:
                raise UnfitError(f"key {key[:100]!r} cannot be of type {key_name!r}: {wrong}") from None
        else:
            made_key = key_type(key)
        made[made_key] = from_text(text, type_name) if text is None or isinstance(text, str) else text
    return made
