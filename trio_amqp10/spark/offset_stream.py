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
from .offset_reader import DataLossError, find_ends, find_starts, read
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
        wanted = {log: options.first_of(log) for log in ends}
        starts = run_in_pool(find_starts, options) if "earliest" in wanted.values() else {}
        return {
            log: starts[log] if where == "earliest" else ends[log] if where == "latest" else int(where)
            for log, where in wanted.items()
        }

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """This run reads what is there, and ends."""
        self._target = run_in_pool(find_ends, self._options)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As ``maxRowsPerTrigger`` says."""
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """How far the next batch goes: all logs by the same share of its rows, and who has less leaves more."""
        self._ends = self._target or run_in_pool(find_ends, self._options)
        at = {log: start.get(log, 0) for log in self._ends}
        for log, end in self._ends.items():
            if end < at[log]:
                raise DataLossError(
                    f"the checkpoint is at message {at[log]} of {log!r}, which ends with {end} now: it is another one "
                    "of that name, so begin with a new checkpoint"
                )
        if not isinstance(limit, ReadMaxRows):
            return dict(self._ends)
        left = limit.max_rows
        chosen: dict[str, int] = {}
        by_size = sorted(self._ends, key=lambda log: self._ends[log] - at[log])
        for place, log in enumerate(by_size):
            share = -(-left // (len(by_size) - place))
            chosen[log] = min(self._ends[log], at[log] + share)
            left -= chosen[log] - at[log]
        return {log: chosen[log] for log in self._ends}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """How far the logs go, for the query's metrics."""
        return self._ends

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The ranges, cut so that there are about as many as asked for."""
        ranges = [(log, start.get(log, 0), stop) for log, stop in end.items() if stop > start.get(log, 0)]
        rows = sum(stop - first for _, first, stop in ranges)
        size = max(1, -(-rows // self._options.min_partitions))
        return [
            LogPartition(log, at, min(at + size, stop))
            for log, first, stop in ranges
            for at in range(first, stop, size)
        ]

    def commit(self, end: dict[str, int]) -> None:
        """The peer keeps its messages."""

    def stop(self) -> None:
        """Nothing goes on."""

    # -- in an executor ---------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows; the same ones, however often."""
        assert isinstance(partition, LogPartition)
        return read(self._options, partition.log, partition.start, partition.stop)
