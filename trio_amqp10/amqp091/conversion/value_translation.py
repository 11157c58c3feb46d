"""Translation between header values of AMQP 0-9-1 and of AMQP 1.0.

Each letter has a type, and most values survive both directions:

====================  =====================  ====================  ========================================
0-9-1                 1.0                    1.0                   0-9-1
====================  =====================  ====================  ========================================
``b B s u I i l L``   byte, ubyte, short,    the same              ``b B s u I i l``
                      ushort, int, uint,     ulong                 ``l``; text above its range
                      long, long
``f d t V``           float, double,         the same              the same
                      boolean, null
``S``                 string, or binary      string, symbol        ``S``
``x``                 binary                 binary                ``x``
``T``                 timestamp              timestamp             ``T``, whole seconds
``A F``               list, map of symbols   list, array, map      the same
``D``                 omitted                uuid, char, decimal,  omitted
                                             NaN, infinity
====================  =====================  ====================  ========================================

NaN and infinity are omitted, as RabbitMQ does, because clients such as pika fail at a message that contains one
of them. Both sides nest at most 32 levels, so no value is too deep for the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Final, cast

from trio_amqp10.amqp091.wire import typed_values as classic
from trio_amqp10.amqp091.wire.fields import from_seconds, to_seconds
from trio_amqp10.amqp10.wire import values as standard
from trio_amqp10.core.short_strings import is_short, to_text


class _Nothing(Enum):
    """The mark of a value without a translation."""

    LEFT_OUT = 0


LEFT_OUT: Final = _Nothing.LEFT_OUT


def _fits(number: int, bits: int) -> bool:
    return -(1 << bits - 1) <= number < 1 << bits - 1


_WIDTHS: Final[tuple[tuple[type, type], ...]] = (
    (classic.Int8, standard.Byte),
    (classic.UInt8, standard.UByte),
    (classic.Int16, standard.Short),
    (classic.UInt16, standard.UShort),
    (classic.UInt32, standard.UInt),
    (classic.Float32, standard.Float),
)
"""Types with an exact counterpart."""

_TO_STANDARD: Final[Mapping[type, Callable[[Any], Any]]] = {
    **dict(_WIDTHS),
    classic.Int64: int,
    classic.Int64L: int,
    classic.UInt64: standard.ULong,
    classic.ShortString: to_text,
    classic.LongString: bytes,
    bytearray: bytes,
    bool: bool,
    float: float,
    str: to_text,
    bytes: bytes,
    type(None): lambda _: None,
    Decimal: lambda _: LEFT_OUT,
}
_FROM_STANDARD: Final[Mapping[type, Callable[[Any], Any]]] = {
    **{there: here for here, there in _WIDTHS},
    standard.Int: int,
    standard.Symbol: str,
    standard.Float: lambda value: classic.Float32(value) if isfinite(value) else LEFT_OUT,
    bool: bool,
    float: lambda value: value if isfinite(value) else LEFT_OUT,
    str: str,
    bytes: bytes,
    type(None): lambda _: None,
}


def to_standard(value: Any) -> Any:
    """Translate a value of a field table to AMQP 1.0, or return ``LEFT_OUT``."""
    change = _TO_STANDARD.get(value.__class__)
    if change is not None:
        return change(value)
    if isinstance(value, (datetime, classic.Timestamp)):
        milliseconds = to_seconds(value) * 1000
        return standard.Timestamp(milliseconds) if _fits(milliseconds, 64) else LEFT_OUT
    if isinstance(value, int):
        return standard.Int(value) if _fits(value, 32) else int(value) if _fits(value, 64) else LEFT_OUT
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        members = {standard.Symbol(name): to_standard(each) for name, each in table.items() if name.isascii()}
        return {name: each for name, each in members.items() if each is not LEFT_OUT}
    if isinstance(value, (list, tuple)):
        array = cast("list[Any]", value)
        return [now for each in array if (now := to_standard(each)) is not LEFT_OUT]
    return LEFT_OUT


def from_standard(value: Any) -> Any:
    """Translate a value of AMQP 1.0 for a field table, or return ``LEFT_OUT``."""
    change = _FROM_STANDARD.get(value.__class__)
    if change is not None:
        return change(value)
    if isinstance(value, standard.Timestamp):
        return from_seconds(int(value) // 1000) if value >= 0 else LEFT_OUT
    if isinstance(value, int):
        return classic.Int64(value) if _fits(value, 64) else str(int(value))
    if isinstance(value, Mapping):
        table = cast("Mapping[object, object]", value)
        members = {str(name): from_standard(each) for name, each in table.items() if is_short(name)}
        return {name: each for name, each in members.items() if each is not LEFT_OUT}
    if isinstance(value, list):
        array = cast("Sequence[object]", value)
        return [now for each in array if (now := from_standard(each)) is not LEFT_OUT]
    return LEFT_OUT
