"""Spool: received messages that Spark has not consumed, in segments on disk.

::

    lock                             held (flock) by the one process that writes
    spool.json                       which spool this is: a UUID, made once
    low-<row>                        rows below this number are consumed
    metrics.json                     figures for whoever watches (``receiving_figures``)
    links                            what the peer knows of our links, where it keeps them
    seg-<first>-<end>.arrow          rows first to end - 1
    tmp-...                          not there yet: whoever comes next removes it

A row's number is how many came before it, ever. A segment is written under another name, flushed to
the disk, renamed, and the folder flushed: so it is there whole or not at all, and what ``write``
returned for survives a crash of the process and of the machine, as far as the file system keeps
its word (a POSIX one does; object stores have neither rename nor fsync).

Segments are deleted once they are consumed, but for the last ``keep`` rows, which tell what comes
again after a crash. The number of consumed rows is the name of an empty file, and a rename is all that changes it:
that takes no room, so where the disk is full, consumed rows still make way for new ones.

Spools of version 1, which had that number in a file ``low``, are taken over when they are opened.

One thread may write while another plans: a lock guards what both see. What is inside a segment is
the caller's business: knows files only.

"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import threading
import time
import uuid
from bisect import bisect_right
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from trio_amqp10.errors import AmqpError

from .failure_points import passing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import BinaryIO

__all__ = ["Segment", "Slice", "Spool", "SpoolError", "SpoolFullError"]

_SEGMENT: Final = re.compile(r"seg-(\d{20})-(\d{20})\.arrow", re.ASCII)
_LOW: Final = re.compile(r"low-(\d{20})", re.ASCII)
_VERSION: Final = 2
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_REST: Final = 1.0
"""Seconds until a disk that was full may have room again, though nothing was deleted here."""


class SpoolError(AmqpError):
    """The spool cannot be used: it is another's, damaged, or not the one that a checkpoint means."""


class SpoolFullError(SpoolError):
    """The disk has no room for a segment. Nothing has changed, and it may be written later."""


class Segment(NamedTuple):
    """Rows ``first`` to ``end - 1``, in one file of ``size`` octets."""

    first: int
    end: int
    size: int

    @property
    def name(self) -> str:
        """Of the file."""
        return f"seg-{self.first:020d}-{self.end:020d}.arrow"


class Slice(NamedTuple):
    """Part of a segment: rows ``start`` to ``stop - 1``, counted from the first in the file.

    Attributes:
        source: the path of the file, or all that it holds.
        first: the number of the row that the segment begins with.
    """

    source: str | bytes
    start: int
    stop: int
    first: int


