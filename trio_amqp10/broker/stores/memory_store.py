"""Rows in memory: for tests of a container that starts again.

They outlive the container that writes them, but not the process. Knows rows; knows no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from .base import Batch, Cell, Done, Row, StoreError, StoreTable


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

    def write(self, batch: Batch, done: Done) -> None:
        """Write now; call ``done`` soon, from trio's loop."""
        if self.failure is None:
            for table, changes in batch.items():
                rows = self._tables[table]
                for key, row in changes.items():
                    if row is None:
                        rows.pop(key, None)
                    else:
                        rows[key] = row
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
