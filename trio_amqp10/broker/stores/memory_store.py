"""Rows in memory: for tests of a container that starts again.

They outlive the container that writes them, but not the process. Knows rows; knows no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from .base import PartRows, PartTotals

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self

    from .base import Batch, Cell, Done, Found, Page, Position, Row, StoreError, StoreTable


class MemoryStore:
    """Rows in memory: give the same object to the next ``Container``.

    Attributes:
        failure: the error of every write while it is set; None for writes that succeed.
    """

    def __init__(self) -> None:
        self.failure: StoreError | None = None
        self._tables: dict[StoreTable, dict[Cell, Row]] = {}

    def rows(self, table: StoreTable) -> list[Row]:
        """Return all rows, by key."""
        rows: dict[Any, Row] = self._tables.setdefault(table, {})
        return [rows[key] for key in sorted(rows)]

    def totals(self, table: StoreTable) -> dict[Cell, PartTotals]:
        """Return the totals of each part."""
        found: dict[Cell, PartTotals] = {}
        for row in self.rows(table):
            part, place, weight, marked, bits = _divided(table, row)
            one = PartTotals(1, len(weight), marked, place, place, place & bits)
            there: Any = found.get(part)
            found[part] = one if there is None else _sum_of(there, one)
        return found

    def last_key(self, table: StoreTable) -> int:
        """Return the highest key, or 0."""
        keys: Any = self._tables.setdefault(table, {})
        return max(keys, default=0)

    def pick(self, table: StoreTable, keys: Iterable[int]) -> list[Row]:
        """Return the rows of these keys."""
        rows = self._tables.setdefault(table, {})
        return [rows[key] for key in keys if key in rows]

    def read(self, page: Page) -> list[Row]:
        """Return a page."""
        rows: list[Row] = []
        octets = 0
        for row in self._after(page.table, page.part, page.after)[: page.most]:
            rows.append(row)
            octets += len(_divided(page.table, row)[2])
            if octets > page.octets:
                break
        return rows

    def fetch(self, page: Page, found: Found) -> None:
        """Read a page now; call ``found`` soon, from trio's loop."""
        trio.lowlevel.current_trio_token().run_sync_soon(found, self.read(page), None)

    def _after(self, table: StoreTable, part: Cell, after: Position | None) -> list[Row]:
        """Return the rows of a part after a position, by place and key."""
        rows: list[Any] = [row for row in self._tables[table].values() if _divided(table, row)[0] == part]
        rows.sort(key=lambda row: (_divided(table, row)[1], row[0]))
        return [row for row in rows if after is None or (_divided(table, row)[1], row[0]) > after]

    def write(self, batch: Batch, done: Done) -> None:
        """Write now; call ``done`` soon, from trio's loop."""
        if self.failure is None:
            for table, changes in batch.items():
                rows = self._tables[table]
                for each in [key for key in changes if isinstance(key, PartRows)]:
                    for row in self._after(table, each.part, each.after):
                        if row[0] <= each.last and row[0] not in each.kept:  # type: ignore[operator]
                            del rows[row[0]]
                for key, change in changes.items():
                    if isinstance(key, PartRows):
                        continue
                    if change is None:
                        rows.pop(key, None)
                    else:
                        rows[key] = change
        trio.lowlevel.current_trio_token().run_sync_soon(done, self.failure)

    def close(self) -> None:
        """Do nothing: the rows stay for the next container."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<MemoryStore rows={sum(map(len, self._tables.values()))}>"


def _divided(table: StoreTable, row: Row) -> list[Any]:
    """Return the cells by which a table is divided, and the bits of a place."""
    assert table.division is not None
    *columns, bits = table.division
    return [*(row[table.columns.index(column)] for column in columns), bits]


def _sum_of(one: Any, other: Any) -> PartTotals:
    return PartTotals(
        one.rows + other.rows,
        one.octets + other.octets,
        min((each for each in (one.lowest, other.lowest) if each is not None), default=None),
        min(one.first, other.first),
        max(one.last, other.last),
        max(one.highest, other.highest),
    )
