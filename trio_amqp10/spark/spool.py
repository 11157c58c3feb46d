"""Spool: received messages that Spark has not consumed, in segments on disk.

::

    lock                             locked (flock) by the one process that writes
    spool.json                       the id of the spool, a UUID
    low-<row>                        rows below this number are consumed
    metrics.json                     figures for people and monitors (``receiving_figures``)
    links                            the state of links, for peers that keep links (``spool_terminus_store``)
    seg-<first>-<end>.arrow          rows first to end - 1
    tmp-...                          a file that is being written; deleted when the spool is opened

The number of a row is the number of rows that were written before it. A segment is written under a temporary name, flushed to
the disk and renamed, and the folder is flushed: so it exists whole or not at all, and survives a crash of the process or the machine
once ``write`` has returned, on a POSIX file system (object stores have neither rename nor fsync).

Segments are deleted once they are consumed, except for the last ``keep`` rows, by which redelivered messages are
recognised after a crash. The number of consumed rows is the name of an empty file, which is only renamed:
that needs no room, so consumed rows can be deleted when the disk is full.

A spool of version 1, which had that number in a file ``low``, is converted when it is opened.

One thread may write while another plans batches: a lock guards the shared state. Knows files only, not the content of segments.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import uuid
from bisect import bisect_right
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from trio_amqp10.core.errors import AmqpError

from .local_files import NO_ROOM, flush_folder, lock_file

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import BinaryIO

_SEGMENT: Final = re.compile(r"seg-(\d{20})-(\d{20})\.arrow", re.ASCII)
_LOW: Final = re.compile(r"low-(\d{20})", re.ASCII)
_VERSION: Final = 2
_REST: Final = 1.0
"""Seconds after which a full disk is tried again, though no row was deleted here."""


class SpoolError(AmqpError):
    """The spool is in use, is damaged, or is not the spool of the checkpoint."""


class SpoolFullError(SpoolError):
    """The disk has no room for a segment or file; nothing has changed."""


class Segment(NamedTuple):
    """Rows ``first`` to ``end - 1``, in one file of ``size`` octets."""

    first: int
    end: int
    size: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"seg-{self.first:020d}-{self.end:020d}.arrow"


class Slice(NamedTuple):
    """A part of a segment: rows ``start`` to ``stop - 1``, counted in the file.

    Attributes:
        source: the path of the file, or its content.
        first: the number of the row that the segment begins with.
    """

    source: str | bytes
    start: int
    stop: int
    first: int


class Waiting(NamedTuple):
    """Rows that wait for their consumption.

    Attributes:
        rows: how many.
        octets: the octets of their segments.
        since: when the oldest was written, in seconds since 1970; None if there are none.
    """

    rows: int
    octets: int
    since: float | None


def rows_waiting(folder: Path, row: int | None = None) -> Waiting:
    """Return the rows of a spool that wait, by the names of its files.

    The spool may be open in another process.

    Args:
        folder: of the spool.
        row: the first row that may wait; None for the first one that is not noted as consumed.

    Raises:
        OSError: the folder cannot be read.
    """
    names = [path.name for path in folder.iterdir()]
    lows = [int(match[1]) for match in map(_LOW.fullmatch, names) if match is not None]
    at = max(lows, default=0) if row is None else row
    found = sorted(
        (int(match[1]), int(match[2]), match[0])
        for match in map(_SEGMENT.fullmatch, names)
        if match is not None and int(match[2]) > at
    )
    rows, octets, times = 0, 0, list[float]()
    for first, end, name in found:
        with suppress(FileNotFoundError):  # deleted meanwhile
            state = (folder / name).stat()
            rows += end - max(first, at)
            octets += state.st_size
            times.append(state.st_mtime)
    return Waiting(rows, octets, min(times, default=None))


class Spool:
    """A folder of segments, which one process at a time may have open.

    Args:
        folder: the folder; it is made if it does not exist.
        max_bytes: the octets of unconsumed rows at which the spool is ``full``; None for no limit.
        keep: the least number of consumed rows that are not deleted.
        patience: seconds to wait for another process to close the spool.

    Attributes:
        id: identifies the spool.
        low: rows below this number are consumed.
        end: the number of rows that were ever written.
        where: the folder, for messages to people.

    Raises:
        SpoolError: another process has the spool open, or it is damaged.
        OSError: the folder cannot be used.
    """

    figures_interval: Final = 1.0
    """The seconds between two useful calls of ``show_figures``."""

    def __init__(
        self, folder: str | Path, *, max_bytes: int | None = None, keep: int = 0, patience: float = 5.0
    ) -> None:
        self._folder = Path(folder).absolute()
        self.where: str = str(self._folder)
        self._max_bytes = max_bytes
        self._keep = keep
        self._guard = threading.Lock()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = self._acquire(patience)
        try:
            for left in self._folder.glob("tmp-*"):
                left.unlink()
            self._rested = 0.0  # when a disk that was full may have room again
            self.id: str
            self.id, former = self._identify()
            self.low: int = self._read_low(former)
            if former < _VERSION:
                self._describe(self.id)
                (self._folder / "low").unlink(missing_ok=True)
            self._segments = self._scan()
        except BaseException:
            self._lock.close()
            raise
        self.end: int = max(self.low, self._segments[-1].end if self._segments else 0)
        self._size = sum(each.size for each in self._segments if each.end > self.low)

    # -- opening ----------------------------------------------------------------------------

    def _acquire(self, patience: float) -> BinaryIO:
        lock = lock_file(self._folder / "lock", patience)
        if lock is None:
            raise SpoolError(
                f"the spool {self._folder} is in use by another query or process: each needs one of its own. A "
                "stream that is joined with itself is read twice, and its readers would share the messages: join it in foreachBatch"
            )
        return lock

    def _identify(self) -> tuple[str, int]:
        """Return the id and the version of the spool; version 0 for a new one."""
        file = self._folder / "spool.json"
        if not file.exists():
            if any(self._folder.glob("seg-*")):
                raise SpoolError(f"{self._folder} has segments, but no spool.json with the id of the spool")
            return str(uuid.uuid4()), 0
        try:
            found = json.loads(file.read_text())
            version, name = int(found["version"]), str(found["spool"])
        except (ValueError, KeyError, TypeError) as wrong:
            raise SpoolError(f"{file} is damaged: {wrong!r}") from None
        if not 1 <= version <= _VERSION:
            raise SpoolError(
                f"{file} is of version {version}, and this program knows versions 1 and {_VERSION}: read this spool with "
                "a newer trio-amqp10"
            )
        return name, version

    def _describe(self, name: str) -> None:
        self.write_note("spool.json", json.dumps({"spool": name, "version": _VERSION}))

    def _read_low(self, version: int) -> int:
        """Return the number of consumed rows; the larger one of two that a crash has left."""
        named = {int(match[1]) for path in self._folder.iterdir() if (match := _LOW.fullmatch(path.name))}
        found = set(named)
        noted = self.read_note("low")
        if noted is not None and version < _VERSION:
            try:
                found.add(int(noted))
            except ValueError:
                raise SpoolError(
                    f"{self._folder / 'low'} is damaged: expected the number of consumed rows, not {noted[:20]!r}"
                ) from None
        if not found and version == _VERSION:
            raise SpoolError(f"{self._folder} has no file low-N with the number of consumed rows in its name")
        low = max(found, default=0)
        if low not in named:
            self._low_file(low).touch()
            flush_folder(self._folder)
        for each in named - {low}:
            self._low_file(each).unlink(missing_ok=True)
        return low

    def _low_file(self, row: int) -> Path:
        return self._folder / f"low-{row:020d}"

    def _scan(self) -> list[Segment]:
        found = (_SEGMENT.fullmatch(path.name) for path in self._folder.iterdir())
        segments = sorted(
            Segment(int(match[1]), int(match[2]), (self._folder / match[0]).stat().st_size)
            for match in found
            if match is not None
        )
        at = min(self.low, segments[0].first) if segments else self.low
        for each in segments:
            if each.first != at or each.end <= each.first:
                raise SpoolError(f"{self._folder}: rows {at} to {each.first} are missing before {each.name}")
            at = each.end
        if at < self.low:
            raise SpoolError(
                f"{self._folder}: rows up to {self.low} are consumed, and only {at} were written"
            )
        return segments

    # -- writing ----------------------------------------------------------------------------

    def write(self, rows: int, fill: Callable[[BinaryIO], object]) -> None:
        """Add a segment; when this returns, it survives a crash.

        Args:
            rows: the number of rows, at least 1.
            fill: writes the segment to the file that it gets.

        Raises:
            SpoolFullError: the disk has no room for the segment; nothing has changed.
            OSError: the segment could not be written; whether it exists is known when the spool is opened again.
        """
        first = self.end
        tmp = self._folder / f"tmp-{first:020d}"
        with self._writing(tmp) as file:
            fill(file)
        self._publish(tmp, Segment(first, first + rows, tmp.stat().st_size))

    def _publish(self, tmp: Path, segment: Segment) -> None:
        """Rename a file that is on the disk to a segment, and count its rows."""
        tmp.rename(self._folder / segment.name)
        flush_folder(self._folder)
        with self._guard:
            self._segments.append(segment)
            self._size += segment.size
            self.end = segment.end

    @contextmanager
    def _writing(self, tmp: Path) -> Generator[BinaryIO]:
        """Open a new file; flush it to the disk at the end, or delete it on an exception."""
        try:
            with open(tmp, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except OSError as wrong:
            tmp.unlink(missing_ok=True)
            if wrong.errno not in NO_ROOM:
                raise
            self._rested = time.monotonic() + _REST
            raise SpoolFullError(f"the disk of the spool {self._folder} is full: {wrong}") from wrong
        except BaseException:
            tmp.unlink(missing_ok=True)
            raise
        self._rested = 0.0

    def read_note(self, name: str) -> str | None:
        """Return the content of a small file; None if it does not exist."""
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write_note(self, name: str, text: str) -> None:
        """Write or replace a small file atomically.

        Raises:
            SpoolFullError: the disk has no room for the file; nothing has changed.
            OSError: the file could not be written.
        """
        tmp = self._folder / f"tmp-{name}"
        with self._writing(tmp) as file:
            file.write(text.encode())
        tmp.rename(self._folder / name)
        flush_folder(self._folder)

    def show_figures(self, name: str, text: str) -> None:
        """Write a file of figures, which need not survive a crash.

        Raises:
            OSError: the file could not be written.
        """
        tmp = self._folder / f"tmp-{name}"
        try:
            tmp.write_text(text, encoding="utf-8")
            tmp.replace(self._folder / name)
        except OSError:
            tmp.unlink(missing_ok=True)  # e.g. if the disk is full
            raise

    @property
    def full(self) -> bool:
        """Whether to receive no more: ``max_bytes`` is reached, or the disk had no room."""
        if time.monotonic() < self._rested:
            return True
        return self._max_bytes is not None and self._size >= self._max_bytes

    @property
    def size(self) -> int:
        """The octets of the unconsumed segments."""
        return self._size

    @property
    def waiting_since(self) -> float | None:
        """When the oldest unconsumed row was written, in seconds since 1970.

        None if all rows are consumed.
        """
        with self._guard:
            oldest = next((each for each in self._segments if each.end > self.low), None)
        try:
            return None if oldest is None else (self._folder / oldest.name).stat().st_mtime
        except FileNotFoundError:
            return None

    @property
    def segments(self) -> list[Path]:
        """The files of all segments, oldest first, including consumed ones that are kept."""
        with self._guard:
            return [self._folder / each.name for each in self._segments]

    # -- planning ---------------------------------------------------------------------------

    def check(self, name: object, row: object) -> int:
        """Check that an offset belongs to this spool; return the number of its row.

        Raises:
            SpoolError: the offset belongs to another spool, or its rows are lost.
        """
        if name != self.id:
            raise SpoolError(
                f"the checkpoint belongs to the spool {name}, and {self._folder} is {self.id}: give the spool that "
                "the query began with, or begin with a new checkpoint"
            )
        if not isinstance(row, int) or not 0 <= row <= self.end:
            raise SpoolError(
                f"the checkpoint is at row {row!r}, and the spool {self._folder} has {self.end}: rows were lost"
            )
        return row

    def slices(self, start: int, stop: int) -> list[Slice]:
        """Return where rows ``start`` to ``stop - 1`` are.

        Raises:
            SpoolError: some rows are not there any more.
        """
        with self._guard:
            segments = [each for each in self._segments if each.first < stop and start < each.end]
        if stop > start and (not segments or segments[0].first > start or segments[-1].end < stop):
            raise SpoolError(f"rows {start} to {stop} are not in the spool {self._folder} any more")
        parts: list[Slice] = []
        for each in segments:
            path = self._folder / each.name
            if not path.exists():
                raise SpoolError(f"{path} is missing: rows {each.first} to {each.end} are lost")
            parts.append(
                Slice(
                    str(path),
                    max(start, each.first) - each.first,
                    min(stop, each.end) - each.first,
                    each.first,
                )
            )
        return parts

    def octets(self, start: int, stop: int) -> float:
        """Return about how many octets rows ``start`` to ``stop - 1`` have."""
        with self._guard:
            return sum(
                [
                    each.size * (min(stop, each.end) - max(start, each.first)) / (each.end - each.first)
                    for each in self._segments
                    if each.first < stop and start < each.end
                ]
            )

    def kept(self, row: int, rows: int) -> list[Slice]:
        """Return where the last rows before ``row`` are, at most so many that still exist."""
        with self._guard:
            first = self._segments[0].first if self._segments else row
        return self.slices(min(row, max(first, row - rows)), row)

    def fitting(self, start: int, octets: int) -> int:
        """Return the end of rows from ``start`` on that have about so many octets.

        It is at least one row after ``start``, if there is one.
        """
        with self._guard:
            segments = self._segments[bisect_right(self._segments, start, key=lambda each: each.end) :]
            stop = start
            for each in segments:
                row = each.size / (each.end - each.first)
                rows = each.end - stop
                if rows * row > octets:
                    stop += int(octets / row)
                    break
                octets -= int(rows * row)
                stop = each.end
            return min(self.end, max(stop, start + 1))

    def release(self, row: int) -> None:
        """Note that rows below ``row`` are consumed, and delete those that are not kept.

        A row that is consumed already, or not written yet, changes nothing.
        """
        with self._guard:
            if not self.low < row <= self.end:
                return
            self._low_file(self.low).rename(self._low_file(row))
            flush_folder(self._folder)
            self._size -= sum(each.size for each in self._segments if self.low < each.end <= row)
            self.low = row
            least = min(row, self.end - self._keep)
            gone = [each for each in self._segments if each.end <= least]
            del self._segments[: len(gone)]
        for each in gone:
            (self._folder / each.name).unlink(missing_ok=True)
        if gone:
            self._rested = 0.0

    def close(self) -> None:
        """Release the spool, so that another process may open it."""
        self._lock.close()
