"""Deletions of many rows of a part in a SQLite database, in pieces.

The deletion of a million rows takes a second or more, and other batches would wait for it. So the batch that deletes them
deletes only the first of them. In the same transaction it writes a row that describes the others: from then on they are
deleted, whatever happens to the process. The store deletes them piece by piece between later batches. The next process that
opens the file deletes those that are left, before it reads the table.

Before a batch writes to such a row again, or a page of the part is read, all of them are deleted. So no reader finds rows that
were deleted.

Knows rows and parts; knows no thread and no transaction.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from .base import PartRows
from .part_statements import bound, index_of, place_of, rows_after, with_surrogates

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Sequence

    from .base import Batch, Cell, Page, Row, StoreTable

MOST: Final = 2000
"""Rows of a piece."""
MOST_OCTETS: Final = 4 * 1024 * 1024
"""Octets of a piece, about: those of one row may be more."""

_HIGHEST: Final = 2**63 - 1
"""The highest key of SQLite."""
_TABLE: Final = "part_deletions"
_COLUMNS: Final = "id INTEGER PRIMARY KEY, name, part, place, key, last, kept"


class PartDeletion:
    """The deletion of some rows of a part, which goes on in pieces.

    Args:
        db: the connection to the database, which is in a transaction at each call that deletes.
        table: the table.
        rows: the rows.
        number: the key of the row that describes it; None if it has none yet.
    """

    def __init__(
        self, db: sqlite3.Connection, table: StoreTable, rows: PartRows, number: int | None = None
    ) -> None:
        self._db = db
        self._table = table
        self._rows = rows
        self._kept = frozenset(rows.kept)
        self._number = number
        self._after = self._end = rows.after

    @classmethod
    def unfinished(cls, db: sqlite3.Connection, table: StoreTable) -> list[PartDeletion]:
        """Return the deletions of a table that an earlier process has not finished."""
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (_TABLE,)).fetchone():
            return []
        factory, db.text_factory = db.text_factory, with_surrogates
        try:
            found: list[Any] = db.execute(f"SELECT * FROM {_TABLE} WHERE name = ?", (table.name,)).fetchall()
        finally:
            db.text_factory = factory
        return [
            cls(
                db,
                table,
                PartRows(part, None if key is None else (place, key), last, json.loads(kept)),
                number,
            )
            for number, _, part, place, key, last, kept in found
        ]

    def concerns(self, batch: Batch) -> bool:
        """Whether a batch writes to a row that is, or may be, among those to delete."""
        return any(row is not None and self._may_have(row) for row in batch.get(self._table, {}).values())

    def _may_have(self, row: Row) -> bool:
        assert self._table.division is not None
        key: Any = row[0]
        part, place = (row[self._table.columns.index(name)] for name in self._table.division[:2])
        if part != self._rows.part or key > self._rows.last or key in self._kept:
            return False
        # From the beginning, because the next process will begin there.
        after: Any = self._rows.after
        return after is None or type(place) is not int or type(after[0]) is not int or (place, key) > after

    def hides_from(self, page: Page) -> bool:
        """Whether a page may have rows that this deletes."""
        return page.table == self._table and page.part == self._rows.part

    def begin(self, written: Iterable[Row]) -> bool:
        """Delete the first piece, and describe the others; return whether there is none.

        The rows in ``written`` are written by the same batch, and stay.
        """
        if self.delete_some():
            return True
        self._kept |= {cast("int", row[0]) for row in written if self._may_have(row)}
        part, after, last, _ = self._rows
        place, key = after or (None, None)
        self._db.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} ({_COLUMNS})")
        self._number = self._db.execute(
            f"INSERT INTO {_TABLE} VALUES (NULL, ?, {place_of(part)}, {place_of(place)}, ?, ?, ?)",
            (self._table.name, bound(part), bound(place), key, last, json.dumps(list(self._kept))),
        ).lastrowid
        return False

    def delete_some(self) -> bool:
        """Delete the next piece; return whether it was the last one."""
        table = self._table
        assert table.division is not None
        key, place, weight = table.columns[0], table.division.place, table.division.weight
        chosen, values = rows_after(table, self._rows.part, self._after)
        found = f"FROM {table.name} INDEXED BY {index_of(table)} WHERE {chosen}"
        ((rows, octets),) = self._db.execute(
            f"SELECT count(*), sum(octets) FROM (SELECT length({weight}) AS octets {found} ORDER BY {place} LIMIT ?)",
            (*values, MOST),
        )
        most = MOST if not octets or octets <= MOST_OCTETS else max(1, rows * MOST_OCTETS // octets)
        end: Any = self._db.execute(
            f"SELECT iif(typeof({place}) = 'integer', {place}, NULL) {found} ORDER BY {place} LIMIT 1 OFFSET ?",
            (*values, most - 1),
        ).fetchone()
        if end is None or end[0] is None:  # A damaged place is compared in another way.
            self.finish()
            return True
        kept: list[int] = []
        if self._kept:
            ((keys,),) = self._db.execute(
                f"SELECT json_group_array({key}) {found} AND {place} <= ?", (*values, *end)
            )
            kept = [each for each in json.loads(keys) if each in self._kept]
        self._delete(f"{chosen} AND {place} <= ?", (*values, *end), kept)
        self._end = end[0], _HIGHEST
        return False

    def _delete(self, chosen: str, values: Sequence[Cell], kept: Collection[int]) -> None:
        key = self._table.columns[0]
        self._db.execute(
            f"DELETE FROM {self._table.name} WHERE {chosen} AND {key} <= ? "
            f"AND {key} NOT IN (SELECT value FROM json_each(?))",
            (*values, self._rows.last, json.dumps(list(kept))),
        )

    def committed(self) -> None:
        """Note that the last piece is safe; the next one begins after it."""
        self._after = self._end

    def finish(self) -> None:
        """Delete all that is left."""
        self._delete(*rows_after(self._table, self._rows.part, self._after), self._kept)
        if self._number is not None:
            self._db.execute(f"DELETE FROM {_TABLE} WHERE id = ?", (self._number,))
