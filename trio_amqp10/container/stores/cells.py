"""Kinds of cells: what a column of a table may have, whatever a damaged or edited file has there.

SQLite takes any value in any column. A row with a value of another kind cannot be read, and is set aside
(``Journal.rows``).

Knows values; knows no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import Cell

__all__ = [
    "COUNT",
    "NAME",
    "NUMBER",
    "OCTETS",
    "TEXT",
    "TIME",
    "Kind",
    "either",
    "one_of",
    "optional",
    "whole",
]

_LARGEST: Final = 2**53
"""Above it a float is not exact: no count and no time is so large, and a larger one could not be written again."""


class Kind(NamedTuple):
    """What a column may have.

    Attributes:
        expected: in words, for a message.
        admits: whether it may have this value.
    """

    expected: str
    admits: Callable[[Cell], bool]


def whole(least: int, most: int) -> Kind:
    """A whole number from the least to the most."""

    def admits(cell: Cell) -> bool:
        return isinstance(cell, int) and least <= cell <= most

    return Kind(f"a whole number from {least} to {most}", admits)


def one_of(*texts: str) -> Kind:
    """One of these texts."""

    def admits(cell: Cell) -> bool:
        return cell in texts

    return Kind(f"one of {', '.join(map(repr, texts))}", admits)


def optional(kind: Kind) -> Kind:
    """A value of this kind, or NULL."""

    def admits(cell: Cell) -> bool:
        return cell is None or kind.admits(cell)

    return Kind(f"{kind.expected}, or NULL", admits)


def either(one: Kind, other: Kind) -> Kind:
    """A value of one of two kinds."""

    def admits(cell: Cell) -> bool:
        return one.admits(cell) or other.admits(cell)

    return Kind(f"{one.expected} or {other.expected}", admits)


def _is_text(cell: Cell) -> bool:
    if not isinstance(cell, str):
        return False
    try:
        cell.encode()
    except UnicodeEncodeError:  # surrogates, in place of octets that are not UTF-8
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
