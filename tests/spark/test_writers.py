"""Tasks of a write: what each is called, and the numbers of its rows from batch to batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import trio
from pyspark import TaskContext

from trio_amqp10.spark import writers
from trio_amqp10.spark.options import OptionError, SinkOptions
from trio_amqp10.spark.sink_delivery import TaskName
from trio_amqp10.spark.writers import BatchWriter, StreamWriter, _encoded_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

PEER = {"url": "amqp://h", "address": "q"}


class Task:
    """The context of a task, as Spark gives it."""

    def __init__(self, **properties: str) -> None:
        self.properties = {name.replace("_", "."): value for name, value in properties.items()}

    def getLocalProperty(self, name: str) -> str | None:
        return self.properties.get(name)

    def partitionId(self) -> int:
        return 3


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The names of the tasks that send, in place of sending."""
    found: list[Any] = []
    monkeypatch.setattr(writers, "run_in_pool", lambda _send, _options, _batches, name: found.append(name))
    return found


def within(monkeypatch: pytest.MonkeyPatch, **properties: str) -> None:
    monkeypatch.setattr(TaskContext, "get", lambda: Task(**properties))


def options(**given: str) -> SinkOptions:
    return SinkOptions.parse(PEER | {name.replace("_", "."): value for name, value in given.items()})


def batches() -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"body": [b"a", b"b"]})
    yield pa.RecordBatch.from_pydict({"body": pa.array([], pa.binary())})
    yield pa.RecordBatch.from_pydict({"body": [b"c"]})


def test_rows_are_numbered_on_from_batch_to_batch() -> None:
    async def ids(name: TaskName) -> list[Any]:
        return [
            each.message_id
            async for batch in _encoded_batches(options(), batches(), name)
            for each in batch.messages
        ]

    name = TaskName("query", 7, 3)
    assert trio.run(ids, name) == [f"{name}-{number}" for number in range(3)]


def test_task_of_a_stream_is_named_after_query_batch_and_partition(
    monkeypatch: pytest.MonkeyPatch, names: list[Any]
) -> None:
    within(monkeypatch, sql_streaming_queryId="query", streaming_sql_batchId="7")
    sent = StreamWriter(options()).write(batches())
    assert (sent.partition, names) == (3, [TaskName("query", 7, 3)])


def test_ledger_needs_the_number_of_the_batch(monkeypatch: pytest.MonkeyPatch, names: list[Any]) -> None:
    within(monkeypatch)
    StreamWriter(options()).write(batches())
    assert names == [None]
    with pytest.raises(OptionError, match="'transactions' = 'task'"):
        StreamWriter(options(transactions="ledger", ledger="l")).write(batches())


def test_attempts_of_a_batch_have_one_name_and_two_batches_have_not(
    monkeypatch: pytest.MonkeyPatch, names: list[Any]
) -> None:
    within(monkeypatch)
    first, second = BatchWriter(options()), BatchWriter(options())
    for writer in (first, first, second):
        writer.write(batches())
    assert names[0] == names[1] != names[2]


def test_write_that_is_named_has_that_name_in_every_run(
    monkeypatch: pytest.MonkeyPatch, names: list[Any]
) -> None:
    within(monkeypatch)
    named = options(txn_app="job", txn_version="5")
    for _ in range(2):
        BatchWriter(named).write(batches())
    assert names == [TaskName("job@q", 5, 3, replayed=True)] * 2
    with pytest.raises(OptionError, match="within foreachBatch"):
        StreamWriter(named)
