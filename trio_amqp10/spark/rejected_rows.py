"""The rows of a task that were not accepted.

They are counted, and with ``onReject=deadletter-path`` written to Parquet files. A file has the columns of the rows, ``reject_condition`` (the condition of the peer, or null) and ``reject_reason``. Its name is that
of the task and a number, so that an attempt that repeats the task replaces the files of the one before.

Knows Arrow batches and stores; knows neither messages nor links.
"""

from __future__ import annotations

import logging
from io import BytesIO
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import pyarrow as pa

from .spool import SpoolError
from .storage import open_store

if TYPE_CHECKING:
    from .options import SinkOptions

_log = logging.getLogger("trio_amqp10.spark")

_MOST: Final = 10_000
"""Rows in one file."""
_ADDED: Final = (("reject_condition", pa.string()), ("reject_reason", pa.string()))


class RejectedRows:
    """The rows of one task that were not accepted.

    Args:
        options: of the sink.
        task: the name of the task, the same one in each attempt.
    """

    def __init__(self, options: SinkOptions, task: str) -> None:
        self.count: int = 0
        self._store = None if options.deadletter_path is None else open_store(options.deadletter_path)
        self._task = task
        self._first = ""
        self._rows: list[pa.RecordBatch] = []
        self._files = 0

    def add(self, row: pa.RecordBatch | None, condition: str | None, reason: str) -> None:
        """Note a row, as a batch of one, and why it was not accepted."""
        self.count += 1
        self._first = self._first or reason
        if self._store is not None and row is not None:
            # A copy, because a slice keeps its whole batch; and a row that is sent again may have our columns.
            row = row.take(pa.array([0], pa.int64())).drop_columns(
                [name for name, _ in _ADDED if name in row.schema.names]
            )
            for (name, kind), value in zip(_ADDED, (condition, reason), strict=True):
                row = row.append_column(name, pa.array([value], kind))
            self._rows.append(row)

    @property
    def is_full(self) -> bool:
        """Whether so many rows wait that they should be written."""
        return len(self._rows) >= _MOST

    def write(self) -> None:
        """Write the rows that wait.

        Raises:
            SpoolError: they cannot be written.
        """
        if self._store is None or not self._rows:
            return
        from pyarrow.parquet import write_table

        octets = BytesIO()
        write_table(pa.Table.from_batches(self._rows), octets)
        try:
            self._store.put(self._name(self._files), octets.getvalue())
        except OSError as wrong:  # as it is, it would count as the loss of a connection
            raise SpoolError(
                f"the rows that were not accepted cannot be written to {self._store.where}: {wrong}"
            ) from wrong
        self._files += 1
        self._rows = []

    def close(self) -> None:
        """Write the rows that wait, and log how many rows there were.

        Further files of an earlier attempt are deleted.

        Raises:
            SpoolError: they cannot be written.
            OSError: files of an earlier attempt cannot be deleted.
        """
        self.write()
        store = self._store
        if store is not None:
            while store.get(self._name(self._files)) is not None:
                store.delete(self._name(self._files))
                self._files += 1
        if self.count:
            fate = "are dropped" if store is None else f"are in {store.where}"
            _log.warning(
                "%d rows of task %s were not accepted and %s; the first: %s",
                self.count,
                self._task,
                fate,
                self._first,
            )

    def _name(self, number: int) -> str:
        return f"{quote(self._task, safe='')}-{number}.parquet"
