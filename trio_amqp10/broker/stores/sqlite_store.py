"""Rows in a SQLite file: they survive kill -9 and the loss of power.

The file is in WAL mode with ``synchronous=FULL``: a commit returns when its pages are on the disk, if the disk reports that
correctly. One thread writes, one batch at a time and each in one transaction, so that neither the write nor the wait for the disk
blocks the task that reads from peers. Only one process can open the file.

One statement has many rows, because each step of SQLite releases the interpreter's lock and must get it back: beside a busy event
loop that takes milliseconds, while the step takes a microsecond.

Between two batches the thread also reads pages, and deletes a piece of the many rows that were deleted together
(``part_deletions``). A divided table has an index with all that its totals need, so that these are right in every commit, and
no row is read for them.

On a full disk, new rows are refused, but rows can still be deleted: see ``disk_space``.

Knows rows; knows no message.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import threading
import time
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import trio

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.paths import local_path

from .base import Page, PartRows, PartTotals, StoreError, StoreFullError, reading, until_done
from .disk_space import DiskSpace, is_full
from .part_deletions import PartDeletion
from .part_statements import index_of, rows_after, with_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from .base import Batch, Cell, Done, Found, Row, StoreTable

_log = logging.getLogger("trio_amqp10.container")

_APPLICATION: Final = 0x414D5150  # "AMQP": identifies the program of the file, in its header
_VERSION: Final = 1
_PATIENCE: Final = 1.0
"""Seconds to wait for a process that is about to close the file."""
_AT_ONCE: Final = (256, 32, 4, 1)
"""Rows in one statement; few sizes, so that SQLite finds its prepared statements."""
_READ: Final = 1000
_HEADER: Final = 512
"""Octets of the smallest page of SQLite."""
_WHAT_TO_DO: Final = "give the store a file of its own, or bring the file back from a backup if it was a store and has lost its beginning"
_REST: Final = 1.0
"""Seconds without a write, before the file is made smaller."""
_SHARE: Final = 4
"""Pause after each step of that, in multiples of the step's time."""

_COPIED: Final = 64
"""Pages that a backup copies in one step, between which batches are written."""

Item = TypeVar("Item")

Work = tuple["Batch | str | Page", "Callable[..., object]", trio.lowlevel.TrioToken | None]
"""A batch to write, the path of a backup, or a page to read; and the callback.

Without a token that is called in the thread.
"""


