"""Conversion of AMQP values to JSON, for people and programs without AMQP (1.6)."""

from __future__ import annotations

import base64
import math
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from .pair_map import PairMap
from .values import (
    Byte,
    Char,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    ZeroWidthArray,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def to_json(value: Any) -> Any:
    """Convert an AMQP value to a value that ``json`` can write.

    Binary becomes ``{"base64": ...}``, a timestamp its milliseconds, a uuid or a decimal a string, a described value
    ``{"descriptor": ..., "value": ...}``. A map becomes an object; if its keys are not all strings, or not all different as
    strings, it becomes a list of pairs.
    """
    raw: Any = value  # for the type checker, which narrows only to a list or dict of unknown types
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, (uuid.UUID, Decimal)):
        return str(value)
    if isinstance(value, (dict, PairMap)):
        return _map_to_json(raw)
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in raw]
    if isinstance(value, Described):
        return {"descriptor": to_json(value.descriptor), "value": to_json(value.value)}
    if isinstance(value, ZeroWidthArray):
        return {"element_code": value.code, "count": value.count}
    return str(value)


def _map_to_json(items: Mapping[Any, Any]) -> Any:
    # Names are compared first: to convert the values twice would take time exponential in the nesting.
    if all(isinstance(key, str) for key in items) and len({str(key) for key in items}) == len(items):
        return {str(key): to_json(item) for key, item in items.items()}
    return [[to_json(key), to_json(item)] for key, item in items.items()]


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _whole(kind: Callable[[int], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError("expected a whole number")
        return kind(value)

    return read


def _number(kind: Callable[[float], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ValueError("expected a number")
        return kind(value)

    return read


def as_text(kind: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return a function that makes a value of a JSON string.

    For anything else it raises ``ValueError``.
    """

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError("expected a string")
        return kind(value)

    return read


READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "boolean": _boolean,
    "ubyte": _whole(UByte),
    "ushort": _whole(UShort),
    "uint": _whole(UInt),
    "ulong": _whole(ULong),
    "byte": _whole(Byte),
    "short": _whole(Short),
    "int": _whole(Int),
    "long": _whole(int),
    "float": _number(Float),
    "double": _number(float),
    "char": as_text(Char),
    "timestamp": _whole(Timestamp),
    "uuid": as_text(uuid.UUID),
    "string": as_text(str),
    "symbol": as_text(Symbol),
}
"""For each simple type, a function that makes a value of it from JSON.

The JSON is as ``to_json`` writes it. The function raises ``ValueError`` or ``LocalProtocolError`` if there is no such value.
"""
