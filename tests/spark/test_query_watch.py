"""QueryWatch: reports of Spark and files of spools, put together."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.spark import QueryFigures, QueryWatch
from trio_amqp10.spark.query_watch import figures_of

from .desk import PATIENCE, numbered, until

if TYPE_CHECKING:
    from pathlib import Path

    from .peers import Peer

METRICS = {
    "spool": "id-1",
    "connections": 3,
    "received": 100,
    "duplicates": 2,
    "rejected": 1,
    "depth": 50,
    "lag_seconds": 1.25,
    "full": True,
}


def progress(*sources: dict[str, Any], **given: Any) -> dict[str, Any]:
    usual = {"id": "query-id", "name": None, "batchId": 7, "numInputRows": 10, "processedRowsPerSecond": 20.0}
    return usual | {"sources": list(sources)} | given


def queue(seq: int, latest: int) -> dict[str, Any]:
    return {
        "endOffset": {"spool": "id-1", "seq": seq},
        "latestOffset": json.dumps({"spool": "id-1", "seq": latest}),
    }


def test_lanes_of_a_spool_are_summed_up_while_they_have_receivers(tmp_path: Path) -> None:
    (tmp_path / "spool.json").write_text(json.dumps({"spool": "id-1"}))
    for lane, at in (("a", time.time()), ("b", time.time()), ("gone", time.time() - 3600)):
        folder = tmp_path / "lanes" / lane
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps(METRICS | {"spool": lane, "at": at}))
    first, second = f"a/00000001-{0:020d}-0a1b2c3d", f"b-c/00000002-{40:020d}-0a1b2c3d"
    source = {
        "endOffset": {"spool": "id-1", "seq": 0, "lanes": {first: 5}},
        "latestOffset": json.dumps({"spool": "id-1", "seq": 0, "lanes": {first: 12, second: 43}}),
    }
    found = figures_of(progress(source), [tmp_path])
    assert (found.waiting, found.received, found.depth, found.reconnects) == (7 + 3, 200, 100, 4)
    assert figures_of(progress(queue(1, 1)), [tmp_path / "another"]).received is None


def test_report_and_file_are_put_together_by_the_id_of_the_spool(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS))
    found = figures_of(progress(queue(30, 42), name="orders"), [tmp_path, tmp_path / "nothing"])
    assert found == QueryFigures(
        query="orders",
        batch=7,
        rows=10,
        rows_per_second=20.0,
        waiting=12,
        lag_seconds=1.25,
        depth=50,
        received=100,
        duplicates=2,
        rejected=1,
        reconnects=2,
        full=True,
    )
    assert str(found) == (
        "orders: batch 7: 10 rows, 20 rows/s, 12 rows wait, the oldest for 1.2 s, 50 messages wait at the peer, "
        "2 duplicates, 2 reconnects, 1 rejected, the spool is full"
    )


def test_file_of_another_spool_says_nothing_of_a_query(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS | {"spool": "id-2"}))
    found = figures_of(progress(queue(30, 30), numInputRows=0, processedRowsPerSecond="NaN"), [tmp_path])
    assert (found.waiting, found.depth, found.rows_per_second) == (0, None, 0.0)
    assert str(found) == "query-id: batch 7: 0 rows, 0 rows wait"


def test_rows_of_logs_wait_by_their_numbers() -> None:
    source = {"endOffset": '{"a": 5, "b": 7}', "latestOffset": {"a": 9, "b": 7, "new": 3}}
    found = figures_of(progress(source, queue(1, 3)), [])
    assert found.waiting == 4 + 2
    assert figures_of(progress({"endOffset": '{"a": 5}', "latestOffset": None}), []).waiting == 0


@pytest.mark.parametrize(
    "source",
    [
        {"endOffset": None, "latestOffset": None},
        {"endOffset": "no JSON", "latestOffset": None},
        {"endOffset": {"topic": {"0": 5}}, "latestOffset": {"topic": {"0": 9}}},
    ],
)
def test_source_of_another_kind_has_nothing_to_say(source: dict[str, Any]) -> None:
    assert figures_of(progress(source), []).waiting is None


@pytest.mark.logs_errors
def test_queries_of_a_session_are_followed(
    spark: Any, peer: Peer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    peer.put("q", numbered(300))
    caplog.set_level(logging.INFO, "trio_amqp10.spark")
    told: list[QueryFigures] = []

    def note(figures: QueryFigures) -> None:
        told.append(figures)
        raise ValueError("logged, and no more")

    spool = tmp_path / "spool"
    source = spark.readStream.format("amqp10").options(
        url=peer.url, address=peer.address("q"), spool=str(spool), columns="body", maxRowsPerTrigger="200"
    )
    with QueryWatch(spark, spool, on_figures=note) as watch:
        writer = source.load().writeStream.format("noop").queryName("watched").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert query.awaitTermination(PATIENCE)
        until(lambda: sum(each.rows for each in told) == 300)
        last = watch.latest["watched"]
        assert (last.received, last.duplicates, last.reconnects) == (300, 0, 0)
        assert last.waiting == 0
        assert told[0].waiting == 100
        watch.close()
    assert "watched: batch 0: 200 rows" in caplog.text
    assert "logged, and no more" in caplog.text