class SqliteStore:
    """A file with the data that a container must not lose; made if there is none.

    ``with`` closes it.

    Args:
        path: the path of the file; ``~`` and URIs of the scheme ``file`` are supported. Beside it are ``PATH-wal`` of at least
            1 MiB and, at times, other files of SQLite: they belong together.
        max_octets: the largest size of the file; None for the size of the disk.

    Raises:
        StoreError: the file cannot be opened, another process uses it, it is damaged, it is not a store, or a newer version of
            this library wrote it.
        LocalProtocolError: ``max_octets`` is below 65536, or ``path`` is not a path on this machine.

    Attributes:
        path: absolute.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_octets: int | None = None) -> None:
        self.path: Final = _checked_path(os.fspath(path))
        if max_octets is not None and max_octets < 65_536:
            raise LocalProtocolError(
                f"max_octets={max_octets}: expected at least 65536, or None for as large as the disk"
            )
        self._thread: threading.Thread | None = None
        self._room: DiskSpace | None = None
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._copying = False
        self._closed = False
        self._deletions: list[PartDeletion] = []
        """Deletions that are not finished, the oldest first."""
        self._deletions_fail = False
        """Whether they wait for the next commit, because a piece has failed."""
        connection: sqlite3.Connection | None = None
        try:
            # Other users must not read messages: SQLite gives its other files the same mode. An existing file is
            # not opened, because closing it would release the locks that this process may have on it.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            self._check_size()
            connection = sqlite3.connect(
                self.path, isolation_level=None, timeout=_PATIENCE, check_same_thread=False
            )
            self._db = connection
            self._begin(max_octets)
        except (OSError, sqlite3.Error, UnicodeDecodeError, StoreError) as failure:
            if connection is not None:
                connection.close()
            if self._room is not None:
                self._room.close()
            if isinstance(failure, OSError):
                raise StoreError(f"the store {self.path!r} cannot be opened: {failure.strerror}") from failure
            if isinstance(failure, StoreError):
                raise
            raise self._explain(failure) from failure

    def _begin(self, max_octets: int | None) -> None:
        db = self._db
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        # The first access takes the lock, and keeps it.
        application, version = self._pragma("application_id"), self._pragma("user_version")
        made_by_us = application == _APPLICATION
        if not made_by_us and (version or db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()):
            raise StoreError(
                f"{self.path!r} is a database of another program: give the store a file of its own"
            )
        if made_by_us and version > _VERSION:
            raise StoreError(
                f"the store {self.path!r} has format {version}, and this version of trio-amqp10 knows only "
                f"up to {_VERSION}: use the version that wrote it, or a newer one"
            )
        if not made_by_us:
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        # On some systems SQLite overwrites deleted data: in the log, which would need room for all of it.
        db.execute("PRAGMA secure_delete=FAST")
        if not made_by_us or version != _VERSION:
            db.execute("BEGIN IMMEDIATE")
            db.execute(f"PRAGMA application_id={_APPLICATION}")
            db.execute(f"PRAGMA user_version={_VERSION}")
            db.execute("COMMIT")
        self._room = DiskSpace(db, self.path)
        if max_octets is not None:
            db.execute(f"PRAGMA max_page_count={max_octets // self._pragma('page_size')}")

    @property
    def octets(self) -> int:
        """The octets that its files take on disk, free pages included."""
        found = 0
        for path in (self.path, f"{self.path}-wal"):
            with contextlib.suppress(OSError):
                found += os.stat(path).st_size
        return found

    def _check_size(self) -> None:
        """Refuse a file that is too short: SQLite treats a file of one octet as new."""
        size = os.stat(self.path).st_size
        if 0 < size < _HEADER:
            raise StoreError(f"{_no_store(self.path)}: it has {size} octets; {_WHAT_TO_DO}")

    def _pragma(self, name: str) -> int:
        value: int = self._db.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    # -- reading ----------------------------------------------------------------------------

    def rows(self, table: StoreTable) -> Iterator[Row]:
        """Return all rows, by key; only before the first write.

        Raises:
            StoreError: the rows cannot be read, or the table has other columns.
        """
        self._check_open()
        try:
            self._make(table)
            found_rows = f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY 1"
            given = 0
            try:
                cursor = self._db.execute(found_rows)
                while some := cursor.fetchmany(_READ):
                    yield from some
                    given += len(some)
            except (sqlite3.Error, UnicodeDecodeError) as failure:
                if not _is_undecodable(failure):
                    raise
                yield from self._rows_with_surrogates(f"{found_rows} LIMIT -1 OFFSET {given}")
        except (sqlite3.Error, UnicodeDecodeError) as failure:
            raise self._explain(failure) from failure

    def _make(self, table: StoreTable) -> None:
        """Make a table, and the index of its parts, unless they exist."""
        key, *rest = table.columns
        found = tuple(each[1] for each in self._db.execute(f"PRAGMA table_info({table.name})"))
        if not found:
            first = f"{key} {'INTEGER' if table.key is int else 'TEXT'} PRIMARY KEY NOT NULL"
            self._db.execute(f"CREATE TABLE {table.name} ({', '.join((first, *rest))})")
        elif found != table.columns:
            raise StoreError(
                f"the store {self.path!r} has a table {table.name!r} with other columns than "
                f"{', '.join(table.columns)}: it is not of this version of trio-amqp10"
            )
        if table.division is not None and not self._has_index(table):
            if found:
                _log.info(
                    "the store %r is of an earlier version: it gets an index of its %s", self.path, table.name
                )
            part, place, weight, marked, _ = table.division
            self._db.execute(
                f"CREATE INDEX {index_of(table)} ON {table.name} ({part}, {place}, length({weight}), {marked})"
            )
        if table.division is not None and not self._deletions:
            self._finish_earlier(table)

    def _finish_earlier(self, table: StoreTable) -> None:
        """Finish the deletions that an earlier process has begun.

        Raises:
            StoreError: they cannot be finished, e.g. because the disk is full.
        """
        with reading(self):
            self._deletions = PartDeletion.unfinished(self._db, table)
        while self._deletions:
            failure = self._delete_piece()
            if failure is not None:
                raise failure

    def _has_index(self, table: StoreTable) -> bool:
        sought = "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?"
        return self._db.execute(sought, (index_of(table),)).fetchone() is not None

    def _rows_with_surrogates(self, statement: str, values: Sequence[Cell] = ()) -> list[Row]:
        """Return rows in which octets that are not UTF-8 are surrogates.

        No valid text has surrogates, so such a row is found (``cells.TEXT``).
        """
        self._db.text_factory = with_surrogates
        try:
            return self._db.execute(statement, values).fetchall()
        finally:
            self._db.text_factory = str

    def _found(
        self,
        statement: str,
        values: Sequence[Cell] = (),
        taken: Callable[[Iterator[Row]], Iterator[Row]] = iter,
    ) -> list[Row]:
        """Return the rows that a statement finds, as far as ``taken`` takes them.

        Raises:
            StoreError: they cannot be read.
        """
        try:
            try:
                with contextlib.closing(self._db.execute(statement, values)) as cursor:
                    return list(taken(cursor))
            except (sqlite3.Error, UnicodeDecodeError) as failure:
                if not _is_undecodable(failure):
                    raise
                return self._rows_with_surrogates(statement, values)
        except (sqlite3.Error, UnicodeDecodeError) as failure:
            raise self._explain(failure) from failure

    def totals(self, table: StoreTable) -> dict[Cell, PartTotals]:
        """Return the totals of each part of a table; only before the first write.

        Raises:
            StoreError: the rows cannot be read, or the table has other columns.
        """
        self._check_open()
        try:
            self._make(table)
        except sqlite3.Error as failure:
            raise self._explain(failure) from failure
        assert table.division is not None
        part, place, weight, marked, bits = table.division
        statement = (
            f"SELECT {part}, count(*), ifnull(sum(length({weight})), 0), min({marked}), min({place}), max({place}), "
            f"ifnull(max({place} & {bits}), 0) FROM {table.name} INDEXED BY {index_of(table)} GROUP BY 1"
        )
        rows: list[Any] = self._found(statement)
        found = {part: PartTotals(*totals) for part, *totals in rows}
        if len(found) < len(rows):
            # A part that comes twice is out of order. Its rows could not be found, but the table itself has them.
            _log.error(
                "the store %r has a damaged index of its %s, which is made again", self.path, table.name
            )
            try:
                self._db.execute(f"REINDEX {index_of(table)}")
            except sqlite3.Error as failure:
                raise self._explain(failure) from failure
            again: list[Any] = self._found(statement)
            found = {part: PartTotals(*totals) for part, *totals in again}
        return found

    def last_key(self, table: StoreTable) -> int:
        """Return the highest key of a table, or 0; only before the first write.

        Raises:
            StoreError: the rows cannot be read.
        """
        ((last,),) = self._found(f"SELECT max({table.columns[0]}) FROM {table.name}")
        return cast("int | None", last) or 0

    def pick(self, table: StoreTable, keys: Iterable[int]) -> list[Row]:
        """Return the rows of these keys; only before the first write.

        Raises:
            StoreError: the rows cannot be read.
        """
        self._check_open()
        return self._found(
            f"SELECT {', '.join(table.columns)} FROM {table.name} "
            f"WHERE {table.columns[0]} IN (SELECT value FROM json_each(?))",
            (json.dumps(list(keys)),),
        )

    def read(self, page: Page) -> list[Row]:
        """Return a page of a divided table; wait for the write in progress.

        Raises:
            StoreError: the rows cannot be read, or the store is closed.
        """
        self._check_open()
        if self._thread is None:
            return self._read_page(page)
        answers: SimpleQueue[tuple[list[Row], StoreError | None]] = SimpleQueue()

        def found(rows: list[Row], failure: StoreError | None) -> None:
            answers.put((rows, failure))

        self._work.put((page, found, None))
        rows, failure = answers.get()
        if failure is not None:
            raise failure
        return rows

    def fetch(self, page: Page, found: Found) -> None:
        """Read a page in the thread; ``found`` is called in this thread.

        Raises:
            StoreError: the store is closed.
        """
        self._do(page, found)

    def _read_page(self, page: Page) -> list[Row]:
        if hiding := [each for each in self._deletions if each.hides_from(page)]:
            self._finish(hiding)
        table, part, after, most, bound = page
        assert table.division is not None
        chosen, values = rows_after(table, part, after)
        return self._found(
            f"SELECT {', '.join(table.columns)} FROM {table.name} INDEXED BY {index_of(table)} "
            f"WHERE {chosen} ORDER BY {table.division.place}, {table.columns[0]} LIMIT ?",
            (*values, most),
            _up_to(bound, table.columns.index(table.division.weight)),
        )

    # -- writing ----------------------------------------------------------------------------

    def write(self, batch: Batch, done: Done) -> None:
        """Write a batch in the thread, all or nothing.

        ``done`` is called in this thread, once the batch is on the disk or has failed.

        Raises:
            StoreError: the store is closed.
        """
        self._do(batch, done)

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the store to another file, while the store is used.

        The copy has all that was committed before the call, and is itself a store. Messages are stored meanwhile, between pieces of
        the copy, which has them too. The copy appears under its name when it is complete and on the disk; it replaces a file of that
        name.

        Args:
            path: the path of the copy.

        Raises:
            StoreError: the store is closed; a backup is being made already; or the copy cannot be written.
            LocalProtocolError: ``path`` is not a path on this machine.

        Cancelled: the copy is made all the same, unless the store is closed at once.
        """
        target = _checked_path(os.fspath(path))
        if self._copying:
            raise StoreError(f"a backup of the store {self.path!r} is being made already: wait for its end")
        self._check_open()
        self._copying = True
        await until_done(partial(self._do, target))

    def _do(self, what: Batch | str | Page, done: Callable[..., object]) -> None:
        self._check_open()
        if self._thread is None:
            # A daemon, so that a program that forgets to close does not hang. Its last batch may not be committed, but
            # then no peer was promised that.
            self._thread = threading.Thread(target=self._write_all, name=f"store {self.path}", daemon=True)
            self._thread.start()
        self._work.put((what, done, trio.lowlevel.current_trio_token()))

    def _write_all(self) -> None:
        """Write batches, as the store's thread."""
        while (work := self._next()) is not None:
            self._work_on(*work)
            del work  # It keeps messages in memory, and the next batch may come much later.
        while self._has_piece:
            self._delete_in_thread()

    def _work_on(
        self, what: Batch | str | Page, done: Callable[..., object], token: trio.lowlevel.TrioToken | None
    ) -> None:
        answer: tuple[object, ...]
        if isinstance(what, Page):
            try:
                answer = self._read_page(what), None
            except StoreError as failure:
                answer = [], failure
        else:
            answer = (self._copy(what) if isinstance(what, str) else self._commit(partial(self._put, what)),)
        if token is None:
            done(*answer)
            return
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(done, *answer)

    def _copy(self, path: str) -> StoreError | None:
        """Make a backup; return why it failed, or None."""
        unfinished = f"{path}.unfinished"
        try:
            if os.path.realpath(path) == os.path.realpath(self.path):
                return StoreError(f"{path!r} is the store itself: give the backup a file of its own")
            if os.path.exists(f"{path}-wal"):  # SQLite would apply it to the copy.
                return StoreError(
                    f"{path!r} was used as a store: give the backup another name, or remove {path}-wal as well"
                )
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished)
            os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            with contextlib.closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
                copy.execute("PRAGMA synchronous=OFF")  # It is synchronised once, at its end.
                # Changes by the connection that is copied reach the copy too, so that it need not begin again.
                self._db.backup(copy, pages=_COPIED, progress=self._write_meanwhile)
            _sync(unfinished)
            os.replace(unfinished, path)
            _sync(os.path.dirname(path))
        except (OSError, ValueError, sqlite3.Error) as failure:
            with contextlib.suppress(OSError, ValueError):
                os.unlink(unfinished)
            reason = getattr(failure, "strerror", None) or failure
            return StoreError(
                f"the backup {path!r} cannot be written ({reason}): its folder must be writable, and have room for it"
            )
        finally:  # Here, because the trio that asked for it may be over.
            self._copying = False
        return None

    def _write_meanwhile(self, *_progress: int) -> None:
        """Write the batch that waits, if any, between two steps of a backup.

        Not more than one, because a busy container always has another, and the backup would not go on.
        """
        with contextlib.suppress(Empty):
            work = self._work.get_nowait()
            if work is None:  # The store is to be closed: first the backup ends.
                self._work.put(None)
            else:
                self._work_on(*work)

    def _next(self) -> Work | None:
        """Return the next work; delete a piece before it, and more while it does not come.

        When all are deleted, shrink the file.
        """
        assert self._room is not None
        while self._has_piece:
            self._delete_in_thread()
            with contextlib.suppress(Empty):
                return self._work.get_nowait()
        rest = _REST
        while True:
            try:
                return self._work.get(timeout=rest)
            except Empty:
                began = time.monotonic()
                if not self._room.shrink():
                    return self._work.get()
                rest = _SHARE * (time.monotonic() - began)

    def _commit(self, work: Callable[[], Callable[[], object]]) -> StoreError | None:
        """Do work in a transaction, and call what it returns once that is on the disk."""
        assert self._room is not None
        failure = self._try(work)
        if isinstance(failure, StoreFullError):
            self._room.empty_log()
            failure = self._try(work)
        return failure

    def _try(self, work: Callable[[], Callable[[], object]]) -> StoreError | None:
        db = self._db
        assert self._room is not None
        try:
            db.execute("BEGIN IMMEDIATE")
            done = work()
            self._room.claim()
            lost = self._room.lost_file()
            if lost is None:
                db.execute("COMMIT")
        except (sqlite3.Error, OSError, OverflowError, TypeError, ValueError) as failure:
            if db.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
            return self._explain(failure)
        if lost is not None:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            return StoreError(
                f"the store {self.path!r} has lost its file {lost!r}, which was deleted, moved or replaced while it was in use: "
                "nothing is stored any more; stop this program, and restore the file"
            )
        done()
        return None

    def _put(self, batch: Batch) -> Callable[[], object]:
        """Make the changes of a batch; return what to call when they are committed."""
        rewritten = [each for each in self._deletions if each.concerns(batch)]
        for each in rewritten:
            each.finish()
        begun: list[PartDeletion] = []
        for table, changes in batch.items():
            put = [row for row in changes.values() if row is not None]
            drop = [key for key, row in changes.items() if row is None]
            for key in drop:
                if isinstance(key, PartRows):
                    deletion = PartDeletion(self._db, table, key)
                    if not deletion.begin(put):
                        begun.append(deletion)
            self._insert(table, put)
            self._delete(table, [key for key in drop if not isinstance(key, PartRows)])

        def committed() -> None:
            for each in begun:
                each.committed()
            self._forget(rewritten)
            self._deletions += begun
            self._deletions_fail = False

        return committed

    # -- deletions in pieces ----------------------------------------------------------------

    @property
    def _has_piece(self) -> bool:
        return bool(self._deletions) and not self._deletions_fail

    def _delete_piece(self) -> StoreError | None:
        """Delete the next piece of the oldest deletion; return why it failed, or None."""
        oldest = self._deletions[0]

        def work() -> Callable[[], object]:
            return partial(self._forget, [oldest]) if oldest.delete_some() else oldest.committed

        # It need not survive the loss of power: the row that describes the deletion has.
        self._db.execute("PRAGMA synchronous=NORMAL")
        failure = self._commit(work)
        self._db.execute("PRAGMA synchronous=FULL")
        return failure

    def _delete_in_thread(self) -> None:
        """Delete the next piece; if that fails, the next commit has it tried again."""
        failure = self._delete_piece()
        if failure is not None:
            self._deletions_fail = True
            _log.error("deleted rows are still in the file, and are deleted later: %s", failure)

    def _finish(self, deletions: list[PartDeletion]) -> None:
        """Delete at once what is left of these.

        Raises:
            StoreError: it cannot be deleted.
        """

        def work() -> Callable[[], object]:
            for each in deletions:
                each.finish()
            return partial(self._forget, deletions)

        failure = self._commit(work)
        if failure is not None:
            raise failure

    def _forget(self, deletions: list[PartDeletion]) -> None:
        for each in deletions:
            self._deletions.remove(each)

    def _insert(self, table: StoreTable, rows: list[Row]) -> None:
        for some in _pieces(rows):
            # It takes long to bind NULL: columns that are NULL in all of these rows are not bound.
            bound = [
                number
                for number, cells in enumerate(zip(*some, strict=True))
                if cells[0] is not None or cells.count(None) < len(cells)
            ]
            place = f"({','.join('?' if number in bound else 'NULL' for number in range(len(some[0])))})"
            self._db.execute(
                f"INSERT OR REPLACE INTO {table.name} VALUES {','.join([place] * len(some))}",
                [row[number] for row in some for number in bound],
            )

    def _delete(self, table: StoreTable, keys: list[Any]) -> None:
        """Delete rows by their keys, which are often a range: a queue is emptied in order."""
        key = table.columns[0]
        if table.key is int:
            keys.sort()
        for some in (keys,) if _is_range(table, keys) else _pieces(keys):
            if _is_range(table, some):
                chosen, values = "BETWEEN ? AND ?", [some[0], some[-1]]
            else:
                chosen, values = f"IN ({','.join('?' * len(some))})", some
            self._db.execute(f"DELETE FROM {table.name} WHERE {key} {chosen}", values)

    # -- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for the write in progress, and close the file; again, do nothing."""
        if self._closed:
            return
        self._closed = True
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
        with contextlib.suppress(sqlite3.Error):  # Pages that are not in the file yet are in the log.
            self._db.close()
        if self._room is not None:
            self._room.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"the store {self.path!r} is closed: open another SqliteStore of that file")

    def _explain(self, failure: Exception) -> StoreError:
        """Return an error with SQLite's description, and what to do about it."""
        code: Any = getattr(failure, "sqlite_errorcode", None)
        kind = None if code is None else code & 0xFF
        where = f"the store {self.path!r}"
        if kind == sqlite3.SQLITE_FULL or (isinstance(failure, OSError) and is_full(failure)):
            full = True
        else:  # SQLite reports a full disk, but a quota only as a failed write.
            full = code == sqlite3.SQLITE_IOERR_WRITE and self._room is not None and self._room.log_is_full()
        if full:
            return StoreFullError(f"{where} is full: make room on its disk, or raise max_octets")
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreError(f"{where} is in use by another process: stop that one, or take another file")
        # SQLite's description may contain names from a damaged file, which may not be valid text.
        if kind == sqlite3.SQLITE_NOTADB:
            return StoreError(f"{_no_store(self.path)} ({failure}): {_WHAT_TO_DO}")
        if kind == sqlite3.SQLITE_CORRUPT or isinstance(failure, UnicodeDecodeError):
            # The code is the same when the disk cannot be read.
            return StoreError(
                f"{where} is damaged, or its disk fails ({failure}): start again, and if that does not help, "
                "bring it back from a backup, or move it away"
            )
        if kind == sqlite3.SQLITE_IOERR:
            name: str = getattr(failure, "sqlite_errorname", "SQLITE_IOERR")
            return StoreError(
                f"{where} cannot use its disk ({failure}, {name}): it may be failing or read-only; "
                "the log of the system has the reason"
            )
        if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return StoreError(f"{where} cannot be written ({failure}): its file and folder must be writable")
        return StoreError(f"{where} failed: {failure}")

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path!r}{' closed' if self._closed else ''}>"


