"""Kinds of cells: the permitted values of a column of a table.

SQLite accepts any value in any column, so a damaged or edited file may have any. A row with a value of another kind cannot be
read, and is set aside (``Journal.rows``).

Knows values; knows no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import Cell

_LARGEST: Final = 2**53
"""Above this a float is not exact; no valid count or time is so large."""


class Kind(NamedTuple):
    """The permitted values of a column.

    Attributes:
        expected: the description for a message.
        admits: returns whether a value is permitted.
    """

    expected: str
    admits: Callable[[Cell], bool]


def whole(least: int, most: int) -> Kind:
    """Return the kind of whole numbers from ``least`` to ``most``."""

    def admits(cell: Cell) -> bool:
        return isinstance(cell, int) and least <= cell <= most

    return Kind(f"a whole number from {least} to {most}", admits)


def one_of(*texts: str) -> Kind:
    """Return the kind of these texts."""

    def admits(cell: Cell) -> bool:
        return cell in texts

    return Kind(f"one of {', '.join(map(repr, texts))}", admits)


def optional(kind: Kind) -> Kind:
    """Return the kind of values of another kind, or NULL."""

    def admits(cell: Cell) -> bool:
        return cell is None or kind.admits(cell)

    return Kind(f"{kind.expected}, or NULL", admits)


def either(one: Kind, other: Kind) -> Kind:
    """Return the kind of values of one of two kinds."""

    def admits(cell: Cell) -> bool:
        return one.admits(cell) or other.admits(cell)

    return Kind(f"{one.expected} or {other.expected}", admits)


def _is_text(cell: Cell) -> bool:
    if not isinstance(cell, str):
        return False
    try:
        cell.encode()
    except UnicodeEncodeError:  # The text has surrogates in place of octets that are not UTF-8.
        return False
    return True


def _is_name(cell: Cell) -> bool:
    return cell != "" and _is_text(cell)


def _are_octets(cell: Cell) -> bool:
    return isinstance(cell, bytes)


def _is_time(cell: Cell) -> bool:
    return isinstance(cell, int | float) and -_LARGEST <= cell <= _LARGEST


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and cell >= 0


TEXT: Final = Kind("a text", _is_text)
NAME: Final = Kind("a text that is not empty", _is_name)
OCTETS: Final = Kind("octets", _are_octets)
COUNT: Final = whole(0, _LARGEST)
TIME: Final = Kind("milliseconds", _is_time)
NUMBER: Final = Kind("a number of at least 0", _is_number)
