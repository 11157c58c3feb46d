"""Gathers changes for a store, and writes all changes of a moment in one commit.

Changes are noted synchronously, and gathered while a batch is being written; the next batch is all
that was noted meanwhile. So the busier a container is, the more messages share one wait for the disk.

What is noted without an ``await`` between goes in one batch, and a batch is written whole or not at
all: that is what a transaction needs (4.4). Work that goes on in several turns, and belongs in one batch, holds the next batch back
meanwhile; there is one such work at a time, and a batch is written between two of them. One transaction that is given up while it is prepared is not written at all.

Where a store is full, what was dropped is written by itself: that makes room.

Knows rows and when they are safe; knows no queue. A node with a table of its own notes its changes here too, and
has them in the same commits.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from .base import StoreError, StoreFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from .base import Cell, Done, Row, Store, StoreTable

__all__ = ["Journal"]

_log = logging.getLogger("trio_amqp10.container")

_PIECE: Final = 128
"""Rows that are dropped at once while a store is full, when there is little room for that too."""
_AT_ONCE: Final = 64
"""Callbacks that are called without a pause: about a millisecond."""
_NO_ROW: Final = ()
_MOST_ROWS: Final = 10_000
_MOST_OCTETS: Final = 16 * 1024 * 1024
"""What may be gathered for the next batch before a node that wants to add more has to wait."""


class _Batch:
    """Changes that are written together, and the callbacks that wait for them."""

    __slots__ = ("changes", "dones", "is_piece", "octets", "owed", "rows")

    def __init__(self) -> None:
        self.changes: dict[StoreTable, dict[Cell, Row | None]] = {}
        self.dones: list[Done] = []
        self.owed: list[tuple[StoreTable, Cell]] = []
        self.rows = 0
        self.octets = 0
        self.is_piece = False

    def add(self, later: _Batch) -> None:
        """Write these changes too, after those that are here."""
        for table, changes in later.changes.items():
            self.changes.setdefault(table, {}).update(changes)
        self.dones += later.dones
        self.owed += later.owed
        self.rows += later.rows
        self.octets += later.octets


class Journal:
    """Gathers changes for a store, and calls back when they are safe.

    Args:
        store: where they go; it is the caller's to close, after ``flushed``.

    Attributes:
        committing: whether what is noted now belongs to one transaction.
        rows_set_aside: the keys of rows that could not be read, by table: they stay in the store as they are.
    """

    def __init__(self, store: Store) -> None:
        self.committing: bool = False
        self.rows_set_aside: Final[dict[StoreTable, list[Cell]]] = {}
        self._store = store
        self._next = _Batch()
        self._flying: _Batch | None = None
        self._scheduled = False
        self._token: trio.lowlevel.TrioToken | None = None
        self._making_room = False
        self._held = False
        self._holding: deque[Callable[[], object]] = deque()
        self._waiting: deque[Callable[[], object]] = deque()
        self._idle = trio.lowlevel.ParkingLot()

    def rows(self, table: StoreTable) -> Iterator[Row]:
        """All that the store has, by key, before the first change; without rows with a cell that is not of its kind.

        Raises:
            StoreError: it cannot be read.
        """
        for row in self._store.rows(table):
            fault = table.fault_in(row)
            if fault is None:
                yield row
            else:
                self.set_aside(table, row[0], fault)

    def set_aside(self, table: StoreTable, key: Cell, fault: object) -> None:
        """Leave a row that cannot be read in the store as it is, and go on without it; log and count it."""
        self.rows_set_aside.setdefault(table, []).append(key)
        _log.error(
            "%r: the row %.300r of the table %s cannot be read, and is set aside: %s; it stays in the file",
            self._store,
            key,
            table.name,
            fault,
        )

    @contextmanager
    def reading(self, table: StoreTable, key: Cell) -> Generator[None]:
        """Make sense of a row in the body: if that raises an exception, the row is set aside."""
        try:
            yield
        except StoreError:
            raise
        except Exception as fault:  # nothing is promised of a damaged row
            self.set_aside(table, key, repr(fault) if not str(fault) else f"{type(fault).__name__}: {fault}")

    def resume_writing(self) -> None:
        """Write what an earlier ``trio.run`` noted and was not told of; does nothing where it was this run.

        A batch that was being written when that run ended is written again, as part of a new one: the store's thread may
        still read the old. Work that held a batch back has ended with that run.
        """
        if trio.lowlevel.current_trio_token() is not self._token:
            self._held = False
            self._holding.clear()
        if (self.busy or self._scheduled) and trio.lowlevel.current_trio_token() is not self._token:
            if self._flying is not None:
                unconfirmed, later = self._flying, self._next
                self._flying, self._next = None, _Batch()
                self._next.add(unconfirmed)
                self._next.add(later)
            self._schedule()

    # -- changes ----------------------------------------------------------------------------

    def note(self, table: StoreTable, key: Cell, row: Row | None, octets: int = 0) -> None:
        """Write this row in place of what the key had, or delete it where ``row`` is None.

        Args:
            table: where.
            key: the first cell of the row.
            row: all cells.
            octets: how much room it takes while it waits.
        """
        batch = self._next
        changes = batch.changes.get(table)
        if changes is None:
            changes = batch.changes[table] = {}
        changes[key] = row
        batch.rows += 1
        batch.octets += octets
        if not self._scheduled:
            self._schedule()

    def drop(self, table: StoreTable, key: Cell) -> None:
        """Delete a row sooner or later: where its batch fails, again with the next one."""
        self.note(table, key, None)
        self._next.owed.append((table, key))

    def after(self, done: Done) -> None:
        """Have ``done`` called once all that was noted so far is safe, or the last of it failed; in turn.

        What failed before and is still owed is asked for again.
        """
        if not self.committing and not self.busy and not self._next.changes:
            done(None)
        else:
            self._next.dones.append(done)
            if not self._scheduled:
                self._schedule()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """What is noted within is one transaction: it all goes in one commit, and ``after`` calls back when that is done.

        If the body raises, nothing of it is written: each callback that waits for it gets a ``StoreError``, and
        what was dropped, is dropped with the next batch. The body must not ``await``, nor begin another.
        """
        before, self._next = self._next, _Batch()
        self.committing = True
        try:
            yield
        except BaseException as fault:
            abandoned, self._next = self._next, before
            self.committing = False
            for table, key in abandoned.owed:
                self._owe(table, key)
            failure = StoreError(f"the transaction was given up: {fault!r}")
            for done in abandoned.dones:
                self._call(done, failure)
            raise
        prepared, self._next = self._next, before
        self.committing = False
        before.add(prepared)

    @property
    def busy(self) -> bool:
        """Whether anything is not safe yet."""
        return self._flying is not None or bool(self._next.rows or self._next.dones)

    # -- work that goes on in several turns -------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether the next batch waits for work that belongs in one batch."""
        return self._held

    def hold(self) -> None:
        """Gather what is noted until ``release`` in one batch; nothing may hold it already."""
        self._held = True

    def release(self) -> None:
        """The batch may be written. Who waits to hold the next goes on once this one is on its way."""
        self._held = False
        if self._scheduled and self._flying is None:
            self._schedule()
        if self._holding:
            trio.lowlevel.current_trio_token().run_sync_soon(self._go_on_holding)

    def when_free(self, call: Callable[[], object]) -> None:
        """Call back, once, when nothing holds the next batch."""
        self._holding.append(call)

    def _go_on_holding(self) -> None:
        while self._holding and not self._held:
            self._call(self._holding.popleft())

    # -- too much at once -------------------------------------------------------------------

    @property
    def crowded(self) -> bool:
        """Whether so much waits for the store that no more should be added."""
        return self._next.rows >= _MOST_ROWS or self._next.octets >= _MOST_OCTETS

    def when_roomy(self, call: Callable[[], object]) -> None:
        """Call back, once, when it is not crowded any more."""
        self._waiting.append(call)

    async def until_safe(self) -> None:
        """Wait until all that was noted so far is safe, or the last of it failed, whatever is noted meanwhile.

        Cancelled: it is written all the same.
        """
        self.resume_writing()
        told = trio.Event()
        self.after(lambda _failure: told.set())
        await told.wait()

    async def flushed(self) -> None:
        """Wait until nothing is on its way. Cancelled: it is written all the same."""
        await trio.lowlevel.checkpoint()
        while self.busy:
            await self._idle.park()

    # -- writing ----------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Write at the end of this turn, so that all that one read brought shares a commit."""
        self._scheduled = True
        if self._flying is None:
            self._token = trio.lowlevel.current_trio_token()
            self._token.run_sync_soon(self._write)

    def _write(self) -> None:
        if self._held:
            return  # ``release`` schedules it again
        self._scheduled = False
        batch = self._drops() if self._making_room else self._next
        if batch is self._next:
            self._next = _Batch()
        elif self._next.rows or self._next.dones:
            self._scheduled = True
        self._flying = batch
        failure: StoreError | None = None
        if batch.changes:
            try:
                self._store.write(batch.changes, self._written)
            except StoreError as closed:
                failure = closed
            else:
                return
        trio.lowlevel.current_trio_token().run_sync_soon(self._written, failure)

    def _written(self, failure: StoreError | None) -> None:
        batch = self._flying
        assert batch is not None
        if failure is not None:
            _log.error("%s", failure)
            for table, key in batch.owed:
                self._owe(table, key)
        if isinstance(failure, StoreFullError):
            self._making_room = bool(batch.owed) and not batch.is_piece
        elif failure is not None or not self._next.owed:
            self._making_room = False
        if self._making_room:  # it must not wait until something is written, for that finds no room
            self._scheduled = True
        self._report(batch, failure)

    def _report(self, batch: _Batch, failure: StoreError | None) -> None:
        """Call back what waited for this batch, so many at a time: others have their turn between them."""
        dones, batch.dones = batch.dones[:_AT_ONCE], batch.dones[_AT_ONCE:]
        for done in dones:
            self._call(done, failure)
        if batch.dones:
            trio.lowlevel.current_trio_token().run_sync_soon(self._report, batch, failure)
            return
        waiting, self._waiting = self._waiting, deque()
        while waiting and not self.crowded:
            self._call(waiting.popleft())
        self._waiting.extendleft(reversed(waiting))
        self._flying = None  # only now: what was just noted has to come after what was told just now
        if self._scheduled:
            self._write()
        if not self.busy:
            self._idle.unpark_all()

    def _drops(self) -> _Batch:
        """Some of what is dropped in the next batch, as a batch of its own."""
        drops, later = _Batch(), self._next
        drops.is_piece = True
        some, later.owed = later.owed[:_PIECE], later.owed[_PIECE:]
        for table, key in some:
            changes = later.changes[table]
            if changes.get(key, _NO_ROW) is None:
                del changes[key]
                drops.changes.setdefault(table, {})[key] = None
                drops.owed.append((table, key))
        return drops

    def _owe(self, table: StoreTable, key: Cell) -> None:
        """Goes with the next batch, and does not make one: a store that fails need not be asked all the time."""
        changes = self._next.changes.setdefault(table, {})
        if key not in changes:
            changes[key] = None
            self._next.owed.append((table, key))

    @staticmethod
    def _call(call: Callable[..., object], *args: object) -> None:
        try:
            call(*args)
        except Exception:  # it would take the whole program with it
            _log.exception("what waited for the store failed")