def _checked_path(path: str) -> str:
    if path == ":memory:":  # SQLite would keep the data in memory, which does not outlive the process.
        raise LocalProtocolError("':memory:' is no file: use a MemoryStore, or './:memory:'")
    return local_path(path)


def _no_store(path: str) -> str:
    return f"{path!r} is not a store of this library"


def _pieces(items: list[Item]) -> Iterator[list[Item]]:
    """Yield pieces of a list, each for one statement."""
    at = 0
    for size in _AT_ONCE:
        while len(items) - at >= size:
            yield items[at : at + size]
            at += size


def _is_range(table: StoreTable, keys: list[Any]) -> bool:
    """Whether sorted keys are numbers without a gap."""
    return table.key is int and bool(keys) and keys[-1] - keys[0] == len(keys) - 1


def _up_to(octets: float, column: int) -> Callable[[Iterator[Row]], Iterator[Row]]:
    """Return a function that takes rows until a column has more than these octets."""

    def taken(rows: Iterator[Row]) -> Iterator[Row]:
        left = octets
        for row in rows:
            yield row
            cell = row[column]
            left -= len(cell) if isinstance(cell, bytes) else 0
            if left < 0:
                return

    return taken


def _is_undecodable(failure: Exception) -> bool:
    """Whether a text of a row is not UTF-8, for which ``sqlite3`` has no code."""
    return isinstance(failure, UnicodeDecodeError) or "decode to UTF-8" in str(failure)


def _sync(path: str) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
