"""The readers of logs that Spark calls, as a stream and as a batch.

Offsets are computed on the driver, and messages are read in the executors. As for all stream readers, one object lives on
the driver and a copy in each executor, so ``__init__`` does nothing (see ``readers``). Reading a log removes no
message, so there is nothing to commit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from .batch_linger import NO_LIMIT, BatchLinger
from .connection_pool import run_in_pool
from .log_dialects import hub_of
from .log_offsets import DataLossError, beginnings, next_offsets, ranges
from .offset_reader import find_at_moments, find_ends, find_starts, read
from .options import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from .options import LogOptions, Moment

_log = logging.getLogger("trio_amqp10.spark")


class LogPartition(InputPartition):
    """The messages between two numbers of a log."""

    def __init__(self, log: str, start: int, stop: int) -> None:
        super().__init__(None)
        self.log = log
        self.start = start
        self.stop = stop


def _places(
    options: LogOptions,
    logs: Iterable[str],
    place_of: Callable[[str], str | int | Moment],
    ends: Mapping[str, int],
) -> dict[str, int]:
    return beginnings(
        logs,
        place_of,
        lambda: run_in_pool(find_starts, options),
        ends,
        lambda moments: run_in_pool(find_at_moments, options, moments),
    )


def _check_names(given: str | int | Mapping[str, int] | None, ends: Mapping[str, int], option: str) -> None:
    unknown = sorted(set(given) - set(ends)) if isinstance(given, Mapping) else []
    if unknown:
        raise OptionError(
            f"option {option!r} names {', '.join(unknown)}, and the logs are only {', '.join(ends)}"
        )


_NOTHING: Final = LogPartition("", 0, 0)
"""The partition of a batch without rows.

Without any partition, Spark would call ``read`` with one of its own.
"""


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads logs as a stream; an offset is the number of the next message of each log."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._target: dict[str, int] | None = None
        self._ends: dict[str, int] = {}
        self._linger = BatchLinger(options.max_trigger_delay, 0.0)

    # -- on the driver ----------------------------------------------------------------------

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        """Return the beginning that the options name."""
        ends = run_in_pool(find_ends, self._options)
        _check_names(self._options.starting_offsets, ends, "startingOffsets")
        return _places(self._options, ends, self._options.start_of, ends)

    def _begin(self, start: dict[str, int], logs: list[str]) -> dict[str, int]:
        """Return where to begin logs that are not in the checkpoint, or were replaced."""

        def start_of(log: str) -> str | int | Moment:
            """Return the option for a log; a new partition of a known hub is read whole."""
            hub = hub_of(log)
            known = log in start or (hub is not None and any(hub_of(each) == hub for each in start))
            return "earliest" if known else self._options.start_of(log)

        return _places(self._options, logs, start_of, self._ends)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """End this run at the present ends of the logs."""
        self._target = run_in_pool(find_ends, self._options)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of ``maxRowsPerTrigger``, or one that no batch reaches.

        Spark asks for all rows, without a limit, for ``trigger(once=True)`` alone.
        """
        rows = self._options.max_rows
        return ReadMaxRows(NO_LIMIT if rows is None else rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Return the end of the next batch."""
        self._ends = self._target or run_in_pool(find_ends, self._options)
        chosen = next_offsets(
            start,
            self._ends,
            lambda logs: self._begin(start, logs),
            most=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )
        rows = sum(stop - first for _, first, stop in ranges(start, chosen, 1))
        if self._target is not None or isinstance(limit, ReadAllAvailable):
            return chosen  # there is nothing to wait for
        if not rows or chosen.keys() != start.keys():
            return chosen  # a new log joins at once: it may begin at its end, which moves on
        least = max(self._options.min_rows or 0, limit.min_rows if isinstance(limit, ReadMinRows) else 0)
        if isinstance(limit, ReadMaxRows):
            least = min(least, limit.max_rows)
        over = self._linger.is_over(rows, least, time.monotonic(), pressed=False)
        return chosen if over else start

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """Return the ends of the logs, for the query's metrics."""
        return self._ends

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the ranges of a batch, about ``minPartitions`` of them.

        A log that joins has no rows in its first batch. Only a batch that an older version has journaled may have
        rows of a new log; it begins where that version began.
        """
        joining = [log for log in end if log not in start]
        if joining:
            self._ends = run_in_pool(find_ends, self._options)
            here = [log for log in joining if log in self._ends]
            start = start | self._begin(start, here)
        return [LogPartition(*each) for each in ranges(start, end, self._options.min_partitions)]

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing: the peer keeps its messages."""

    def stop(self) -> None:
        """Do nothing: no task runs between calls."""

    # -- in an executor ---------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition; the same ones in each attempt."""
        assert isinstance(partition, LogPartition)
        return read(self._options, partition.log, partition.start, partition.stop)


class LogBatchReader(DataSourceReader):
    """Reads a range of each log, which is computed when an action runs."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges between the beginning and the end that the options name.

        Raises:
            OptionError: an option names a log that does not exist.
            DataLossError: a log ends before the wanted end, and ``failOnDataLoss`` is set.
        """
        options = self._options
        ends = run_in_pool(find_ends, options)
        _check_names(options.starting_offsets, ends, "startingOffsets")
        _check_names(options.ending_offsets, ends, "endingOffsets")
        first = _places(options, ends, options.start_of, ends)
        last = _places(options, ends, options.end_of, ends)
        short = [log for log, stop in last.items() if stop > ends[log]]
        if short:
            lack = f"{short[0]!r} ends with {ends[short[0]]}, and option 'endingOffsets' is {last[short[0]]}"
            if options.fail_on_data_loss:
                raise DataLossError(f"{lack}: with option 'failOnDataLoss' = 'false' it is read to its end")
            _log.warning("%s: it is read to its end", lack)
        last = {log: min(stop, ends[log]) for log, stop in last.items()}
        found = ranges(first, last, options.min_partitions)
        return [LogPartition(*each) for each in found] or [_NOTHING]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition; the same ones in each attempt."""
        assert isinstance(partition, LogPartition)
        if partition.start == partition.stop:
            return iter(())
        return read(self._options, partition.log, partition.start, partition.stop)
