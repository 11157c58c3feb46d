"""Values of arguments and headers: when two of them are equal, and how they are written as JSON.

Dialects have their own types for numbers and strings, which are subclasses of Python's. Equal are: numbers of one value,
whatever their width, and a timestamp with its seconds; a text and its octets in UTF-8; tables and arrays whose members
are equal. A boolean equals no number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from math import floor
from typing import Any, Final, cast

__all__ = ["comparable", "from_json", "to_json"]

_NOT_PLAIN: Final = "$"


def comparable(value: object) -> Hashable:
    """What is equal for equal values, and only for these."""
    match value:
        case None:
            return None
        case bool():
            return "boolean", value
        case int() if (seconds := _seconds(value)) is not None:
            return "number", seconds
        case int() | float():
            return "number", value + 0  # without the subclass, whose own ``==`` may differ
        case datetime():
            return "number", int(value.timestamp())
        case str():
            return "text", value.encode("utf-8", "surrogatepass")
        case bytes() | bytearray():
            return "text", bytes(value)
        case Mapping():
            members = cast("Mapping[object, object]", value)
            return "table", frozenset((comparable(key), comparable(each)) for key, each in members.items())
        case Sequence():
            return "array", tuple(comparable(each) for each in cast("Sequence[object]", value))
        case _:
            return type(value).__name__, value if isinstance(value, Hashable) else repr(value)


def _seconds(value: int) -> int | None:
    """The seconds of a timestamp that is a number of some other unit, as that of AMQP 1.0; None for any other number."""
    moment: Callable[[], datetime] | None = getattr(value, "to_datetime", None)
    if moment is None:
        return None
    try:
        return floor(moment().timestamp())
    except (ValueError, OverflowError):  # outside of the years that Python has
        return None


def to_json(value: object) -> Any:
    """The value in types that JSON has; what JSON has not becomes a table with one key, ``$``.

    Widths of numbers are not kept.

    Raises:
        TypeError: a value of a type that no field table has.
    """
    match value:
        case None | bool():
            return value
        case int() if (seconds := _seconds(value)) is not None:
            return {_NOT_PLAIN: ["time", seconds]}
        case int():
            return int(value)
        case float():
            return float(value) if value - value == 0 else {_NOT_PLAIN: ["float", repr(float(value))]}
        case str():
            return str(value)
        case bytes() | bytearray():
            return {_NOT_PLAIN: ["octets", bytes(value).hex()]}
        case datetime():
            return {_NOT_PLAIN: ["time", int(value.timestamp())]}
        case Decimal():
            return {_NOT_PLAIN: ["decimal", str(value)]}
        case Mapping():
            members = cast("Mapping[object, object]", value)
            table = {str(key): to_json(each) for key, each in members.items()}
            return {_NOT_PLAIN: ["table", table]} if _NOT_PLAIN in table else table
        case Sequence():
            return [to_json(each) for each in cast("Sequence[object]", value)]
        case _:
            raise TypeError(f"{type(value).__name__} is no type of a field table")


def from_json(value: Any) -> Any:
    """The value that ``to_json`` was given."""
    if value.__class__ is list:
        return [from_json(each) for each in value]
    if not isinstance(value, dict):
        return value
    table = cast("dict[str, Any]", value)
    if _NOT_PLAIN not in table:
        return {key: from_json(each) for key, each in table.items()}
    kind, inner = table[_NOT_PLAIN]
    match kind:
        case "float":
            return float(inner)
        case "octets":
            return bytes.fromhex(inner)
        case "time":
            return datetime.fromtimestamp(inner, UTC)
        case "decimal":
            return Decimal(inner)
        case _:
            return {key: from_json(each) for key, each in inner.items()}
