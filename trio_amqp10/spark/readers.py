"""The readers of a queue that Spark calls: one for streams, and one for browsing.

Facts about PySpark 4.2 and 4.3 that are not documented, and that tests check:

- There are two stream readers: one on the driver, for the life of the query, whose methods are called one at a
  time in a main thread; and one that is pickled to executors, for ``read`` only. So ``__init__`` does nothing.
- ``commit(end)`` is called when the next batch has data, never while idle, and never for the last batch.
- A journaled batch is planned again before any other call, so ``partitions`` opens the spool too.
- ``query.stop()`` does not call ``stop()``: the process gets SIGTERM.

Knows the backlog, not the spools, lanes and links behind it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from .backlog import Backlog
from .batch_linger import NO_LIMIT, BatchLinger
from .browse import browse
from .segments import SegmentReader, inlined
from .spool import Slice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from .options import BrowseOptions, QueueOptions

_MOST_ROWS: Final = 100_000
"""The most rows of a task."""
_ROWS_OF_A_TASK: Final = 10_000
_OCTETS_OF_A_TASK: Final = 8 * 2**20
"""The rows or octets that are worth a task.

With fewer, the start of a task takes as long as their decoding.
"""
_MOST_TASKS: Final = 64
"""The most tasks of a batch without ``minPartitions``.

There are more if a task would have more than ``_MOST_ROWS``.
"""
_INLINE_BYTES: Final = 64 * 2**20
"""The most octets of a batch that travels inside its partitions."""


class SpoolPartition(InputPartition):
    """Rows of segments, which the executor opens or the partition contains."""

    def __init__(self, slices: list[Slice]) -> None:
        super().__init__(None)
        self.slices = slices


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Receives from a queue into the spool, and reads batches from the spool."""

    def __init__(self, options: QueueOptions) -> None:
        self._options = options
        self._available_now = False
        self._linger = BatchLinger(options.max_trigger_delay, options.backlog_delay)
        self._opened: Backlog | None = None

    # -- on the driver ----------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        """Return the beginning of the first batch: the first unconsumed row."""
        backlog = self._backlog()
        return backlog.offset(backlog.low())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """End this run when all messages that are in the queue now are consumed."""
        self._available_now = True

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of ``maxRowsPerTrigger``, or one that no batch reaches.

        Spark takes one limit; ``latestOffset`` applies all that are set. It asks for all rows, without a limit, for
        ``trigger(once=True)`` alone.
        """
        rows = self._options.max_rows
        return ReadMaxRows(NO_LIMIT if rows is None else rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next batch."""
        if isinstance(limit, ReadAllAvailable):
            self._available_now = True
        backlog = self._receiving()
        at = backlog.position(start)
        backlog.check()
        if backlog.full:
            # All rows before ``start`` are consumed. Spark commits them only with the next batch,
            # which would never come if the spool stayed full.
            backlog.release(at)
        most, octets, least = self._limits(limit)
        if self._available_now:
            backlog.freeze()
            backlog.wait(at, most)
            backlog.check()
        if self._available_now or backlog.is_resting(at):
            least = 0
        end = backlog.end(at)
        rows = backlog.rows(at, end)
        pressed = backlog.pressed and not (
            self._available_now or backlog.is_resting(at) or (most is not None and rows >= most)
        )
        if not self._linger.is_over(rows, least, time.monotonic(), pressed=pressed):
            return backlog.offset(at)
        return backlog.offset(backlog.cut(at, end, most, octets))

    def _limits(self, limit: ReadLimit) -> tuple[int | None, int | None, int]:
        """Return the most rows, most octets and least rows, by all limits."""
        most, octets = self._options.max_rows, self._options.max_bytes
        least = self._options.min_rows or 0
        if isinstance(limit, ReadAllAvailable):
            most = octets = None
        if self._options.spool_transport == "inline":
            octets = _INLINE_BYTES if octets is None else min(octets, _INLINE_BYTES)
        if isinstance(limit, ReadMaxRows):
            most = limit.max_rows if most is None else min(most, limit.max_rows)
        elif isinstance(limit, ReadMaxBytes):
            octets = limit.max_bytes if octets is None else min(octets, limit.max_bytes)
        elif isinstance(limit, ReadMinRows):
            least = max(least, limit.min_rows)
        return most, octets, least

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the end of the received rows, for the query's metrics."""
        backlog = self._backlog()
        return backlog.offset(backlog.end(backlog.low()))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return where the rows of a batch are, in a group for each task.

        There are about ``minPartitions`` groups, or as many as the rows and octets are worth. A Python source does not know how
        many cores there are; tasks that find no core wait.
        """
        backlog = self._backlog()
        first, last = backlog.position(start), backlog.position(end)
        slices = backlog.slices(first, last)
        least = self._options.min_partitions
        if least is None:
            least = _tasks(sum(each.stop - each.start for each in slices), backlog.octets(first, last))
        groups = _grouped(slices, least)
        if self._options.spool_transport == "inline":
            groups = [list(map(inlined, group)) for group in groups]
        return [SpoolPartition(group) for group in groups]

    def commit(self, end: dict[str, Any]) -> None:
        """Note that rows before ``end`` are consumed, and need not be kept."""
        backlog = self._backlog()
        backlog.release(backlog.position(end))

    def stop(self) -> None:
        """Stop receiving, because the query has failed or the driver has ended."""
        backlog, self._opened = self._opened, None
        if backlog is not None:
            backlog.close()

    def _backlog(self) -> Backlog:
        if self._opened is None:
            self._opened = Backlog(self._options)
            self._stop_on_sigterm()
        return self._opened

    def _receiving(self) -> Backlog:
        backlog = self._backlog()
        backlog.receive(emptying=self._available_now)
        return backlog

    def _stop_on_sigterm(self) -> None:
        """Settle and detach on SIGTERM, with which Spark ends a query, and then end."""
        if threading.current_thread() is not threading.main_thread():
            return

        def on_sigterm(_number: int, _frame: object) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.stop()
            os.kill(os.getpid(), signal.SIGTERM)

        signal.signal(signal.SIGTERM, on_sigterm)

    # -- in an executor ---------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition; the same ones in each attempt."""
        assert isinstance(partition, SpoolPartition)
        return SegmentReader(self._options).read(partition.slices)


def _tasks(rows: int, octets: float) -> int:
    """Return how many tasks these rows are worth."""
    return max(1, min(_MOST_TASKS, max(rows // _ROWS_OF_A_TASK, int(octets) // _OCTETS_OF_A_TASK)))


def _grouped(slices: list[Slice], least: int) -> list[list[Slice]]:
    """Return about ``least`` groups of neighbouring rows; long slices are cut."""
    rows = sum(each.stop - each.start for each in slices)
    size = max(1, min(_MOST_ROWS, -(-rows // least)))
    groups: list[list[Slice]] = []
    room = 0
    for source, start, stop, first in slices:
        at = start
        while at < stop:
            if not room:
                groups.append([])
                room = size
            taken = min(room, stop - at)
            groups[-1].append(Slice(source, at, at + taken, first))
            at += taken
            room -= taken
    return groups


# Batches from a queue -----------------------------------------------------------------------------


class BrowseReader(DataSourceReader):
    """Browses a queue, in one task, each time that an action runs."""

    def __init__(self, options: BrowseOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition: two browsers would read the same messages."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Return copies of the messages that are in the queue now."""
        return browse(self._options)
