"""The interface of a store: tables of rows, changed in atomic batches.

It is the smallest one that queues, subscriptions and link state can share. A row is a tuple of plain values whose first is its
key. A store does not know the meaning of a row, and there is no query. A table declares the kinds of its columns, which its
reader checks: see ``Journal.rows``.

One batch is written at a time; the caller collects the next one meanwhile (``group_commit``), which becomes a group commit.

Knows no message, no node, and no dialect of the protocol.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from trio_amqp10.core.errors import AmqpError

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType
    from typing import Self

    from .column_kinds import Kind


class StoreError(AmqpError):
    """A store cannot be opened, read or written.

    The message names the file and the reason, and what to do.
    """


class StoreFullError(StoreError):
    """The disk is full, or the store has reached its ``max_octets``."""


@contextmanager
def reading(store: Store) -> Generator[None]:
    """Interpret rows of ``store`` in the body; an exception there means a damaged row.

    Raises:
        StoreError: a row is damaged.
    """
    try:
        yield
    except StoreError:
        raise
    except Exception as fault:  # A damaged row may have any values, of any types.
        raise StoreError(
            f"{store!r} has a row that cannot be read ({fault!r}): bring it back from a backup, or move it away"
        ) from fault


class StoreTable(NamedTuple):
    """The declaration of a table.

    Attributes:
        name: letters and underscores.
        columns: the names of the columns, spelled in the same way; the first is the key.
        key: the type of the key.
        kinds: the kind of each column; empty for no check.
    """

    name: str
    columns: tuple[str, ...]
    key: type[int | str] = int
    kinds: tuple[Kind, ...] = ()

    def fault_in(self, row: Row) -> str | None:
        """Return which cell of a row is not of its kind, or None.

        The text has the value of the cell, and the expected kind.
        """
        for column, kind, cell in zip(self.columns, self.kinds, row, strict=False):
            if not kind.admits(cell):
                return f"{column} is {_shown.repr(cell)}: expected {kind.expected}"
        return None


_shown: Final = reprlib.Repr()
_shown.maxstring = _shown.maxother = 60

Cell = int | float | str | bytes | None
Row = tuple[Cell, ...]
Batch = Mapping[StoreTable, Mapping[Cell, Row | None]]
"""For each table, by key: the row to write over the old one, or None to delete it."""

Done = Callable[[StoreError | None], object]


async def until_done(begin: Callable[[Done], object]) -> None:
    """Wait until ``begin`` has called its argument; raise the error it was given.

    Raises:
        StoreError: the work has failed.

    Cancelled: the work goes on.
    """
    over = trio.Event()
    failures: list[StoreError] = []

    def done(failure: StoreError | None) -> None:
        failures.extend(() if failure is None else (failure,))
        over.set()

    begin(done)
    await over.wait()
    if failures:
        raise failures[0]


class Store(Protocol):
    """Keeps rows. Used only from the thread that runs trio."""

    def rows(self, table: StoreTable) -> Iterable[Row]:
        """Return all rows, by key; only before the first write.

        The table is made if it does not exist.

        Raises:
            StoreError: the rows cannot be read, or the table has other columns.
        """
        ...

    def write(self, batch: Batch, done: Done) -> None:
        """Write all of it, or nothing, so that it survives the loss of power; never block.

        Called under trio, and not again before ``done``. ``done`` is called later, in the same thread: with None once the batch is safe,
        or with the error.
        """
        ...

    def close(self) -> None:
        """Wait for the write in progress, and release the file; again, do nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...
