"""The writers that Spark calls: each row a message, each task a report.

A task learns its query and batch from local properties of its context, which no documentation names:
a test holds them. Nothing is kept between batches, for Spark makes a writer for each.

Knows batches of Arrow and tasks of Spark; AMQP is behind ``sink_delivery``.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import trio
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from .connection_pool import run_in_pool
from .failure_points import passing
from .message_encoder import OutgoingBatch, encode_batch
from .options import OptionError, SinkOptions
from .sink_delivery import Report, TaskName, send_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import pyarrow as pa

__all__ = ["BatchWriter", "Sent", "StreamWriter"]

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"


@dataclass
class Sent(WriterCommitMessage):
    """What a task has done.

    Attributes:
        partition: that it wrote.
        report: of its messages.
    """

    partition: int
    report: Report


def _write(options: SinkOptions, batches: Iterator[pa.RecordBatch], job: tuple[str, int] | None) -> Sent:
    context = TaskContext.get()
    assert context is not None
    query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
    partition = context.partitionId()
    known = job is not None or (query is not None and batch is not None)
    if not known and options.transactions == "ledger":
        raise OptionError(
            "this Spark does not tell a task its batch, so no ledger can: use transactions=task"
        )
    name = None
    if job is not None:
        name = TaskName(*job, partition, replayed=options.txn_app is not None)
    elif known:
        name = TaskName(str(query), int(batch or 0), partition)
    return Sent(partition, run_in_pool(_send, options, batches, name))


async def _send(options: SinkOptions, batches: Iterator[pa.RecordBatch], name: TaskName | None) -> Report:
    return await send_all(_parcels(options, batches, name), options, name or TaskName("", 0, 0))


async def _parcels(
    options: SinkOptions, batches: Iterator[pa.RecordBatch], name: TaskName | None
) -> AsyncIterator[OutgoingBatch]:
    """The messages of a task, with an id of their own where they have none: the same one in each attempt."""
    first = 0

    def following() -> OutgoingBatch | None:
        batch = next(batches, None)
        if batch is None:
            return None
        return encode_batch(batch, options, name=None if name is None else str(name), first=first)

    # Upstream may take its time, and the connection has to live meanwhile.
    while (each := await trio.to_thread.run_sync(following)) is not None:
        yield each
        first += len(each.messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """Sends each batch; a task returns when all of its messages have an outcome."""

    def __init__(self, options: SinkOptions) -> None:
        if options.txn_app is not None:
            raise OptionError(
                "options 'txn.app' and 'txn.version' are for writes within foreachBatch: a stream has its query and its batch"
            )
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send a partition."""
        return _write(self._options, iterator, None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """All of it is with the peer already."""
        passing("committed")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing can be taken back."""


class BatchWriter(DataSourceArrowWriter):
    """Sends once; a task returns when all of its messages have an outcome."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        # Made on the driver, and so the same for all attempts of a task; and in each run, if the options name the write.
        self._job = str(uuid.uuid4()), 0
        if options.txn_app is not None and options.txn_version is not None:
            self._job = f"{options.txn_app}@{options.address or ''}", options.txn_version

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send a partition."""
        return _write(self._options, iterator, self._job)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All of it is with the peer already."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing can be taken back."""
