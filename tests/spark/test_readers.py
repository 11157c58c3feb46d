"""The reader of a queue: limits of a batch, and how its rows are shared among partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

from trio_amqp10.spark.options import BrowseOptions, QueueOptions
from trio_amqp10.spark.readers import BrowseReader, QueueStreamReader, _grouped, _tasks
from trio_amqp10.spark.spool import Slice, Spool, SpoolError

from .desk import dotted

if TYPE_CHECKING:
    from pathlib import Path

SLICES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 50)).map(
        lambda each: Slice("s", each[0], each[0] + each[1], 0)
    ),
    max_size=6,
)


@given(SLICES, st.integers(1, 9))
def test_groups_have_every_row_once_in_order_and_about_the_number_that_is_wanted(
    slices: list[Slice], least: int
) -> None:
    def rows(of: list[Slice]) -> list[int]:
        return [row for each in of for row in range(each.start, each.stop)]

    groups = _grouped(slices, least)
    assert [row for group in groups for row in rows(group)] == rows(slices)
    sizes = [len(rows(group)) for group in groups]
    assert len(groups) <= least
    assert all(size == sizes[0] for size in sizes[:-1])
    assert 0 not in sizes


@pytest.mark.parametrize(
    ("rows", "octets", "tasks"),
    [
        (0, 0, 1),
        (19_999, 10, 1),
        (20_000, 10, 2),
        (100_000, 10, 10),
        (10, 15 * 2**20, 1),
        (10, 16 * 2**20, 2),
        (50_000, 2**30, 64),
        (5_000_000, 2**30, 64),
    ],
)
def test_batch_has_as_many_tasks_as_its_rows_or_octets_are_worth(rows: int, octets: int, tasks: int) -> None:
    assert _tasks(rows, octets) == tasks


def reader(spool: str, **given: str) -> QueueStreamReader:
    needed = {"url": "amqp://127.0.0.1:1", "address": "q", "spool": spool}
    return QueueStreamReader(QueueOptions.parse(needed | dotted(given)))


@pytest.mark.parametrize(
    ("given", "limit", "found"),
    [
        ({}, ReadAllAvailable(), (None, None, 0)),
        ({"maxRowsPerTrigger": "10", "maxBytesPerTrigger": "10"}, ReadAllAvailable(), (None, None, 0)),
        ({"maxRowsPerTrigger": "10"}, ReadMaxRows(7), (7, None, 0)),
        ({"maxRowsPerTrigger": "10"}, ReadMaxRows(70), (10, None, 0)),
        ({"maxBytesPerTrigger": "10"}, ReadMaxBytes(7), (None, 7, 0)),
        ({"minRowsPerTrigger": "3", "maxTriggerDelay": "1s"}, ReadMinRows(2), (None, None, 3)),
        ({"spool_transport": "inline"}, ReadAllAvailable(), (None, 64 * 2**20, 0)),
    ],
)
def test_strictest_of_all_limits_counts(given: dict[str, str], limit: Any, found: tuple[Any, ...]) -> None:
    assert reader("/s", **given)._limits(limit) == found


def test_batch_is_planned_from_the_spool_without_receiving(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for rows in (3, 5):
        spool.write(rows, lambda file: file.write(b"x"))
    spool.close()
    one = reader(str(tmp_path), minPartitions="2")
    try:
        start, end = {"spool": spool.id, "seq": 1}, {"spool": spool.id, "seq": 8}
        partitions: Any = one.partitions(start, end)
        assert [[each.stop - each.start for each in part.slices] for part in partitions] == [[2, 2], [3]]
        assert one.reportLatestOffset() == end
        one.commit({"spool": spool.id, "seq": 3})
        with pytest.raises(SpoolError):
            one.partitions(start, end)
        with pytest.raises(SpoolError):
            one.partitions({"spool": "another", "seq": 0}, end)
    finally:
        one.stop()
    Spool(tmp_path).close()  # which another may open now


@pytest.mark.parametrize(("given", "sizes"), [({}, [10_000] * 3), ({"minPartitions": "1"}, [30_000])])
def test_large_batch_has_several_tasks_unless_their_number_is_given(
    tmp_path: Path, given: dict[str, str], sizes: list[int]
) -> None:
    spool = Spool(tmp_path)
    for _ in range(20):
        spool.write(1500, lambda file: file.write(bytes(2**20)))
    spool.close()
    one = reader(str(tmp_path), **given)
    try:
        partitions: Any = one.partitions({"spool": spool.id, "seq": 0}, {"spool": spool.id, "seq": 30_000})
        assert [sum(each.stop - each.start for each in part.slices) for part in partitions] == sizes
    finally:
        one.stop()


def test_queue_is_browsed_in_one_task() -> None:
    options = BrowseOptions.parse({"url": "amqp://h", "address": "q"})
    assert len(BrowseReader(options).partitions()) == 1
