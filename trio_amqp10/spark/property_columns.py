"""Property columns: application-properties as columns of their own, with types (3.2.5).

``propertyColumns=n int, kind string`` names keys of the section and what they are. A reader puts the value of a key
into the column of its name; a sink makes it an application-property of that AMQP type.

=====================================  =========================  ================================================
type                                   in Spark                   takes, when it is read
=====================================  =========================  ================================================
``boolean``                            boolean                    a boolean
``byte``, ``short``, ``int``,          byte, short, int, bigint   any whole number that it has room for
``long``
``ubyte``, ``ushort``, ``uint``,       short, int, bigint,        any whole number that it has room for, not below 0;
``ulong``                              bigint                     of ``ulong`` those below 2^63
``float``, ``double``                  float, double              any number; decimals too
``string``, ``symbol``                 string                     a string, a symbol or a char; all else as JSON
``uuid``                               string                     a uuid
``binary``                             binary                     a binary
``timestamp``                          timestamp                  a timestamp
=====================================  =========================  ================================================

What a column does not take is null there; ``application_properties`` has it.

Knows values; neither rows nor options.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.message.sections import APPLICATION_PROPERTIES, read_section
from trio_amqp10.wire.values import (
    Byte,
    Decimal32,
    Decimal64,
    Decimal128,
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

from .typed_json import UnfitError, to_text, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Declared = tuple[tuple[str, str], ...]
    """Keys, and what they are."""
    Pairs = list[tuple[str, str]]

__all__ = ["ARROW_TYPES", "KINDS", "column_reader", "merged"]

_TIME: Final = pa.timestamp("us", tz="UTC")


class _Kind(NamedTuple):
    """A type: in Arrow, what it takes (None is nothing), and what makes the AMQP value of a column's."""

    arrow: pa.DataType
    take: Callable[[Any], Any]
    make: Callable[[Any], Any]


def _whole(least: int, most: int) -> Callable[[Any], int | None]:
    def take(value: Any) -> int | None:
        whole = isinstance(value, int) and not isinstance(value, (bool, Timestamp))
        return int(value) if whole and least <= value <= most else None

    return take


def _real(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (Decimal32, Decimal64, Decimal128)):
        return float(value.to_decimal())
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, Timestamp) else None


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else to_text(value)


def _of(kind: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kind) else None


def _uuid(value: Any) -> str | None:
    return str(value) if isinstance(value, uuid.UUID) else None


def _time(value: Any) -> int | None:
    return int(value) * 1000 if isinstance(value, Timestamp) and abs(value) <= 2**63 // 1000 else None


def _timestamp(microseconds: int) -> Timestamp:
    return Timestamp(microseconds // 1000)


def _signed(bits: int) -> Callable[[Any], int | None]:
    return _whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_KINDS: Final = {
    "boolean": _Kind(pa.bool_(), _of(bool), bool),
    "byte": _Kind(pa.int8(), _signed(8), Byte),
    "short": _Kind(pa.int16(), _signed(16), Short),
    "int": _Kind(pa.int32(), _signed(32), Int),
    "long": _Kind(pa.int64(), _signed(64), int),
    "ubyte": _Kind(pa.int16(), _whole(0, 2**8 - 1), UByte),
    "ushort": _Kind(pa.int32(), _whole(0, 2**16 - 1), UShort),
    "uint": _Kind(pa.int64(), _whole(0, 2**32 - 1), UInt),
    "ulong": _Kind(pa.int64(), _whole(0, 2**63 - 1), ULong),
    "float": _Kind(pa.float32(), _real, Float),
    "double": _Kind(pa.float64(), _real, float),
    "string": _Kind(pa.string(), _text, str),
    "symbol": _Kind(pa.string(), _text, Symbol),
    "uuid": _Kind(pa.string(), _uuid, uuid.UUID),
    "binary": _Kind(pa.binary(), _of(bytes), bytes),
    "timestamp": _Kind(_TIME, _time, _timestamp),
}
KINDS: Final = frozenset(_KINDS)
ARROW_TYPES: Final[dict[str, pa.DataType]] = {name: kind.arrow for name, kind in _KINDS.items()}


def column_reader(declared: Declared) -> Callable[[bytes, Any], tuple[Any, ...]]:
    """Reads the section in a span of a message: a value for each column, in order."""
    takers = [(key, _KINDS[kind].take) for key, kind in declared]

    def read(payload: bytes, span: Any) -> tuple[Any, ...]:
        said = read_section(APPLICATION_PROPERTIES, payload, span)
        return tuple([None if (value := said.get(key)) is None else take(value) for key, take in takers])

    return read


def merged(
    declared: Declared,
    columns: list[list[Any]],
    maps: Iterable[Iterable[tuple[str, Any]] | None],
    types: Iterable[Iterable[tuple[str, str]] | None],
) -> tuple[list[list[tuple[str, Any]]], list[Pairs]]:
    """The maps of rows with the values of columns among them, and the types of both; a null leaves what the map says.

    Args:
        declared: the keys, and what they are.
        columns: their values, a list for each key.
        maps: pairs of each row.
        types: pairs of each row.

    Raises:
        UnfitError: a value cannot be of the type that was declared.
    """
    made: list[list[tuple[str, Any]]] = []
    kinds: list[Pairs] = []
    for pairs, said, *row in zip(maps, types, *columns, strict=True):
        values = {
            key: _made(key, kind, value)
            for (key, kind), value in zip(declared, row, strict=True)
            if value is not None
        }
        made.append([*[pair for pair in pairs or () if pair[0] not in values], *_texts(values)])
        kinds.append(
            [
                *[pair for pair in said or () if pair[0] not in values],
                *[(key, type_of(v)) for key, v in values.items()],
            ]
        )
    return made, kinds


def _texts(values: dict[str, Any]) -> Pairs:
    return [(key, to_text(value)) for key, value in values.items()]


def _made(key: str, kind: str, value: Any) -> Any:
    try:
        return _KINDS[kind].make(value)
    except (ValueError, LocalProtocolError) as wrong:
        raise UnfitError(f"column {key!r} cannot be of type {kind!r}: {wrong}") from None
