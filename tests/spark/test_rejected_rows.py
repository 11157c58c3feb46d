"""Rows that were not accepted are counted, and in files with the reason; a repeated task replaces its files."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from trio_amqp10.spark import rejected_rows
from trio_amqp10.spark.options import OptionError, SinkOptions
from trio_amqp10.spark.rejected_rows import RejectedRows
from trio_amqp10.spark.spool import SpoolError

if TYPE_CHECKING:
    from pathlib import Path

PEER = {"url": "amqp://h", "address": "q"}
TASK = "app@/queues/x-0-1"


def rejecting(folder: Path) -> SinkOptions:
    return SinkOptions.parse(PEER | {"onReject": "deadletter-path", "deadletterPath": str(folder)})


def row(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": [number], "body": [b"%d" % number]})


def written(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.parquet"))
    return [each for file in files for each in parquet.read_table(file).to_pylist()]


def test_rows_are_in_files_with_condition_and_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rejected = RejectedRows(rejecting(tmp_path), TASK)
    rejected.add(row(1), "app:no", "not that")
    rejected.add(row(2), None, "too large")
    with caplog.at_level(logging.WARNING):
        rejected.close()
    assert written(tmp_path) == [
        {"n": 1, "body": b"1", "reject_condition": "app:no", "reject_reason": "not that"},
        {"n": 2, "body": b"2", "reject_condition": None, "reject_reason": "too large"},
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["app%40%2Fqueues%2Fx-0-1-0.parquet"]
    assert (
        f"2 rows of task {TASK} were not accepted and are in {tmp_path}; the first: not that" in caplog.text
    )


def test_row_that_was_set_aside_before_gets_its_new_reason(tmp_path: Path) -> None:
    again = pa.RecordBatch.from_pydict({"reject_reason": ["old"], "n": [1], "reject_condition": ["app:old"]})
    rejected = RejectedRows(rejecting(tmp_path), TASK)
    rejected.add(again, None, "new")
    rejected.close()
    assert written(tmp_path) == [{"n": 1, "reject_condition": None, "reject_reason": "new"}]


def test_row_that_waits_does_not_keep_its_batch(tmp_path: Path) -> None:
    rejected = RejectedRows(rejecting(tmp_path), TASK)
    before = pa.total_allocated_bytes()
    rejected.add(pa.RecordBatch.from_pydict({"body": [bytes(1000)] * 10_000}).slice(5, 1), None, "no")
    assert pa.total_allocated_bytes() - before < 100_000
    rejected.close()
    assert [each["body"] for each in written(tmp_path)] == [bytes(1000)]


def test_task_that_is_repeated_replaces_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejected_rows, "_MOST", 2)
    for count in (5, 3):
        rejected = RejectedRows(rejecting(tmp_path), TASK)
        for number in range(count):
            rejected.add(row(number), None, "no")
            if rejected.is_full:
                rejected.write()
        rejected.close()
        assert rejected.count == count
    assert [each["n"] for each in written(tmp_path)] == [0, 1, 2]


def test_folder_that_cannot_be_written_is_an_error_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    rejected = RejectedRows(rejecting(file / "rows"), TASK)
    rejected.add(row(1), None, "no")
    with pytest.raises(SpoolError, match=f"not accepted cannot be written to {file}/rows: .*Not a directory"):
        rejected.write()


def test_rows_that_are_dropped_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    rejected = RejectedRows(SinkOptions.parse(PEER | {"onReject": "drop"}), "task")
    rejected.add(row(1), None, "no")
    rejected.close()
    assert rejected.count == 1
    assert "1 rows of task task were not accepted and are dropped; the first: no" in caplog.text


@pytest.mark.parametrize("given", [{"onReject": "deadletter-path"}, {"deadletterPath": "/x"}])
def test_folder_and_its_option_need_each_other(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="need each other"):
        SinkOptions.parse(PEER | given)
