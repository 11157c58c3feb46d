"""Values of arguments and headers: equality, names of types, form in JSON.

Dialects have their own types for numbers and strings, which are subclasses of Python's. As at RabbitMQ, equal are: whole
numbers of the same value and any width; fractions of the same value, which equal no whole number; timestamps of the same
second, which equal no number; decimals of the same digits and scale; a text and its octets in UTF-8; tables and arrays whose
members are equal. A boolean is not equal to any number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from math import floor
from typing import Any, Final, cast

_NOT_PLAIN: Final = "$"


def comparable(value: object) -> Hashable:
    """Return a key that is equal for equal values, and only for these."""
    match value:
        case None:
            return None
        case bool():
            return "boolean", value
        case int() if (seconds := _seconds(value)) is not None:
            return "time", seconds
        case int():
            return "number", value + 0  # A plain number: a subclass may have its own ``==``.
        case float():
            return "fraction", value + 0
        case datetime():
            return "time", int(value.timestamp())
        case Decimal():
            return "decimal", value.as_tuple()
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
    """Return the seconds of a timestamp in another unit, or None for any other number.

    AMQP 1.0 has such timestamps.
    """
    moment: Callable[[], datetime] | None = getattr(value, "to_datetime", None)
    if moment is None:
        return None
    try:
        return floor(moment().timestamp())
    except (ValueError, OverflowError):  # The year is outside of Python's range.
        return None


_TYPES: Final = (
    (bool, "bool"),
    (float, "double"),
    (datetime, "timestamp"),
    (Decimal, "decimal"),
    (bytes, "binary"),
    (str, "longstr"),
    (Mapping, "table"),
    (Sequence, "array"),
    (int, "signedint"),
)
_WIDTHS: Final = {
    "Int8": "byte",
    "UInt8": "unsignedbyte",
    "Int16": "short",
    "UInt16": "unsignedshort",
    "UInt32": "unsignedint",
    "Int64": "long",
    "Int64L": "long",
    "Float32": "float",
    "Timestamp": "timestamp",
}
"""The names of types that are subclasses of Python's, by the name of the class."""


def name_of_type(value: object) -> str:
    """Return the type of a value in a field table, as RabbitMQ's texts name it."""
    if value is None:
        return "void"
    own = value.__class__.__name__
    return _WIDTHS.get(own) or next((name for kind, name in _TYPES if isinstance(value, kind)), own)


def to_json(value: object) -> Any:
    """Return the value as types of JSON; others become a table with the one key ``$``.

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
    """Return the value that ``to_json`` was given.

    Raises:
        ValueError: ``to_json`` returns no such JSON.
    """
    try:
        return _from_json(value)
    except (ArithmeticError, AttributeError, OSError, RecursionError, TypeError) as fault:
        raise ValueError(str(fault)) from fault


def _from_json(value: Any) -> Any:
    if value.__class__ is list:
        return [_from_json(each) for each in value]
    if not isinstance(value, dict):
        return value
    table = cast("dict[str, Any]", value)
    if _NOT_PLAIN not in table:
        return {key: _from_json(each) for key, each in table.items()}
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
            return {key: _from_json(each) for key, each in inner.items()}
