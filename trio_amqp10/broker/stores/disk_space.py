"""Disk space of a SQLite database in WAL mode: allocated early, and freed.

On a full disk, a deletion needs space too: for the log, and for the pages that are in the log and not in the database yet. So
two things are allocated in advance. Before a commit, the database file is made at least as large as all pages, those in the
log included; so the pages in the log can always be moved to the database, and the log can start again from its beginning. And
the log always has at least ``_LOG_LEAST`` octets. Both hold whatever other programs write to the disk.

Deleted pages are used again; while the store is idle, those at the end of the file are cut off.

Knows one database and its files; knows no table.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import sys
from typing import Final

_LOG_LEAST: Final = 1024 * 1024
"""The least size of the log in octets; enough to delete many thousand rows."""
_LOG_MOST: Final = 4_194_304
"""Octets that the log keeps when it starts again.

About its size when SQLite empties it by itself.
"""
_SPARE: Final = 256
"""Free pages that the database keeps."""
_PIECE: Final = 128
"""Free pages that are cut off in one step."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CHUNK: Final = 1024 * 1024


def is_full(failure: OSError) -> bool:
    """Whether an error means that the disk, a quota, or a file is at its limit."""
    return failure.errno in _FULL


class DiskSpace:
    """The files of one database, which the caller has locked; must be closed after it.

    Args:
        db: the only connection to it, in WAL mode.
        path: the path of its file; the log is in the same folder.

    Raises:
        OSError: the files cannot be opened.
        sqlite3.Error: the database cannot be read.
    """

    def __init__(self, db: sqlite3.Connection, path: str) -> None:
        self._db = db
        self._page = self._pragma("page_size")
        self._log_path = f"{path}-wal"
        db.execute(f"PRAGMA journal_size_limit={_LOG_MOST}")
        # Closing any descriptor of a file releases all locks of the process on it, SQLite's too. So this one stays
        # open until the database is closed.
        self._file = os.open(path, os.O_RDWR)
        # If the disk is full already, deletions may fail until there is room.
        with contextlib.suppress(OSError):
            self._extend_log(_LOG_LEAST)
        self._identities = {name: _identity(name) for name in (path, self._log_path)}

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _pragma(self, name: str) -> int:
        value: int = self._db.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    def claim(self) -> None:
        """Before a commit, extend the database file to its size after a checkpoint.

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
                # The file system cannot allocate in advance, so nothing more can be done.

    def lost_file(self) -> str | None:
        """Return the path of a file that was deleted, moved or replaced, or None.

        SQLite does not notice that, and would continue to write to a file without a name.
        """
        for name, identity in self._identities.items():
            found = _identity(name)
            if found != identity:
                if identity is not None:
                    return name
                self._identities[name] = found  # SQLite has made its log after the start.
        return None

    def empty_log(self) -> None:
        """Move the pages in the log to the database, so that the log starts again."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()

    def log_is_full(self) -> bool:
        """Whether the log cannot grow because the disk is full, not for another reason."""
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
        """Cut off some free pages; return whether there are more to cut off.

        If not, the log has been emptied.
        """
        for _ in range(2):
            with contextlib.suppress(sqlite3.Error):
                free = self._pragma("freelist_count") - _SPARE
                if free <= 0:
                    break
                self._db.execute(f"PRAGMA incremental_vacuum({min(free, _PIECE)})").fetchall()
                if self._pragma("freelist_count") - _SPARE < free:
                    return True
                break  # A file of an older version cannot shrink.
            self.empty_log()  # SQLite failed because the log was full: try again with an empty one.
        self.empty_log()
        return False


def _identity(path: str) -> tuple[int, int] | None:
    """Return the identity of the file at this path, or None if there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _allocate(file: int, start: int, end: int) -> None:
    """Extend the file with allocated octets; if that fails, restore its old size."""
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
