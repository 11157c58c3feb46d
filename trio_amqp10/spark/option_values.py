"""Parses the texts of options, with one function for each kind of value.

Each raises ``ValueError`` for a text that is not allowed; the text of the error lists the possible values.
"""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import urlsplit

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.paths import local_path, scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable

_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m)?", re.ASCII)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SIZE: Final = re.compile(r"([0-9]+)\s*([kmg]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_OCTETS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def text(value: str) -> str:
    """Return a text that is not empty."""
    if not value:
        raise ValueError("expected a text that is not empty")
    return value


_STORES: Final = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""Schemes of object stores that ``pyarrow.fs`` knows."""
_WITHOUT_HOST: Final = ("hdfs", "viewfs")


def location(value: str) -> str:
    """Return a folder, or the URI of an object store.

    The URI is never shown, because it may have a password. A relative path stays relative: see ``storage.open_store``.
    """
    scheme = scheme_of(text(value))
    if scheme is None or scheme == "file":
        path = local_file(value)
        return path if scheme == "file" or value.startswith("~") else value
    if scheme not in _STORES:
        hint = "; Databricks has DBFS as the folder /dbfs" if scheme == "dbfs" else ""
        hint = f"; write {scheme[:2]}://" if scheme in ("s3a", "s3n") else hint
        raise ValueError(
            f"no store of the scheme {scheme!r} is known: expected a path, or a URI of file, {', '.join(_STORES)}{hint}"
        )
    if scheme not in _WITHOUT_HOST and not urlsplit(value).netloc:
        raise ValueError(f"a URI of the scheme {scheme!r} names a bucket: expected {scheme}://BUCKET/PATH")
    return value


def local_file(value: str) -> str:
    """Return the absolute path of a file or a folder on this machine."""
    try:
        return local_path(text(value))
    except LocalProtocolError as wrong:
        raise ValueError(str(wrong)) from None


def command(value: str) -> str:
    """Return a command with its arguments, which a shell could read."""
    try:
        words = shlex.split(value)
    except ValueError:
        words = []
    if not words:
        raise ValueError("expected a command with its arguments, quoted as in a shell")
    return value


def boolean(value: str) -> bool:
    """Return the boolean of ``true`` or ``false``."""
    try:
        return {"true": True, "false": False}[value.strip().lower()]
    except KeyError:
        raise ValueError("expected true or false") from None


def seconds(value: str) -> float:
    """Return the seconds of a duration: ``500ms``, ``2s``, ``1m``, or a number."""
    found = _DURATION.fullmatch(value.strip())
    if found is None:
        raise ValueError("expected a number with ms, s or m, e.g. 500ms; without a unit it is seconds")
    return float(found[1]) * _SECONDS[found[2]]


def octets(least: int) -> Callable[[str], int]:
    """Make a parser for a number of octets, at least ``least``, also as ``64m``."""

    def parse(value: str) -> int:
        found = _SIZE.fullmatch(value.strip())
        number = least - 1 if found is None else int(found[1]) * _OCTETS[found[2].lower()]
        if number < least:
            raise ValueError(f"expected a number of octets, at least {least}, e.g. 1048576, 64m or 1g")
        return number

    return parse


def count(least: int) -> Callable[[str], int]:
    """Make a parser for a whole number that is at least ``least``."""

    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            number = least - 1
        if number < least:
            raise ValueError(f"expected a whole number, at least {least}")
        return number

    return parse


def lanes(value: str) -> int | Literal["external"]:
    """Return the number of lanes, or ``external``."""
    if value.strip().lower() == "external":
        return "external"
    try:
        return count(1)(value)
    except ValueError:
        raise ValueError("expected a whole number, at least 1, or external") from None


def one_of(*possible: str) -> Callable[[str], str]:
    """Make a parser for one of some words, in any case."""

    def parse(value: str) -> str:
        if value.strip().lower() not in possible:
            raise ValueError(f"expected one of {', '.join(possible)}")
        return value.strip().lower()

    return parse


def names(value: str) -> tuple[str, ...]:
    """Return the names of a list separated by commas, each once."""
    found = tuple([name.strip() for name in value.split(",")])
    if not all(found) or len(set(found)) < len(found):
        raise ValueError("expected names with commas between them, each once")
    return found


def offsets(value: str) -> str | int | dict[str, int]:
    """Return ``earliest``, ``latest``, a number, or a number for each address."""
    if value.strip().lower() in ("earliest", "latest"):
        return value.strip().lower()
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    numbers: list[Any] = list(cast("dict[str, Any]", found).values()) if isinstance(found, dict) else [found]
    if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in numbers):
        raise ValueError("expected earliest, latest, a number, or JSON with a number for each address")
    return cast("int | dict[str, int]", found)


_COLUMN: Final = re.compile(r"(?:`([^`]+)`|([^\s`]+))\s+([a-z]+)", re.ASCII | re.IGNORECASE)
COLUMN_TYPES: Final = (
    *("boolean", "byte", "short", "int", "long", "ubyte", "ushort", "uint", "ulong"),
    *("float", "double", "string", "symbol", "uuid", "binary", "timestamp"),
)
"""The types of property columns (``property_columns``)."""
_SAME: Final = {"tinyint": "byte", "smallint": "short", "integer": "int", "bigint": "long", "real": "float"}
"""Other names of Spark for these types."""


def typed_columns(value: str) -> tuple[tuple[str, str], ...]:
    """Return keys with the types of their columns, in order."""
    found: dict[str, str] = {}
    for each in value.split(","):
        column = _COLUMN.fullmatch(each.strip())
        kind = "" if column is None else column[3].lower()
        kind = _SAME.get(kind, kind)
        key = "" if column is None else column[1] or column[2]
        if kind not in COLUMN_TYPES or key.lower() in map(str.lower, found):
            raise ValueError(
                "expected keys with their types, each once, as in 'n int, `the kind` string'; the types are "
                + ", ".join(COLUMN_TYPES)
            )
        found[key] = kind
    return tuple(found.items())


def milliseconds(value: str) -> int:
    """Return the milliseconds since 1970 of an ISO time with its zone, or a number."""
    written = value.strip()
    if written.isascii() and written.isdigit():
        return int(written)
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(
            "expected milliseconds since 1970, or a time with its zone, e.g. 2026-11-23T12:00:00Z"
        )
    return (moment - _EPOCH) // timedelta(milliseconds=1)
