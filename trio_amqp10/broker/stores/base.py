"""The interface of a store: tables of rows, changed in atomic batches.

It is the smallest one that queues, subscriptions and link state can share. A row is a tuple of plain values whose first is its
key. A store does not know the meaning of a row, and there is no query. A table declares the kinds of its columns, which its
reader checks: see ``Journal.rows``.

A table that may be large is divided into parts, such as the messages of each queue. Its rows are read page by page, in the order
of their places, while batches are written.

One batch is written at a time; the caller collects the next one meanwhile (``group_commit``), which becomes a group commit.

Knows no message, no node, and no dialect of the protocol.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from trio_amqp10.core.errors import AmqpError, Condition

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


def error_for_peers(failure: StoreError) -> tuple[str, str]:
    """Return the condition and description of a failure for peers.

    They do not contain the names of files.
    """
    if isinstance(failure, StoreFullError):
        return Condition.RESOURCE_LIMIT_EXCEEDED.value, "the store is full"
    return Condition.INTERNAL_ERROR.value, "the store failed"


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


class Division(NamedTuple):
    """The columns by which a table is divided into parts.

    Attributes:
        part: the part that a row belongs to.
        place: the place of a row in its part.
        weight: the octets that are summed up for each part.
        marked: the column whose lowest value is found for each part.
        bits: the bits of a place whose highest value is found for each part.
    """

    part: str
    place: str
    weight: str
    marked: str
    bits: int


class StoreTable(NamedTuple):
    """The declaration of a table.

    Attributes:
        name: letters and underscores.
        columns: the names of the columns, spelled in the same way; the first is the key.
        key: the type of the key.
        kinds: the kind of each column; empty for no check.
        division: how it is divided into parts; None for a table that is read as a whole. Its key is a number.
    """

    name: str
    columns: tuple[str, ...]
    key: type[int | str] = int
    kinds: tuple[Kind, ...] = ()
    division: Division | None = None

    def __hash__(self) -> int:
        """Return the hash of the name, quickly: each change of a row needs it."""
        return hash(self.name)

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


class PartTotals(NamedTuple):
    """The totals of a part of a table.

    Attributes:
        rows: the number of its rows.
        octets: the octets in its column ``Division.weight``.
        lowest: the lowest value in the column ``Division.marked``; None if it has none.
        first, last: the lowest and the highest place.
        highest: the highest value of ``Division.bits`` of a place.
    """

    rows: int
    octets: int
    lowest: Cell
    first: Cell
    last: Cell
    highest: int


Position = tuple[Cell, Cell]
"""The place and the key of a row of a part."""


class Page(NamedTuple):
    """Some rows of a part of a table, by place and key.

    Attributes:
        table: the table.
        part: the part.
        after: the position of the row before them; None for the first rows.
        most: the number of rows at most.
        octets: the octets in the column ``Division.weight`` after which the page ends; the row that exceeds them is in it.
    """

    table: StoreTable
    part: Cell
    after: Position | None
    most: int
    octets: float = inf


class PartRows(NamedTuple):
    """Rows of a part that are deleted together: it is their key in a batch.

    The rows that the same batch writes stay, and those that later ones write. A store may delete the rows later, if no reader can
    observe that, not even after a kill.

    Attributes:
        part: the part.
        after: the position of the row before them; None for all rows.
        last: the highest key.
        kept: the keys of rows that stay.
    """

    part: Cell
    after: Position | None
    last: int
    kept: tuple[int, ...] = ()


Key = Cell | PartRows
Batch = Mapping[StoreTable, Mapping[Key, Row | None]]
"""For each table, by key: the row to write over the old one, or None to delete it."""

Done = Callable[[StoreError | None], object]
Found = Callable[[Sequence[Row], StoreError | None], object]


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

    def totals(self, table: StoreTable) -> dict[Cell, PartTotals]:
        """Return the totals of each part of a table; only before the first write.

        The table is made if it does not exist.

        Raises:
            StoreError: as ``rows``.
        """
        ...

    def last_key(self, table: StoreTable) -> int:
        """Return the highest key of a table, or 0; only before the first write.

        Raises:
            StoreError: as ``rows``.
        """
        ...

    def pick(self, table: StoreTable, keys: Iterable[int]) -> list[Row]:
        """Return the rows of these keys; only before the first write.

        Raises:
            StoreError: as ``rows``.
        """
        ...

    def read(self, page: Page) -> Sequence[Row]:
        """Return a page, with all batches so far; wait for the write in progress.

        Raises:
            StoreError: the rows cannot be read, or the store is closed.
        """
        ...

    def fetch(self, page: Page, found: Found) -> None:
        """Read a page, with all batches so far; never block.

        Called under trio. ``found`` is called later, in the same thread: with the rows and None, or with no rows and the error.

        Raises:
            StoreError: the store is closed.
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
