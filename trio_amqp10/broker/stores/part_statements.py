"""Parts of divided tables in statements of SQLite, also of a damaged file.

Knows the declaration of a table; knows no database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import Cell, Position, StoreTable


def index_of(table: StoreTable) -> str:
    """Return the name of the index of the parts of a table."""
    return f"parts_of_{table.name}"


def rows_after(table: StoreTable, part: Cell, after: Position | None) -> tuple[str, list[Cell]]:
    """Return the condition for the rows of a part after a position, and its values."""
    assert table.division is not None
    key, place = table.columns[0], table.division.place
    chosen, values = f"{table.division.part} IS {place_of(part)}", [bound(part)]
    if after is not None and after[0] is None:  # NULL is before all places, and compares with none.
        chosen += f" AND {place} IS NOT NULL"
    elif after is not None:
        chosen += f" AND ({place}, {key}) > ({place_of(after[0])}, ?)"
        values += [bound(after[0]), after[1]]
    return chosen, values


def place_of(cell: Cell) -> str:
    """Return the place of a value in a statement; see ``bound``."""
    return "CAST(? AS TEXT)" if isinstance(cell, str) else "?"


def bound(cell: Cell) -> Cell:
    """Return the value to bind for a cell, whose text may have surrogates."""
    return cell.encode(errors="surrogateescape") if isinstance(cell, str) else cell


def with_surrogates(octets: bytes) -> str:
    """Return the text of these octets; those that are not UTF-8 are surrogates."""
    return octets.decode(errors="surrogateescape")
