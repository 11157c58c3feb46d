"""The readers that Spark calls: a queue as a stream, and a queue to look at.

Measured on PySpark 4.2 and 4.3, and held by tests, because no documentation says so:

- A stream reader is made twice: one on the driver, for the life of the query, whose calls come one at a
  time on a main thread; and one that is pickled to executors, for ``read`` alone. So nothing happens in
  ``__init__``.
- ``commit(end)`` comes when the next batch has data, never while idle, never for the last batch.
- A journaled batch is planned again before anything else is called; so ``partitions`` opens the spool too.
- ``query.stop()`` does not call ``stop()``: the process gets SIGTERM.

Knows the backlog; spools, lanes and AMQP are behind it.
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
from .batch_linger import BatchLinger
from .browse import browse
from .failure_points import passing
from .segments import SegmentReader, inlined
from .spool import Slice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from .options import BrowseOptions, QueueOptions

__all__ = ["BrowseReader", "QueueStreamReader"]

_MOST_ROWS: Final = 100_000
"""Rows of a partition, at most, if segments are small enough."""
_INLINE_BYTES: Final = 64 * 2**20
"""What a batch may take where it travels inside its partitions."""


class SpoolPartition(InputPartition):
    """Rows of segments that the executor can open, or that travel with the plan."""

    def __init__(self, slices: list[Slice]) -> None:
        super().__init__(None)
        self.slices = slices


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Empties a queue into the spool, and gives Spark what is there."""

    def __init__(self, options: QueueOptions) -> None:
        self._options = options
        self._available_now = False
        self._linger = BatchLinger(options.max_trigger_delay, options.backlog_delay)
        self._opened: Backlog | None = None

    # -- on the driver ----------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        """What the first batch begins with: all that nobody has consumed."""
        backlog = self._receiving()
        return backlog.offset(backlog.low())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """This run takes what is there, and ends."""
        self._available_now = True

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Spark knows one limit at a time; all that are set are applied in ``latestOffset``."""
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """How far the next batch goes."""
        backlog = self._receiving()
        at = backlog.position(start)
        backlog.check()
        if backlog.full:
            # Spark asks from here because all before is done; and it commits that only with the next batch,
            # which would never come if the spool stayed full; nor would more rows, so few do not wait for them.
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
        end = backlog.cut(at, end, most, octets)
        passing("offset")
        return backlog.offset(end)

    def _limits(self, limit: ReadLimit) -> tuple[int | None, int | None, int]:
        """Rows and octets at most, rows at least: what Spark says, and the options."""
        most, octets = self._options.max_rows, self._options.max_bytes
        least = self._options.min_rows or 0
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
        """How far the spool goes, for the query's metrics."""
        backlog = self._backlog()
        return backlog.offset(backlog.end(backlog.low()))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Where the rows of a batch are."""
        backlog = self._backlog()
        first, last = backlog.position(start), backlog.position(end)
        passing("planned")
        groups = _grouped(backlog.slices(first, last), self._options.min_partitions)
        if self._options.spool_transport == "inline":
            groups = [list(map(inlined, group)) for group in groups]
        return [SpoolPartition(group) for group in groups]

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has consumed all before: it need not be kept."""
        backlog = self._backlog()
        backlog.release(backlog.position(end))

    def stop(self) -> None:
        """The query has failed, or the driver is gone."""
        backlog, self._opened = self._opened, None
        if backlog is not None:
            backlog.close()

    def _backlog(self) -> Backlog:
        if self._opened is None:
            self._opened = Backlog(self._options)
            self._heed_sigterm()
        return self._opened

    def _receiving(self) -> Backlog:
        backlog = self._backlog()
        backlog.receive(emptying=self._available_now)
        return backlog

    def _heed_sigterm(self) -> None:
        """That is how Spark ends a query: settle and detach, and then end as one does."""
        if threading.current_thread() is not threading.main_thread():
            return

        def on_sigterm(_number: int, _frame: object) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.stop()
            os.kill(os.getpid(), signal.SIGTERM)

        signal.signal(signal.SIGTERM, on_sigterm)

    # -- in an executor ---------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows, as the options want them now; the same ones, however often."""
        assert isinstance(partition, SpoolPartition)
        return SegmentReader(self._options).read(partition.slices)


def _grouped(slices: list[Slice], least: int) -> list[list[Slice]]:
    """About as many groups as asked for, of neighbours; a slice is cut where it is too long for that."""
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
    """Looks at a queue, in one task, each time an action runs."""

    def __init__(self, options: BrowseOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """One: two browsers would see the same messages."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Copies of what is there now."""
        return browse(self._options)
