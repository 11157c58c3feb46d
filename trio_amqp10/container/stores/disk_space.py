"""Disk space of a SQLite database in WAL mode: taken early, and freed.

On a full disk, deleting needs room too: for the log, and for what is in the log and not in the database yet. So
two things are allocated in advance. The database is at least as large as all its pages, those in the log
included, before they are committed; hence what is in the log can always be moved to the database, and the log be
used again from its beginning. And the log never has less than ``_LOG_LEAST`` octets. Both hold whatever other
programs do to the disk.

Deleted pages are used again; while the store rests, those at the end of the file are cut off.

Knows one database and its files; knows no table.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import sys
from typing import Final

__all__ = ["DiskSpace", "is_full"]

_LOG_LEAST: Final = 1024 * 1024
"""Octets of the log that are always there; they hold the deletion of many thousand rows."""
_LOG_MOST: Final = 4_194_304
"""Octets that the log keeps when it begins again; about what it has when SQLite empties it by itself."""
_SPARE: Final = 256
"""Free pages that the database keeps."""
_PIECE: Final = 128
"""Free pages that are cut off at once."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CHUNK: Final = 1024 * 1024


def is_full(failure: OSError) -> bool:
    """Whether the disk, a quota, or the limit of a file's size is meant."""
    return failure.errno in _FULL


class DiskSpace:
    """The files of one database, which the caller has locked; closed after it.

    Args:
        db: the only connection to it, in WAL mode.
        path: of its file; the log stands beside it.

    Raises:
        OSError: they cannot be opened.
        sqlite3.Error: it cannot be read.
    """

    def __init__(self, db: sqlite3.Connection, path: str) -> None:
        self._db = db
        self._page = self._pragma("page_size")
        self._log_path = f"{path}-wal"
        db.execute(f"PRAGMA journal_size_limit={_LOG_MOST}")
        # Closing a file of one's own gives up every lock on it, SQLite's too: so this one stays open.
        self._file = os.open(path, os.O_RDWR)
        with contextlib.suppress(
            OSError
        ):  # a disk that is full already: what is deleted may not be stored yet
            self._extend_log(_LOG_LEAST)
        self._identities = {name: _identity(name) for name in (path, self._log_path)}

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _pragma(self, name: str) -> int:
        value: int = self._db.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    def claim(self) -> None:
        """Before a commit: have the database as large as it becomes when all that is in the log is moved there.

        Raises:
            OSError: there is no room.
        """
        size = os.fstat(self._file).st_size
        wanted = self._pragma("page_count") * self._page
        if size < wanted:
            try:
                _allocate(self._file, size, wanted)
            except OSError as failure:
                if is_full(failure):
                    raise
                # A file system that allocates nothing in advance: then there is nothing to do.

    def lost_file(self) -> str | None:
        """Return the path at which the database or its log is no more, because it was deleted, moved or replaced; None if both are there.

        SQLite does not notice, and goes on writing to a file that nobody will find.
        """
        for name, identity in self._identities.items():
            found = _identity(name)
            if found != identity:
                if identity is not None:
                    return name
                self._identities[name] = found  # SQLite has made its log since
        return None

    def empty_log(self) -> None:
        """Move what is in the log to the database, so that the log begins again."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()

    def log_is_full(self) -> bool:
        """Whether the log cannot grow because the disk is full, and for no other reason."""
        try:
            self._extend_log(os.stat(self._log_path).st_size + self._page)
        except OSError as failure:
            return is_full(failure)
        return False

    def _extend_log(self, wanted: int) -> None:
        log = os.open(self._log_path, os.O_RDWR)
        try:
            size = os.fstat(log).st_size
            if size < wanted:
                _allocate(log, size, wanted)
        finally:
            os.close(log)

    def shrink(self) -> bool:
        """Cut some free pages off; False if there are few, or they cannot be: then the log is empty."""
        for _ in range(2):
            with contextlib.suppress(sqlite3.Error):
                free = self._pragma("freelist_count") - _SPARE
                if free <= 0:
                    break
                self._db.execute(f"PRAGMA incremental_vacuum({min(free, _PIECE)})").fetchall()
                if self._pragma("freelist_count") - _SPARE < free:
                    return True
                break  # none goes from a file of an older version
            self.empty_log()  # it was full
        self.empty_log()
        return False


def _identity(path: str) -> tuple[int, int] | None:
    """Which file is at this path; None if there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _allocate(file: int, start: int, end: int) -> None:
    """Make the file longer, with octets that take room on the disk; if there is none, it is as it was."""
    try:
        if sys.platform == "linux":
            os.posix_fallocate(file, start, end - start)
        else:
            at = os.lseek(file, start, os.SEEK_SET)
            while at < end:
                at += os.write(file, bytes(min(end - at, _CHUNK)))
    except OSError:
        os.ftruncate(file, start)
        raise
