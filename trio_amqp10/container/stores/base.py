"""What a container asks of a store: tables of rows, changed in atomic batches.

The smallest thing that queues, subscriptions and link state can share: a row is a tuple of plain
values whose first is its key. A store never learns what a row means, and there is no query. What its columns may have is
declared with a table, and checked by who reads it: see ``Journal.rows``.

One batch is written at a time; the caller gathers the next meanwhile (``group_commit``), which
makes a group commit of it.

Knows no message, no node, and no dialect of the protocol.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from trio_amqp10.errors import AmqpError

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType
    from typing import Self

    from .cells import Kind

__all__ = ["Batch", "Cell", "Done", "Row", "Store", "StoreError", "StoreFullError", "StoreTable", "reading"]


class StoreError(AmqpError):
    """A store cannot be opened, read or written; the message says which file, why, and what to do."""


class StoreFullError(StoreError):
    """There is no room: the disk is full, or the store has reached its ``max_octets``."""


@contextmanager
def reading(store: Store) -> Generator[None]:
    """Rows of ``store`` are made sense of inside: where they make none, they are damaged.

    Raises:
        StoreError: they are.
    """
    try:
        yield
    except StoreError:
        raise
    except Exception as fault:  # nothing is promised of a damaged row, not even the types of its values
        raise StoreError(
            f"{store!r} has a row that cannot be read ({fault!r}): bring it back from a backup, or move it away"
        ) from fault


class StoreTable(NamedTuple):
    """A table.

    Attributes:
        name: letters and underscores.
        columns: the same; the first is the key.
        key: of which type that is.
        kinds: what each column may have; empty for anything.
    """

    name: str
    columns: tuple[str, ...]
    key: type[int | str] = int
    kinds: tuple[Kind, ...] = ()

    def fault_in(self, row: Row) -> str | None:
        """Return which cell of a row is not of its kind, with its value and what is expected; None if all are."""
        for column, kind, cell in zip(self.columns, self.kinds, row, strict=False):
            if not kind.admits(cell):
                return f"{column} is {_shown.repr(cell)}: expected {kind.expected}"
        return None


_shown: Final = reprlib.Repr()
_shown.maxstring = _shown.maxother = 60

Cell = int | float | str | bytes | None
Row = tuple[Cell, ...]
Batch = Mapping[StoreTable, Mapping[Cell, Row | None]]
"""For each table, by key: the row to write in place of what was there, or None to delete it."""

Done = Callable[[StoreError | None], object]


class Store(Protocol):
    """What keeps rows. Used from the thread that runs trio."""

    def rows(self, table: StoreTable) -> Iterable[Row]:
        """All rows, by key, before the first write; the table is made if there is none.

        Raises:
            StoreError: they cannot be read, or the table has other columns.
        """
        ...

    def write(self, batch: Batch, done: Done) -> None:
        """Write all of it, or nothing, so that it survives the loss of power; never blocks.

        Called under trio, and not again before ``done``, which is called later, in the same thread:
        with None once it is safe, or with what went wrong.
        """
        ...

    def close(self) -> None:
        """Wait for the write in progress, and let go of what is held; the second time does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...
