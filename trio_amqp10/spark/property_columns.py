"""Property columns: application-properties as typed columns (3.2.5).

``propertyColumns=n int, kind string`` names keys of the section and their types. A reader puts the value of a key
into the column of that name; a sink makes it an application-property of that AMQP type.

=====================================  =========================  ================================================
type                                   in Spark                   values that a reader takes
=====================================  =========================  ================================================
``boolean``                            boolean                    a boolean
``byte``, ``short``, ``int``,          byte, short, int, bigint   any whole number in its range
``long``
``ubyte``, ``ushort``, ``uint``,       short, int, bigint,        any whole number in its range, at least 0;
``ulong``                              bigint                     for ``ulong`` below 2^63
``float``, ``double``                  float, double              any number, also decimals
``string``, ``symbol``                 string                     a string, a symbol, a char or a uuid; others as JSON
``uuid``                               string                     a uuid
``binary``                             binary                     a binary
``timestamp``                          timestamp                  a timestamp
=====================================  =========================  ================================================

A value of another type is null in the column; the column ``application_properties`` has it.

Knows values; neither rows nor options.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from trio_amqp10.amqp10.message.sections import APPLICATION_PROPERTIES, read_section
from trio_amqp10.amqp10.wire.values import (
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
from trio_amqp10.core.errors import LocalProtocolError

from .typed_json import UnfitError, to_text, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Declared = tuple[tuple[str, str], ...]
    """Keys and their types."""
    Pairs = list[tuple[str, str]]

_TIME: Final = pa.timestamp("us", tz="UTC")


class _Kind(NamedTuple):
    """A type of property columns.

    Attributes:
        arrow: the Arrow type.
        take: converts an AMQP value to that of the column; None if the type does not fit.
        make: converts a value of the column to the AMQP value.
    """

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


def _of(kind: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kind) else None


def _uuid(value: Any) -> str | None:
    return str(value) if isinstance(value, uuid.UUID) else None


def _time(value: Any) -> int | None:
    return int(value) * 1000 if isinstance(value, Timestamp) and abs(value) <= 2**63 // 1000 else None


def _timestamp(microseconds: int) -> Timestamp:
    return Timestamp(microseconds // 1000)


def _octets(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


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
    "string": _Kind(pa.string(), to_text, str),
    "symbol": _Kind(pa.string(), to_text, Symbol),
    "uuid": _Kind(pa.string(), _uuid, uuid.UUID),
    "binary": _Kind(pa.binary(), _of(bytes), _octets),
    "timestamp": _Kind(_TIME, _time, _timestamp),
}
KINDS: Final = frozenset(_KINDS)
ARROW_TYPES: Final[dict[str, pa.DataType]] = {name: kind.arrow for name, kind in _KINDS.items()}


def taker_of(kind: str) -> Callable[[Any], Any]:
    """Return what converts an AMQP value to a column's, or to None if it is unfit."""
    return _KINDS[kind].take


def column_reader(declared: Declared) -> Callable[[bytes, Any], tuple[Any, ...]]:
    """Make a function that reads the columns from a section of a message, in order."""
    takers = [(key, _KINDS[kind].take) for key, kind in declared]

    def read(payload: bytes, span: Any) -> tuple[Any, ...]:
        found = read_section(APPLICATION_PROPERTIES, payload, span)
        return tuple([None if (value := found.get(key)) is None else take(value) for key, take in takers])

    return read


def merged(
    declared: Declared,
    columns: list[list[Any]],
    maps: Iterable[Iterable[tuple[str, Any]] | None],
    types: Iterable[Iterable[tuple[str, str]] | None],
) -> tuple[list[list[tuple[str, Any]]], list[Pairs]]:
    """Merge property columns into the maps of rows; return the maps and their types.

    A null in a column leaves the value of the map unchanged.

    Args:
        declared: the keys and their types.
        columns: the values of the columns, a list for each key.
        maps: the pairs of each row, key and value.
        types: the pairs of each row, key and type.

    Raises:
        UnfitError: a value does not fit the declared type.
    """
    made: list[list[tuple[str, Any]]] = []
    kinds: list[Pairs] = []
    for pairs, row_types, *row in zip(maps, types, *columns, strict=True):
        values = {
            key: _made(key, kind, value)
            for (key, kind), value in zip(declared, row, strict=True)
            if value is not None
        }
        made.append([*[pair for pair in pairs or () if pair[0] not in values], *_texts(values)])
        kinds.append(
            [
                *[pair for pair in row_types or () if pair[0] not in values],
                *[(key, type_of(v)) for key, v in values.items()],
            ]
        )
    return made, kinds


def _texts(values: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(key, to_text(value)) for key, value in values.items()]


def _made(key: str, kind: str, value: Any) -> Any:
    try:
        return _KINDS[kind].make(value)
    except (ValueError, LocalProtocolError) as wrong:
        raise UnfitError(f"column {key!r} cannot be of type {kind!r}: {wrong}") from None
