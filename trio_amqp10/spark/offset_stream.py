"""The readers of Spark for logs, as a stream and as a batch: offsets here, messages in the executors.

As for all stream readers, one lives on the driver and a copy of it in each executor, and nothing happens
in ``__init__`` (see ``readers``). There is nothing to commit, for nothing is taken away, and nothing to stop.
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

from .batch_linger import BatchLinger
from .connection_pool import run_in_pool
from .log_dialects import hub_of
from .log_offsets import DataLossError, beginnings, next_offsets, ranges
from .offset_reader import find_at_moments, find_ends, find_starts, read
from .options import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from .options import LogOptions, Moment

__all__ = ["LogBatchReader", "LogReader"]

_log = logging.getLogger("trio_amqp10.spark")


class LogPartition(InputPartition):
    """What is between two numbers of a log."""

    def __init__(self, log: str, start: int, stop: int) -> None:
        super().__init__(None)
        self.log = log
        self.start = start
        self.stop = stop


def _places(
    options: LogOptions,
    logs: Iterable[str],
    first_of: Callable[[str], str | int | Moment],
    ends: Mapping[str, int],
) -> dict[str, int]:
    return beginnings(
        logs,
        first_of,
        lambda: run_in_pool(find_starts, options),
        ends,
        lambda moments: run_in_pool(find_at_moments, options, moments),
    )


def _check_names(given: str | int | Mapping[str, int] | None, ends: Mapping[str, int], option: str) -> None:
    unknown = sorted(set(given) - set(ends)) if isinstance(given, Mapping) else []
    if unknown:
        raise OptionError(
            f"option {option!r} speaks of {', '.join(unknown)}, and there is only {', '.join(ends)}"
        )


_NOTHING: Final = LogPartition("", 0, 0)
"""What a batch without rows is made of: for no partition at all, Spark calls ``read`` with one of its own."""


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are the number that comes next, for each log."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._target: dict[str, int] | None = None
        self._ends: dict[str, int] = {}
        self._linger = BatchLinger(options.max_trigger_delay, 0.0)

    # -- on the driver ----------------------------------------------------------------------

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        """Where ``startingOffsets`` says."""
        ends = run_in_pool(find_ends, self._options)
        _check_names(self._options.starting_offsets, ends, "startingOffsets")
        return _places(self._options, ends, self._options.first_of, ends)

    def _begin(self, start: dict[str, int], logs: list[str]) -> dict[str, int]:
        """Where logs begin that are not in the checkpoint, or are others of that name."""

        def first_of(log: str) -> str | int | Moment:
            """A partition that a hub has got meanwhile was never skipped on purpose."""
            hub = hub_of(log)
            known = log in start or (hub is not None and any(hub_of(each) == hub for each in start))
            return "earliest" if known else self._options.first_of(log)

        return _places(self._options, logs, first_of, self._ends)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """This run reads what is there, and ends."""
        self._target = run_in_pool(find_ends, self._options)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As ``maxRowsPerTrigger`` says."""
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """How far the next batch goes."""
        self._ends = self._target or run_in_pool(find_ends, self._options)
        chosen = next_offsets(
            start,
            self._ends,
            lambda logs: self._begin(start, logs),
            most=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )
        rows = sum(stop - first for _, first, stop in ranges(start, chosen, 1))
        if not rows or self._target is not None or chosen.keys() != start.keys():
            return chosen  # a log that joins does so at once: it may begin at its end, which moves on
        least = max(self._options.min_rows or 0, limit.min_rows if isinstance(limit, ReadMinRows) else 0)
        if isinstance(limit, ReadMaxRows):
            least = min(least, limit.max_rows)
        over = self._linger.is_over(rows, least, time.monotonic(), pressed=False)
        return chosen if over else start

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """How far the logs go, for the query's metrics."""
        return self._ends

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The ranges, cut so that there are about as many as asked for.

        A log that joins has none, by how offsets are chosen. A version before that gave a new log rows at once, and a
        batch that it has journaled is read as it meant it.
        """
        joining = [log for log in end if log not in start]
        if joining:
            self._ends = run_in_pool(find_ends, self._options)
            here = [log for log in joining if log in self._ends]
            start = start | self._begin(start, here)
        return [LogPartition(*each) for each in ranges(start, end, self._options.min_partitions)]

    def commit(self, end: dict[str, int]) -> None:
        """The peer keeps its messages."""

    def stop(self) -> None:
        """Nothing goes on."""

    # -- in an executor ---------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows; the same ones, however often."""
        assert isinstance(partition, LogPartition)
        return read(self._options, partition.log, partition.start, partition.stop)


class LogBatchReader(DataSourceReader):
    """A range of each log, as it is when an action runs."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """What is between the beginning and the end that the options say.

        Raises:
            OptionError: they speak of a log that there is not.
            DataLossError: a log ends before the number that is to be the end, and that is to be an error.
        """
        options = self._options
        ends = run_in_pool(find_ends, options)
        _check_names(options.starting_offsets, ends, "startingOffsets")
        _check_names(options.ending_offsets, ends, "endingOffsets")
        first = _places(options, ends, options.first_of, ends)
        last = _places(options, ends, options.end_of, ends)
        short = [log for log, stop in last.items() if stop > ends[log]]
        if short:
            lack = (
                f"{short[0]!r} ends with {ends[short[0]]}, and option 'endingOffsets' says {last[short[0]]}"
            )
            if options.fail_on_data_loss:
                raise DataLossError(f"{lack}: with option 'failOnDataLoss' = 'false' it is read to its end")
            _log.warning("%s: it is read to its end", lack)
        last = {log: min(stop, ends[log]) for log, stop in last.items()}
        found = ranges(first, last, options.min_partitions)
        return [LogPartition(*each) for each in found] or [_NOTHING]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows; the same ones, however often."""
        assert isinstance(partition, LogPartition)
        if partition.start == partition.stop:
            return iter(())
        return read(self._options, partition.log, partition.start, partition.stop)
