"""What the text of an option may be, and the value that it is: one function for each kind of option.

Each raises ``ValueError``, whose text ends the sentence that an option has a value which it may not have.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import urlsplit

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.paths import local_path, scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "COLUMN_TYPES",
    "boolean",
    "count",
    "lanes",
    "local_file",
    "location",
    "milliseconds",
    "names",
    "octets",
    "offsets",
    "one_of",
    "seconds",
    "text",
    "typed_columns",
]

_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m)?", re.ASCII)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SIZE: Final = re.compile(r"([0-9]+)\s*([kmg]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_OCTETS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def text(value: str) -> str:
    """Any text but none."""
    if not value:
        raise ValueError("it is empty")
    return value


_STORES: Final = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""Schemes of object stores that ``pyarrow.fs`` knows."""
_WITHOUT_HOST: Final = ("hdfs", "viewfs")


def location(value: str) -> str:
    """A folder, or a URI of an object store; the URI is never shown, for it may have a password.

    A relative path stays one: see ``storage.open_store``.
    """
    scheme = scheme_of(text(value))
    if scheme is None or scheme == "file":
        path = local_file(value)
        return path if scheme == "file" or value.startswith("~") else value
    if scheme not in _STORES:
        hint = "; Databricks has DBFS as the folder /dbfs" if scheme == "dbfs" else ""
        hint = f"; write {scheme[:2]}://" if scheme in ("s3a", "s3n") else hint
        raise ValueError(
            f"no store of the scheme {scheme!r} is known here: a path, or a URI of file, {', '.join(_STORES)} is possible{hint}"
        )
    if scheme not in _WITHOUT_HOST and not urlsplit(value).netloc:
        raise ValueError(f"a URI of the scheme {scheme!r} names a bucket: {scheme}://BUCKET/PATH is possible")
    return value


def local_file(value: str) -> str:
    """The absolute path of a file or a folder on this machine."""
    try:
        return local_path(text(value))
    except LocalProtocolError as wrong:
        raise ValueError(str(wrong)) from None


def boolean(value: str) -> bool:
    """``true`` or ``false``."""
    try:
        return {"true": True, "false": False}[value.strip().lower()]
    except KeyError:
        raise ValueError("true or false is possible") from None


def seconds(value: str) -> float:
    """A duration: ``500ms``, ``2s``, ``1m``, or a number of seconds."""
    found = _DURATION.fullmatch(value.strip())
    if found is None:
        raise ValueError("a number with ms, s or m is possible, e.g. 500ms; without a unit it is seconds")
    return float(found[1]) * _SECONDS[found[2]]


def octets(least: int) -> Callable[[str], int]:
    """A number of octets, ``64m`` or ``1g`` too, and at least so many."""

    def parse(value: str) -> int:
        found = _SIZE.fullmatch(value.strip())
        number = least - 1 if found is None else int(found[1]) * _OCTETS[found[2].lower()]
        if number < least:
            raise ValueError(f"a number of octets, at least {least}, is possible, e.g. 1048576, 64m or 1g")
        return number

    return parse


def count(least: int) -> Callable[[str], int]:
    """A whole number, at least this."""

    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            number = least - 1
        if number < least:
            raise ValueError(f"a whole number, at least {least}, is possible")
        return number

    return parse


def lanes(value: str) -> int | Literal["external"]:
    """How many, or ``external``."""
    if value.strip().lower() == "external":
        return "external"
    try:
        return count(1)(value)
    except ValueError:
        raise ValueError("a whole number, at least 1, or external is possible") from None


def one_of(*possible: str) -> Callable[[str], str]:
    """One of these words, in lower case."""

    def parse(value: str) -> str:
        if value.strip().lower() not in possible:
            raise ValueError(f"one of {', '.join(possible)} is possible")
        return value.strip().lower()

    return parse


def names(value: str) -> tuple[str, ...]:
    """Names with commas between them."""
    found = tuple([name.strip() for name in value.split(",")])
    if not all(found) or len(set(found)) < len(found):
        raise ValueError("names with commas between them are possible, each once")
    return found


def offsets(value: str) -> str | int | dict[str, int]:
    """``earliest``, ``latest``, a number, or a number for each address."""
    if value.strip().lower() in ("earliest", "latest"):
        return value.strip().lower()
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    numbers: list[Any] = list(cast("dict[str, Any]", found).values()) if isinstance(found, dict) else [found]
    if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in numbers):
        raise ValueError("earliest, latest, a number, or JSON with a number for each address is possible")
    return cast("int | dict[str, int]", found)


_COLUMN: Final = re.compile(r"(?:`([^`]+)`|([^\s`]+))\s+([a-z]+)", re.ASCII | re.IGNORECASE)
COLUMN_TYPES: Final = (
    *("boolean", "byte", "short", "int", "long", "ubyte", "ushort", "uint", "ulong"),
    *("float", "double", "string", "symbol", "uuid", "binary", "timestamp"),
)
"""Of property columns: see ``property_columns``."""
_SAME: Final = {"tinyint": "byte", "smallint": "short", "integer": "int", "bigint": "long", "real": "float"}
"""Spark's other names of these."""


def typed_columns(value: str) -> tuple[tuple[str, str], ...]:
    """Keys with the types of their columns, in order."""
    found: dict[str, str] = {}
    for each in value.split(","):
        column = _COLUMN.fullmatch(each.strip())
        kind = "" if column is None else column[3].lower()
        kind = _SAME.get(kind, kind)
        key = "" if column is None else column[1] or column[2]
        if kind not in COLUMN_TYPES or key.lower() in map(str.lower, found):
            raise ValueError(
                "keys with their types are possible, each once, as in 'n int, `the kind` string'; the types are "
                + ", ".join(COLUMN_TYPES)
            )
        found[key] = kind
    return tuple(found.items())


def milliseconds(value: str) -> int:
    """Milliseconds since 1970."""
    written = value.strip()
    if written.isascii() and written.isdigit():
        return int(written)
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(
            "milliseconds since 1970, or a time with its zone, is possible, e.g. 2026-11-23T12:00:00Z"
        )
    return (moment - _EPOCH) // timedelta(milliseconds=1)
