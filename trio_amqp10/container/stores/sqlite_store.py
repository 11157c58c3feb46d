"""Rows in a SQLite file: what was written survives kill -9 and the loss of power.

The file is in WAL mode with ``synchronous=FULL``: a commit returns when its pages are on the disk, as
far as the disk tells the truth. One thread writes, one batch at a time and each in one transaction,
so that neither the write nor the wait for the disk holds up the task that reads from peers. One
process has the file to itself.

Many rows travel in one statement: each step of SQLite's gives the interpreter's lock away and
has to win it back, which beside a busy event loop costs milliseconds, not the microsecond of the step.

On a full disk rows are refused and can still be deleted: see ``room``.

Knows rows; knows no message.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.paths import local_path

from .base import StoreError, StoreFullError
from .disk_space import DiskSpace, is_full

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from .base import Batch, Cell, Done, Row, StoreTable

__all__ = ["SqliteStore"]

_APPLICATION: Final = 0x414D5150  # "AMQP": says whose file it is, in its header
_VERSION: Final = 1
_PATIENCE: Final = 1.0
"""Seconds to wait for a process that is about to let go of the file."""
_AT_ONCE: Final = (256, 32, 4, 1)
"""Rows in one statement; few sizes, so that SQLite finds what it has prepared."""
_READ: Final = 1000
_HEADER: Final = 512
"""Octets of the smallest page that SQLite has."""
_WHAT_TO_DO: Final = "give the store a file of its own, or bring the file back from a backup if it was a store and has lost its beginning"
_REST: Final = 1.0
"""Seconds without a write, before the file is made smaller."""
_SHARE: Final = 4
"""Of the time that a piece of that takes, how often as long is rested after it."""

Work = tuple["Batch", "Done", trio.lowlevel.TrioToken]


class SqliteStore:
    """A file that keeps what a container must not lose; made if there is none. ``with`` closes it.

    Args:
        path: of the file; ``~`` and URIs of the scheme ``file`` are understood. Beside it stand ``PATH-wal`` of at least 1 MiB and, at times, others of SQLite's: they
            belong together.
        max_octets: how large the file may become; None for as large as the disk.

    Raises:
        StoreError: the file cannot be opened, another process has it, it is damaged, it is not a
            store, or a newer version of this library wrote it.
        LocalProtocolError: ``max_octets`` is not at least 65536, or ``path`` is no path on this machine.

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
        self._closed = False
        connection: sqlite3.Connection | None = None
        try:
            # Messages are nobody else's business: SQLite gives the files beside it the same mode. A file that is
            # there is not opened: closing it would give up the locks that this process may have on it.
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
        # Some systems' SQLite overwrites what is deleted: in the log, which would need room for all of it.
        db.execute("PRAGMA secure_delete=FAST")
        if not made_by_us or version != _VERSION:
            db.execute("BEGIN IMMEDIATE")
            db.execute(f"PRAGMA application_id={_APPLICATION}")
            db.execute(f"PRAGMA user_version={_VERSION}")
            db.execute("COMMIT")
        self._room = DiskSpace(db, self.path)
        if max_octets is not None:
            db.execute(f"PRAGMA max_page_count={max_octets // self._pragma('page_size')}")

    def _check_size(self) -> None:
        """Refuse a file that is too short to be a database: SQLite takes one of one octet for a new one."""
        size = os.stat(self.path).st_size
        if 0 < size < _HEADER:
            raise StoreError(f"{_no_store(self.path)}: it has {size} octets; {_WHAT_TO_DO}")

    def _pragma(self, name: str) -> int:
        value: int = self._db.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    # -- reading ----------------------------------------------------------------------------

    def rows(self, table: StoreTable) -> Iterator[Row]:
        """All rows, by key, before the first write.

        Raises:
            StoreError: they cannot be read, or the table has other columns.
        """
        self._check_open()
        key, *rest = table.columns
        try:
            found = tuple(each[1] for each in self._db.execute(f"PRAGMA table_info({table.name})"))
            if not found:
                first = f"{key} {'INTEGER' if table.key is int else 'TEXT'} PRIMARY KEY NOT NULL"
                self._db.execute(f"CREATE TABLE {table.name} ({', '.join((first, *rest))})")
            elif found != table.columns:
                raise StoreError(
                    f"the store {self.path!r} has a table {table.name!r} with other columns than "
                    f"{', '.join(table.columns)}: it is not of this version of trio-amqp10"
                )
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

    def _rows_with_surrogates(self, statement: str) -> list[Row]:
        """As ``rows``, where a text is not UTF-8: its wrong octets are surrogates, which no text that was written has."""
        self._db.text_factory = _with_surrogates
        try:
            return self._db.execute(statement).fetchall()
        finally:
            self._db.text_factory = str

    # -- writing ----------------------------------------------------------------------------

    def write(self, batch: Batch, done: Done) -> None:
        """Have it written, all or nothing; ``done`` is told, in this thread, once it is on the disk or failed.

        Raises:
            StoreError: the store is closed.
        """
        self._check_open()
        if self._thread is None:
            # A daemon: a program that forgets to close must not hang. What is not committed was not promised.
            self._thread = threading.Thread(target=self._write_all, name=f"store {self.path}", daemon=True)
            self._thread.start()
        self._work.put((batch, done, trio.lowlevel.current_trio_token()))

    def _write_all(self) -> None:
        """The thread."""
        while (work := self._next()) is not None:
            batch, done, token = work
            failure = self._commit(batch)
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(done, failure)
            del batch, done, work  # they hold messages, and the next may be long in coming

    def _next(self) -> Work | None:
        """What is to be written next; the file shrinks while there is nothing."""
        assert self._room is not None
        rest = _REST
        while True:
            try:
                return self._work.get(timeout=rest)
            except Empty:
                began = time.monotonic()
                if not self._room.shrink():
                    return self._work.get()
                rest = _SHARE * (time.monotonic() - began)

    def _commit(self, batch: Batch) -> StoreError | None:
        assert self._room is not None
        failure = self._try(batch)
        if isinstance(failure, StoreFullError):
            self._room.empty_log()
            failure = self._try(batch)
        return failure

    def _try(self, batch: Batch) -> StoreError | None:
        db = self._db
        assert self._room is not None
        try:
            db.execute("BEGIN IMMEDIATE")
            for table, changes in batch.items():
                put = [row for row in changes.values() if row is not None]
                drop = [key for key, row in changes.items() if row is None]
                place = f"({','.join('?' * len(table.columns))})"
                self._execute(f"INSERT OR REPLACE INTO {table.name} VALUES {{}}", place, put)
                self._execute(
                    f"DELETE FROM {table.name} WHERE {table.columns[0]} IN ({{}})",
                    "?",
                    [(key,) for key in drop],
                )
            self._room.claim()
            lost = self._room.lost_file()
            if lost is None:
                db.execute("COMMIT")
        except (sqlite3.Error, OSError, OverflowError, ValueError) as failure:
            if db.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
            return self._explain(failure)
        if lost is not None:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            return StoreError(
                f"the store {self.path!r} has lost its file {lost!r}, which was deleted, moved or replaced while it was in use: "
                "nothing is stored any more; stop this program, and bring the file back"
            )
        return None

    def _execute(self, statement: str, place: str, rows: Sequence[tuple[Cell, ...]]) -> None:
        at = 0
        for size in _AT_ONCE:
            while len(rows) - at >= size:
                values = [value for row in rows[at : at + size] for value in row]
                self._db.execute(statement.format(",".join([place] * size)), values)
                at += size

    # -- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for the write in progress, and let go of the file; the second time does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
        with contextlib.suppress(sqlite3.Error):  # what is not in the file yet is in the log beside it
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
        """What SQLite says, and what to do about it."""
        code: Any = getattr(failure, "sqlite_errorcode", None)
        kind = None if code is None else code & 0xFF
        where = f"the store {self.path!r}"
        if kind == sqlite3.SQLITE_FULL or (isinstance(failure, OSError) and is_full(failure)):
            full = True
        else:  # SQLite tells a disk that is full from one that fails, but not a quota
            full = code == sqlite3.SQLITE_IOERR_WRITE and self._room is not None and self._room.log_is_full()
        if full:
            return StoreFullError(f"{where} is full: make room on its disk, or raise max_octets")
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreError(f"{where} is in use by another process: stop that one, or take another file")
        # SQLite's own words have names out of the file, which may be none any more.
        if kind == sqlite3.SQLITE_NOTADB:
            return StoreError(f"{_no_store(self.path)} ({failure}): {_WHAT_TO_DO}")
        if kind == sqlite3.SQLITE_CORRUPT or isinstance(failure, UnicodeDecodeError):
            return StoreError(f"{where} is damaged ({failure}): bring it back from a backup, or move it away")
        if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return StoreError(
                f"{where} cannot be written ({failure}): its file and folder have to be writable"
            )
        return StoreError(f"{where} failed: {failure}")

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path!r}{' closed' if self._closed else ''}>"


def _checked_path(path: str) -> str:
    if path == ":memory:":  # for SQLite that is no file, and what is gone with the process is no store
        raise LocalProtocolError("':memory:' is no file: use a MemoryStore, or './:memory:'")
    return local_path(path)


def _no_store(path: str) -> str:
    return f"{path!r} is not a store of this library"


def _with_surrogates(octets: bytes) -> str:
    return octets.decode(errors="surrogateescape")


def _is_undecodable(failure: Exception) -> bool:
    """Whether a text of a row is not UTF-8: ``sqlite3`` has no code of its own for that."""
    return isinstance(failure, UnicodeDecodeError) or "decode to UTF-8" in str(failure)
