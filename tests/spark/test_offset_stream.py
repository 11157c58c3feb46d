"""The reader of logs on the driver: where it begins, how far a batch goes, and what is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from trio_amqp10.spark import offset_stream
from trio_amqp10.spark.log_offsets import DataLossError
from trio_amqp10.spark.offset_reader import find_at_moments, find_ends, find_starts
from trio_amqp10.spark.offset_stream import LogBatchReader, LogReader
from trio_amqp10.spark.options import LogOptions, OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Logs:
    """A peer that answers where its logs begin and end, in place of the pool of connections."""

    def __init__(self, **ends: int) -> None:
        self.ends = ends
        self.starts = dict.fromkeys(ends, 0)

    def __call__(self, function: Any, _options: LogOptions, *more: Any) -> Mapping[str, int]:
        if function is find_at_moments:
            return dict.fromkeys(more[0], 2)
        return dict({find_ends: self.ends, find_starts: self.starts}[function])


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Logs:
    made = Logs(a=5, b=3)
    monkeypatch.setattr(offset_stream, "run_in_pool", made)
    return made


def options(**given: str) -> LogOptions:
    return LogOptions.parse({"url": "amqp://h", "address": "a,b", "mode": "log"} | given)


def ranges_of(partitions: Any) -> list[tuple[str, int, int]]:
    return [(each.log, each.start, each.stop) for each in partitions]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("earliest", {"a": 0, "b": 0}),
        ("latest", {"a": 5, "b": 3}),
        ('{"a": 4, "b": 1}', {"a": 4, "b": 1}),
    ],
)
def test_stream_begins_where_the_options_say(logs: Logs, where: str, found: dict[str, int]) -> None:
    assert LogReader(options(startingOffsets=where)).initialOffset() == found


def test_log_that_there_is_not_is_refused_by_name(logs: Logs) -> None:
    with pytest.raises(OptionError, match=r"'startingOffsets' names c, and the logs are only a, b"):
        LogReader(options(startingOffsets='{"c": 1}')).initialOffset()


def test_batch_goes_to_the_ends_or_so_many_rows(logs: Logs) -> None:
    reader = LogReader(options())
    start = {"a": 0, "b": 0}
    assert reader.latestOffset(start, ReadAllAvailable()) == {"a": 5, "b": 3}
    cut = reader.latestOffset(start, ReadMaxRows(4))
    assert sum(cut.values()) == 4
    assert ranges_of(reader.partitions(start, {"a": 5, "b": 0})) == [("a", 0, 5)]
    assert reader.reportLatestOffset() == {"a": 5, "b": 3}


def test_few_rows_are_the_batch_of_a_query_that_runs_once(logs: Logs) -> None:
    reader = LogReader(options(minRowsPerTrigger="10"))
    start = {"a": 0, "b": 3}
    assert reader.latestOffset(start, reader.getDefaultReadLimit()) == start
    assert reader.latestOffset(start, ReadAllAvailable()) == {"a": 5, "b": 3}


@pytest.mark.parametrize(("given", "most"), [({}, 2**63 - 1), ({"maxRowsPerTrigger": "4"}, 4)])
def test_limit_by_default_is_that_of_the_options(given: dict[str, str], most: int) -> None:
    limit = LogReader(options(**given)).getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    assert limit.max_rows == most


def test_available_now_ends_where_the_logs_ended_then(logs: Logs) -> None:
    reader = LogReader(options())
    reader.prepareForTriggerAvailableNow()
    logs.ends = {"a": 50, "b": 30}
    assert reader.latestOffset({"a": 0, "b": 0}, ReadAllAvailable()) == {"a": 5, "b": 3}


def test_log_that_joins_has_no_rows_in_its_first_batch(logs: Logs) -> None:
    reader = LogReader(options(startingOffsets="earliest"))
    end = reader.latestOffset({"a": 5}, ReadAllAvailable())
    assert end == {"a": 5, "b": 0}


def test_range_of_a_batch_ends_with_the_log_or_is_an_error(logs: Logs) -> None:
    given = {"startingOffsets": "earliest", "endingOffsets": '{"a": 2, "b": 9}'}
    with pytest.raises(DataLossError, match="'b' ends with 3"):
        LogBatchReader(options(**given)).partitions()
    found = LogBatchReader(options(failOnDataLoss="false", **given)).partitions()
    assert ranges_of(found) == [("a", 0, 2), ("b", 0, 3)]


def test_batch_without_rows_is_one_partition_that_reads_nothing(logs: Logs) -> None:
    reader = LogBatchReader(options(startingOffsets="latest"))
    [nothing] = reader.partitions()
    assert list(reader.read(nothing)) == []
