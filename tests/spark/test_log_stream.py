"""Streams from a log, with a real Spark, read everything once."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadMaxRows, ReadMinRows

from trio_amqp10.spark.offset_reader import DataLossError
from trio_amqp10.spark.offset_stream import LogBatchReader, LogReader
from trio_amqp10.spark.options import LogOptions, OptionError

from .desk import PATIENCE, until
from .peers import lacks

if TYPE_CHECKING:
    from pathlib import Path

    from .logs import LogServer
    from .peers import Logs


class Follower:
    """Logs to parquet."""

    def __init__(self, spark: Any, logs: Logs, folder: Path) -> None:
        self._spark = spark
        self._logs = logs
        self._folder = folder

    def start(
        self, *, now: bool = True, once: bool = False, addresses: str | None = None, **given: str
    ) -> Any:
        source = self._spark.readStream.format("amqp10")
        source = source.options(
            url=self._logs.url,
            addresses=addresses or self._logs.address("one"),
            mode="log",
            columns="address,seq,body",
            **given,
        )
        writer = source.load().writeStream.format("parquet").option("path", str(self._folder / "out"))
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        if once:
            return writer.trigger(once=True).start()
        return (
            writer.trigger(availableNow=True) if now else writer.trigger(processingTime="200 milliseconds")
        ).start()

    def run(self, *, once: bool = False, **given: str) -> list[int]:
        query = self.start(once=once, **given)
        assert query.awaitTermination(PATIENCE)
        return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]

    def found(self) -> list[tuple[str, int, bytes]]:
        rows = self._spark.read.parquet(str(self._folder / "out")).collect()
        return sorted((row.address, row.seq, bytes(row.body)) for row in rows)


@pytest.fixture
def follower(spark: Any, logs: Logs, tmp_path: Path) -> Follower:
    return Follower(spark, logs, tmp_path)


def numbered(log: str, start: int, stop: int) -> list[tuple[str, int, bytes]]:
    return [(log, number, b"%d" % number) for number in range(start, stop)]


def test_limited_batches_share_their_rows_among_logs(logs: Logs, follower: Follower) -> None:
    logs.fill("one", 250)
    logs.fill("two", 30)
    one, two = logs.address("one"), logs.address("two")
    given = {"addresses": f"{one},{two}", "maxRowsPerTrigger": "100", "minPartitions": "3"}
    assert follower.run(**given) == [100, 100, 80]
    logs.fill("two", 5)
    assert follower.run(**given) == [5]
    assert follower.found() == numbered(one, 0, 250) + numbered(two, 0, 35)


def test_once_takes_what_is_there_in_one_batch_however_few_rows_it_has(
    logs: Logs, follower: Follower
) -> None:
    logs.fill("one", 5)
    assert follower.run(once=True, minRowsPerTrigger="10") == [5]
    logs.fill("one", 5)
    assert follower.run(once=True, maxRowsPerTrigger="2") == [5]
    assert follower.found() == numbered(logs.address("one"), 0, 10)


def test_what_comes_is_followed_and_a_restart_goes_on(logs: Logs, follower: Follower) -> None:
    logs.fill("one", 10)
    query = follower.start(now=False, startingOffsets="latest")
    until(lambda: query.lastProgress is not None)
    logs.fill("one", 10)
    until(lambda: sum(each["numInputRows"] for each in query.recentProgress) == 10)
    query.stop()
    logs.fill("one", 10)
    assert follower.run(startingOffsets="latest") == [10]
    assert follower.found() == numbered(logs.address("one"), 10, 30)


def test_beginning_may_be_a_number_for_each_log(logs: Logs, follower: Follower) -> None:
    logs.fill("one", 10)
    logs.fill("two", 10)
    one, two = logs.address("one"), logs.address("two")
    follower.run(addresses=f"{one},{two}", startingOffsets=json.dumps({one: 7, two: 9}))
    assert follower.found() == numbered(one, 7, 10) + numbered(two, 9, 10)


@lacks("forgetting")
def test_loss_fails_the_query_and_says_what(log_server: LogServer, follower: Follower) -> None:
    log_server.fill("one", 10)
    follower.run()
    log_server.fill("one", 20)
    log_server.logs["one"].forget(15)
    query = follower.start()
    with pytest.raises(StreamingQueryException, match="messages 10 to 14 of 'one' are not all there"):
        query.awaitTermination(PATIENCE)
    assert follower.run(failOnDataLoss="false") == [15]
    assert follower.found() == numbered("one", 0, 10) + numbered("one", 15, 30)


def test_another_log_of_that_name_is_refused(logs: Logs, follower: Follower) -> None:
    logs.fill("one", 10)
    follower.run()
    logs.renew("one")
    query = follower.start()
    with pytest.raises(StreamingQueryException, match="another log of that name"):
        query.awaitTermination(PATIENCE)


def test_address_that_was_left_out_goes_on_and_a_new_one_begins_as_asked(
    logs: Logs, follower: Follower
) -> None:
    one, two = logs.address("one"), logs.address("two")
    logs.fill("one", 10)
    logs.fill("two", 10)
    follower.run(addresses=f"{one},{two}")
    logs.fill("one", 5)
    logs.fill("two", 5)
    follower.run(addresses=one)
    three = logs.address("three")
    logs.fill("three", 10)
    follower.run(addresses=f"{one},{two},{three}", startingOffsets=json.dumps({three: 7}))
    assert follower.found() == sorted([*numbered(one, 0, 15), *numbered(two, 0, 15), *numbered(three, 7, 10)])


@lacks("forgetting")
def test_another_log_of_that_name_may_be_read_from_its_beginning(logs: Logs, follower: Follower) -> None:
    logs.fill("one", 10)
    follower.run()
    logs.renew("one")
    logs.fill("one", 4)
    assert follower.run(failOnDataLoss="false") == [4]


def batch(spark: Any, logs: Logs, **given: str) -> list[tuple[str, int, bytes]]:
    """A range of logs, by ``spark.read``."""
    reader = spark.read.format("amqp10").options(url=logs.url, mode="log", columns="address,seq,body")
    rows = reader.options(**({"address": logs.address("one")} | given)).load().collect()
    return sorted((row.address, row.seq, bytes(row.body)) for row in rows)


def test_range_is_a_batch_and_the_same_whenever_it_is_read(spark: Any, logs: Logs) -> None:
    logs.fill("one", 30)
    one = logs.address("one")
    assert batch(spark, logs) == numbered(one, 0, 30)
    given = {"startingOffsets": "7", "endingOffsets": json.dumps({one: 20}), "minPartitions": "3"}
    assert batch(spark, logs, **given) == numbered(one, 7, 20)
    logs.fill("one", 10)
    assert batch(spark, logs, **given) == numbered(one, 7, 20)
    hour = str(time.time_ns() // 1_000_000 + 3_600_000)
    assert batch(spark, logs, startingTimestamp="0", endingTimestamp=hour) == numbered(one, 0, 40)
    assert batch(spark, logs, startingTimestamp=hour) == []


def test_batch_that_ends_behind_its_log_is_an_error_or_shorter(logs: Logs) -> None:
    logs.fill("one", 5)
    one = logs.address("one")
    given = {"url": logs.url, "mode": "log", "address": one, "endingOffsets": "7"}
    with pytest.raises(DataLossError, match="ends with 5, and option 'endingOffsets' is 7"):
        LogBatchReader(LogOptions.parse(given)).partitions()
    (only,) = LogBatchReader(LogOptions.parse(given | {"failOnDataLoss": "false"})).partitions()
    assert (only.start, only.stop) == (0, 5)
    for option in ("startingOffsets", "endingOffsets"):
        asked = given | {"endingOffsets": "5"} | {option: '{"elsewhere": 1}'}
        with pytest.raises(OptionError, match=f"'{option}' names elsewhere"):
            LogBatchReader(LogOptions.parse(asked)).partitions()


def test_few_rows_wait_for_more_but_not_for_ever(logs: Logs) -> None:
    log = logs.address("one")
    given = {"url": logs.url, "mode": "log", "address": log, "maxTriggerDelay": "1s"}
    reader = LogReader(LogOptions.parse(given | {"minRowsPerTrigger": "10"}))
    start, limit = reader.initialOffset(), reader.getDefaultReadLimit()
    assert start == {log: 0}
    logs.fill("one", 4)
    assert reader.latestOffset(start, limit) == start
    logs.fill("one", 8)
    assert reader.latestOffset(start, limit) == {log: 12}
    logs.fill("one", 1)
    assert reader.latestOffset({log: 12}, limit) == {log: 12}
    until(lambda: reader.latestOffset({log: 12}, limit) == {log: 13})
    logs.fill("one", 8)
    assert reader.latestOffset({log: 13}, ReadMaxRows(2)) == {log: 15}
    fresh = LogReader(LogOptions.parse(given))
    assert fresh.latestOffset({log: 13}, ReadMinRows(9)) == {log: 13}
    fresh.prepareForTriggerAvailableNow()
    assert fresh.latestOffset({log: 13}, ReadMinRows(9)) == {log: 21}
