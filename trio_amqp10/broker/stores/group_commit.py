"""The journal: collects changes, and writes all changes of a moment in one commit.

Changes are noted synchronously, and collected while a batch is being written; the next batch has all changes since. So the busier
a container is, the more messages share one wait for the disk.

Changes without an ``await`` between them are in one batch, and a batch is written whole or not at all: a transaction needs
that (4.4). Work that takes several turns, and must be in one batch, holds the next batch back meanwhile. There is only one such
work at a time, and a batch is written between two of them. A transaction that is abandoned while it is prepared is not
written at all.

If a store is full, deletions are written in batches of their own, which makes room.

Knows rows and when they are safe; knows no queue. A node with a table of its own notes its changes here too, and has them in the
same commits.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from .base import StoreError, StoreFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from .base import Cell, Done, Key, Row, Store, StoreTable

_log = logging.getLogger("trio_amqp10.container")

_PIECE: Final = 128
"""Rows deleted in one batch while a store is full: that needs some room too."""
_AT_ONCE: Final = 64
"""Callbacks that are called without a pause: about a millisecond."""
_NO_ROW: Final = ()
_MOST_ROWS: Final = 10_000
_MOST_OCTETS: Final = 16 * 1024 * 1024
"""The changes that may wait for the next batch, before nodes must take no more."""


class _Batch:
    """Changes that are written together, and the callbacks that wait for them."""

    __slots__ = ("changes", "dones", "is_piece", "octets", "owed", "rows")

    def __init__(self) -> None:
        self.changes: dict[StoreTable, dict[Key, Row | None]] = {}
        self.dones: deque[Done] = deque()
        self.owed: list[tuple[StoreTable, Key]] = []
        self.rows = 0
        self.octets = 0
        self.is_piece = False

    def add(self, later: _Batch) -> None:
        """Append later changes."""
        for table, changes in later.changes.items():
            self.changes.setdefault(table, {}).update(changes)
        self.dones += later.dones
        self.owed += later.owed
        self.rows += later.rows
        self.octets += later.octets


class Journal:
    """Collects changes for a store, and calls back when they are safe.

    Args:
        store: the store; the caller closes it, after ``flushed``.

    Attributes:
        store: as given.
        committing: whether the changes that are noted now belong to one transaction.
        rows_set_aside: the keys of rows that could not be read, by table: they stay unchanged in the store.
        commits: how many batches were written.
        commit_seconds: how long writing them took, together.
        last_commit_seconds: how long the last one took; None before the first.
        failures: how many batches failed.
    """

    def __init__(self, store: Store) -> None:
        self.committing: bool = False
        self.rows_set_aside: Final[dict[StoreTable, list[Cell]]] = {}
        self.commits: int = 0
        self.commit_seconds: float = 0.0
        self.last_commit_seconds: float | None = None
        self.failures: int = 0
        self._began = 0.0
        self.store: Final = store
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
        """Yield the rows of a table by key; only before the first change.

        Rows with a cell that is not of its kind are set aside.

        Raises:
            StoreError: the table cannot be read.
        """
        for row in self.store.rows(table):
            fault = table.fault_in(row)
            if fault is None:
                yield row
            else:
                self.set_aside(table, row[0], fault)

    def readable(self, table: StoreTable, rows: Iterable[Row]) -> list[Row]:
        """Return the rows whose cells are of their kinds; set the others aside."""
        found: list[Row] = []
        for row in rows:
            fault = table.fault_in(row)
            if fault is None:
                found.append(row)
            else:
                self.set_aside(table, row[0], fault)
        return found

    def set_aside(self, table: StoreTable, key: Cell, fault: object) -> None:
        """Ignore a row that cannot be read, but leave it in the store; log and count it."""
        self.rows_set_aside.setdefault(table, []).append(key)
        _log.error(
            "%r: the row %.300r of the table %s cannot be read, and is set aside: %s; it stays in the file",
            self.store,
            key,
            table.name,
            fault,
        )

    @contextmanager
    def reading(self, table: StoreTable, key: Cell) -> Generator[None]:
        """Interpret a row in the body; if that raises, the row is set aside."""
        try:
            yield
        except StoreError:
            raise
        except Exception as fault:  # A damaged row may raise anything.
            self.set_aside(table, key, repr(fault) if not str(fault) else f"{type(fault).__name__}: {fault}")

    def resume_writing(self) -> None:
        """Write the changes that an earlier ``trio.run`` left; otherwise do nothing.

        A batch that was being written when that run ended is written again, as part of a new one, because the store's thread may still
        read the old one. Work that held a batch back has ended with that run.
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

    def note(self, table: StoreTable, key: Key, row: Row | None, octets: int = 0) -> None:
        """Write this row over the old one of its key, or delete that if ``row`` is None.

        Args:
            table: the table.
            key: the first cell of the row; or ``PartRows`` for rows of a part that are deleted together.
            row: all cells.
            octets: the memory that the row takes while it waits.
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

    def drop(self, table: StoreTable, key: Key) -> None:
        """Delete a row; if its batch fails, delete it with the next one."""
        self.note(table, key, None)
        self._next.owed.append((table, key))

    def after(self, done: Done) -> None:
        """Call ``done`` once all previous changes are safe, or the last of them failed.

        It is called at once if no change waits, otherwise in the order of the calls. Deletions of earlier failed batches are included.
        """
        if self._next.changes or self.committing or self.busy:
            self._next.dones.append(done)
            if not self._scheduled:
                self._schedule()
        else:
            done(None)

    def when_dropped(self, done: Done) -> None:
        """Call ``done`` once the rows that were dropped are deleted, or cannot be.

        If their batch fails, the one after it is waited for: a full store may have room for that.
        """
        self.after(lambda failure: done(None) if failure is None else self.after(done))

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Collect the changes of the body as one transaction.

        All of them are in one commit, and ``after`` calls back when that is done. If the body raises, none of them is written: each
        callback that waits for them gets a ``StoreError``, and rows that were dropped are deleted with the next batch. The body must
        not ``await``, nor begin another transaction.
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
            failure = StoreError(f"the transaction was abandoned: {fault!r}")
            for done in abandoned.dones:
                self._call(done, failure)
            raise
        prepared, self._next = self._next, before
        self.committing = False
        before.add(prepared)

    @property
    def octets(self) -> int | None:
        """The octets that the store takes on disk; None if it does not report that."""
        return getattr(self.store, "octets", None)

    @property
    def busy(self) -> bool:
        """Whether any change is not safe yet."""
        return self._flying is not None or bool(self._next.rows or self._next.dones)

    # -- work that goes on in several turns -------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether the next batch waits for work that must be in one batch."""
        return self._held

    def hold(self) -> None:
        """Hold the next batch back until ``release``; it must not be held already."""
        self._held = True

    def release(self) -> None:
        """Let the batch be written; the next work may hold after it."""
        self._held = False
        if self._scheduled and self._flying is None:
            self._schedule()
        if self._holding:
            trio.lowlevel.current_trio_token().run_sync_soon(self._go_on_holding)

    def when_free(self, call: Callable[[], object]) -> None:
        """Call ``call`` once when the next batch is not held back."""
        self._holding.append(call)

    def _go_on_holding(self) -> None:
        while self._holding and not self._held:
            self._call(self._holding.popleft())

    # -- too much at once -------------------------------------------------------------------

    @property
    def crowded(self) -> bool:
        """Whether so many changes wait that nodes should take no more."""
        return self._next.rows >= _MOST_ROWS or self._next.octets >= _MOST_OCTETS

    def when_roomy(self, call: Callable[[], object]) -> None:
        """Call ``call`` once when the journal is not crowded any more."""
        self._waiting.append(call)

    async def until_safe(self) -> None:
        """Wait until all previous changes are safe, or the last of them have failed.

        Later changes are not waited for. Cancelled: the changes are written anyway.
        """
        self.resume_writing()
        done = trio.Event()
        self.after(lambda _failure: done.set())
        await done.wait()

    async def flushed(self) -> None:
        """Wait until no change waits. Cancelled: the changes are written anyway."""
        await trio.lowlevel.checkpoint()
        while self.busy:
            await self._idle.park()

    # -- writing ----------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Write at the end of this turn, so that all changes of one read share a commit."""
        self._scheduled = True
        if self._flying is None:
            self._token = trio.lowlevel.current_trio_token()
            self._token.run_sync_soon(self._write)

    def _write(self) -> None:
        if self._held:
            return  # ``release`` schedules it again.
        self._scheduled = False
        # After a full store, write only deletions, in small batches, until none is left or one of them fails.
        batch = self._drops() if self._making_room else self._next
        if batch is self._next:
            self._next = _Batch()
        elif self._next.rows or self._next.dones:
            self._scheduled = True
        self._flying = batch
        failure: StoreError | None = None
        if batch.changes:
            self._began = trio.current_time()
            try:
                self.store.write(batch.changes, self._written)
            except StoreError as closed:
                failure = closed
            else:
                return
        trio.lowlevel.current_trio_token().run_sync_soon(self._written, failure)

    def _written(self, failure: StoreError | None) -> None:
        batch = self._flying
        assert batch is not None
        if batch.changes and failure is None:
            self.commits += 1
            self.last_commit_seconds = trio.current_time() - self._began
            self.commit_seconds += self.last_commit_seconds
        if failure is not None:
            self.failures += 1
            _log.error("%s", failure)
            for table, key in batch.owed:
                self._owe(table, key)
        # A full store gets its deletions first. If even such a batch finds no room, wait for the next change.
        if isinstance(failure, StoreFullError):
            self._making_room = bool(batch.owed) and not batch.is_piece
        elif failure is not None or not self._next.owed:
            self._making_room = False
        if self._making_room:  # Do not wait for another change: that would find no room.
            self._scheduled = True
        self._report(batch, failure)

    def _report(self, batch: _Batch, failure: StoreError | None) -> None:
        """Call the callbacks of this batch, some at a time, so that others have turns."""
        dones = batch.dones
        for _ in range(min(_AT_ONCE, len(dones))):
            self._call(dones.popleft(), failure)
        if dones:
            trio.lowlevel.current_trio_token().run_sync_soon(self._report, batch, failure)
            return
        waiting, self._waiting = self._waiting, deque()
        while waiting and not self.crowded:
            self._call(waiting.popleft())
        self._waiting.extendleft(reversed(waiting))
        # Only now may the next batch be written: the callbacks may have noted changes, which must be in it.
        self._flying = None
        if self._scheduled:
            self._write()
        if not self.busy:
            self._idle.unpark_all()

    def _drops(self) -> _Batch:
        """Return some deletions of the next batch as a batch of their own."""
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

    def _owe(self, table: StoreTable, key: Key) -> None:
        """Add a deletion to the next batch, without scheduling one.

        A failing store must not be called again and again.
        """
        changes = self._next.changes.setdefault(table, {})
        if key not in changes:
            changes[key] = None
            self._next.owed.append((table, key))

    @staticmethod
    def _call(call: Callable[..., object], *args: object) -> None:
        try:
            call(*args)
        except Exception:  # It must not end the whole program.
            _log.exception("a callback that waited for the store failed")
