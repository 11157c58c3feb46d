"""The writers that Spark calls: each row is a message, each task returns a report.

A task gets its query and batch from local properties of its context, which are not documented:
a test checks them. Nothing is kept between batches, because Spark makes a writer for each.

Knows Arrow batches and tasks of Spark; ``sink_delivery`` sends the messages.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import trio
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from .connection_pool import run_in_pool
from .message_encoder import OutgoingBatch, encode_batch
from .options import OptionError, SinkOptions
from .sink_delivery import Report, TaskName, send_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import pyarrow as pa

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"


@dataclass
class Sent(WriterCommitMessage):
    """The result of a task.

    Attributes:
        partition: the number of the partition that the task wrote.
        report: the outcomes of its messages.
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
            "this version of Spark does not give a task the number of its batch, which 'transactions' = 'ledger' needs: "
            "use 'transactions' = 'task'"
        )
    name = None
    if job is not None:
        name = TaskName(*job, partition, replayed=options.txn_app is not None)
    elif known:
        name = TaskName(str(query), int(batch or 0), partition)
    return Sent(partition, run_in_pool(_send, options, batches, name))


async def _send(options: SinkOptions, batches: Iterator[pa.RecordBatch], name: TaskName | None) -> Report:
    return await send_all(_encoded_batches(options, batches, name), options, name or TaskName("", 0, 0))


async def _encoded_batches(
    options: SinkOptions, batches: Iterator[pa.RecordBatch], name: TaskName | None
) -> AsyncIterator[OutgoingBatch]:
    """Iterate over the messages of a task, batch by batch.

    A message without a message-id gets one, the same one in each attempt.
    """
    first = 0

    def following() -> OutgoingBatch | None:
        batch = next(batches, None)
        if batch is None:
            return None
        return encode_batch(batch, options, name=None if name is None else str(name), first=first)

    # The rows may take long to compute, and the connection must be served meanwhile.
    while (each := await trio.to_thread.run_sync(following)) is not None:
        yield each
        first += len(each.messages) + len(each.unfit)


class StreamWriter(DataSourceStreamArrowWriter):
    """Sends each batch; a task returns when all its messages have an outcome."""

    def __init__(self, options: SinkOptions) -> None:
        if options.txn_app is not None:
            raise OptionError(
                "options 'txn.app' and 'txn.version' are for writes within foreachBatch: a stream is identified by its query and batch"
            )
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send a partition; called in its task."""
        return _write(self._options, iterator, None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: all messages have an outcome already."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: sent messages cannot be taken back."""


class BatchWriter(DataSourceArrowWriter):
    """Sends one batch; a task returns when all its messages have an outcome."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        # Made on the driver, so all attempts of a task have the same name; later runs too, if the options name the write.
        self._job = str(uuid.uuid4()), 0
        if options.txn_app is not None and options.txn_version is not None:
            self._job = f"{options.txn_app}@{options.address or ''}", options.txn_version

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send a partition; called in its task."""
        return _write(self._options, iterator, self._job)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: all messages have an outcome already."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: sent messages cannot be taken back."""
