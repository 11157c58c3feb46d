"""The reader of Spark for a log: offsets here, messages in the executors.

As for all stream readers, one lives on the driver and a copy of it in each executor, and nothing happens
in ``__init__`` (see ``readers``). There is nothing to commit, for nothing is taken away, and nothing to stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from .connection_pool import run_in_pool
from .log_dialects import hub_of
from .log_offsets import beginnings, next_offsets, ranges
from .offset_reader import find_ends, find_starts, read
from .options import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from .options import LogOptions

__all__ = ["LogReader"]


class LogPartition(InputPartition):
    """What is between two numbers of a log."""

    def __init__(self, log: str, start: int, stop: int) -> None:
        super().__init__(None)
        self.log = log
        self.start = start
        self.stop = stop


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are the number that comes next, for each log."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._target: dict[str, int] | None = None
        self._ends: dict[str, int] = {}

    # -- on the driver ----------------------------------------------------------------------

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        """Where ``startingOffsets`` says."""
        options = self._options
        ends = run_in_pool(find_ends, options)
        given = options.starting_offsets
        unknown = sorted(set(given) - set(ends)) if isinstance(given, Mapping) else []
        if unknown:
            raise OptionError(
                f"option 'startingOffsets' speaks of {', '.join(unknown)}, and there is only {', '.join(ends)}"
            )
        return beginnings(ends, options.first_of, self._starts, ends)

    def _starts(self) -> dict[str, int]:
        return run_in_pool(find_starts, self._options)

    def _begin(self, start: dict[str, int], logs: list[str]) -> dict[str, int]:
        """Where logs begin that are not in the checkpoint, or are others of that name."""

        def first_of(log: str) -> str | int:
            """A partition that a hub has got meanwhile was never skipped on purpose."""
            hub = hub_of(log)
            known = log in start or (hub is not None and any(hub_of(each) == hub for each in start))
            return "earliest" if known else self._options.first_of(log)

        return beginnings(logs, first_of, self._starts, self._ends)

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
        return next_offsets(
            start,
            self._ends,
            lambda logs: self._begin(start, logs),
            most=limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )

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