class Spool:
    """A folder of segments; one process at a time may have it open.

    Args:
        folder: is made if it is not there.
        max_bytes: octets not consumed from which on it is ``full``; None for never.
        keep: consumed rows that are not deleted yet, at least.
        patience: seconds to wait for another process to let go of it.

    Attributes:
        id: which spool this is.
        low: rows below are consumed.
        end: the number of rows that were ever written.
        where: the folder, for people.

    Raises:
        SpoolError: another process has it, or it is damaged.
        OSError: the folder cannot be used.
    """

    figures_interval: Final = 1.0
    """Seconds between two calls of ``show_figures`` that are worth it."""

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
        lock = open(self._folder / "lock", "ab")  # noqa: SIM115 - held open for as long as the spool is
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= deadline:
                    lock.close()
                    raise SpoolError(
                        f"the spool {self._folder} is in use by another query or process: each needs one of its own"
                    ) from None
                time.sleep(0.05)
            else:
                return lock

    def _identify(self) -> tuple[str, int]:
        """Which spool it is, and of which version; 0 for one that is new."""
        file = self._folder / "spool.json"
        if not file.exists():
            if any(self._folder.glob("seg-*")):
                raise SpoolError(f"{self._folder} has segments, and no spool.json to say which spool it is")
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
        self.note("spool.json", json.dumps({"spool": name, "version": _VERSION}))

    def _read_low(self, version: int) -> int:
        """The number of consumed rows: of two that a crash has left, the larger one."""
        named = {int(match[1]) for path in self._folder.iterdir() if (match := _LOW.fullmatch(path.name))}
        found = set(named)
        noted = self.noted("low")
        if noted is not None and version < _VERSION:
            try:
                found.add(int(noted))
            except ValueError:
                raise SpoolError(
                    f"{self._folder / 'low'} is damaged: it holds the number of rows that are consumed"
                ) from None
        if not found and version == _VERSION:
            raise SpoolError(f"{self._folder} has no file low-..., which says how many rows are consumed")
        low = max(found, default=0)
        if low not in named:
            self._low_file(low).touch()
            self._flush_folder()
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
        """Add a segment of so many rows; once this returns, it survives a crash.

        Args:
            rows: at least one.
            fill: writes the segment to the file that it is given.

        Raises:
            SpoolFullError: the disk has no room for it; nothing has changed.
            OSError: it could not be written; whether it is there is known when the spool is opened again.
        """
        first, end = self.end, self.end + rows
        tmp = self._folder / f"tmp-{first:020d}"
        passing("unwritten")
        with self._writing(tmp) as file:
            fill(file)
            file.flush()
            passing("written")
        segment = Segment(first, end, tmp.stat().st_size)
        tmp.rename(self._folder / segment.name)
        self._flush_folder()
        with self._guard:
            self._segments.append(segment)
            self._size += segment.size
            self.end = end

    @contextmanager
    def _writing(self, tmp: Path) -> Generator[BinaryIO]:
        """A new file, which is on the disk when the block is over; or gone, if it fails."""
        try:
            with open(tmp, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except OSError as wrong:
            tmp.unlink(missing_ok=True)
            if wrong.errno not in _NO_ROOM:
                raise
            self._rested = time.monotonic() + _REST
            raise SpoolFullError(f"the disk of the spool {self._folder} is full: {wrong}") from wrong
        except BaseException:
            tmp.unlink(missing_ok=True)
            raise
        self._rested = 0.0

    def noted(self, name: str) -> str | None:
        """What a small file says; None where there is none."""
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def note(self, name: str, text: str) -> None:
        """Write a small file, or what it says now: whole, or not at all.

        Raises:
            SpoolFullError: the disk has no room for it; nothing has changed.
            OSError: it could not be written.
        """
        tmp = self._folder / f"tmp-{name}"
        with self._writing(tmp) as file:
            file.write(text.encode())
        tmp.rename(self._folder / name)
        self._flush_folder()

    def show_figures(self, name: str, text: str) -> None:
        """Write a file that nobody depends on.

        Raises:
            OSError: it could not be written.
        """
        tmp = self._folder / f"tmp-{name}"
        try:
            tmp.write_text(text, encoding="utf-8")
            tmp.replace(self._folder / name)
        except OSError:
            tmp.unlink(missing_ok=True)  # the disk is full, say
            raise

    def _flush_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @property
    def full(self) -> bool:
        """Whether no more should be taken in: by ``max_bytes``, or because the disk had no room a moment ago."""
        if time.monotonic() < self._rested:
            return True
        return self._max_bytes is not None and self._size >= self._max_bytes

    @property
    def size(self) -> int:
        """Octets of the segments that are not consumed."""
        return self._size

    @property
    def waiting_since(self) -> float | None:
        """When the oldest row that is not consumed was written, in seconds since 1970; None if all are consumed."""
        with self._guard:
            oldest = next((each for each in self._segments if each.end > self.low), None)
        try:
            return None if oldest is None else (self._folder / oldest.name).stat().st_mtime
        except FileNotFoundError:
            return None

    @property
    def segments(self) -> list[Path]:
        """The files, oldest first, those that are only kept for their ids among them."""
        with self._guard:
            return [self._folder / each.name for each in self._segments]

    # -- planning ---------------------------------------------------------------------------

    def check(self, name: object, row: object) -> int:
        """Whether an offset is one of this spool, and still there; the number of its row.

        Raises:
            SpoolError: it is not.
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
        """Where rows ``start`` to ``stop - 1`` are.

        Raises:
            SpoolError: some are not there any more.
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

    def kept(self, row: int, rows: int) -> list[Slice]:
        """Where the last rows before ``row`` are, at most so many: those that are there still."""
        with self._guard:
            first = self._segments[0].first if self._segments else row
        return self.slices(min(row, max(first, row - rows)), row)

    def fitting(self, start: int, octets: int) -> int:
        """The row up to which those from ``start`` on take about so many octets; at least one row, if there is one."""
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
        """Rows below ``row`` are consumed: delete what is not kept.

        A row that is consumed already, or not there yet, changes nothing.
        """
        with self._guard:
            if not self.low < row <= self.end:
                return
            self._low_file(self.low).rename(self._low_file(row))
            self._flush_folder()
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
        """Let another process have it."""
        self._lock.close()
