"""QueryWatch: reports of Spark and files of spools, put together."""

from __future__ import annotations

import json
import logging
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.spark import QueryFigures, QueryWatch, query_watch
from trio_amqp10.spark.query_watch import WatchedSpool
from trio_amqp10.spark.query_watch import figures_of as combined
from trio_amqp10.spark.storage import FolderStore, open_store

from .desk import PATIENCE, numbered, until

if TYPE_CHECKING:
    from pathlib import Path

    from .objects import ObjectServer
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


def figures_of(report: dict[str, Any], folders: list[Path]) -> QueryFigures:
    return combined(report, [WatchedSpool(FolderStore(each)) for each in folders])


def filled(folder: Path, rows: int, age: float = 0.0) -> None:
    """Make the files of a spool with segments of ten rows, of which ten are consumed."""
    (folder / "spool.json").write_text(json.dumps({"spool": "id-1", "version": 2}))
    (folder / f"low-{10:020d}").touch()
    for first in range(0, rows, 10):
        path = folder / f"seg-{first:020d}-{first + 10:020d}.arrow"
        path.write_bytes(bytes(100))
        at = time.time() - age + first
        os.utime(path, (at, at))


def queue(seq: int, latest: int) -> dict[str, Any]:
    return {
        "endOffset": {"spool": "id-1", "seq": seq},
        "latestOffset": json.dumps({"spool": "id-1", "seq": latest}),
    }


FIRST, SECOND = f"00000001-{0:020d}-0a1b2c3d", f"00000002-{40:020d}-0a1b2c3d"


def publish(folder: Path, lane: str, epoch: str, first: int, end: int, age: float) -> None:
    path = folder / "manifests" / lane / f"{epoch}.{first:020d}-{end:020d}.100.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - age, time.time() - age))


def report_of(taken: dict[str, int], there: dict[str, int]) -> dict[str, Any]:
    return progress(
        {
            "endOffset": {"spool": "id-1", "seq": 0, "lanes": taken},
            "latestOffset": json.dumps({"spool": "id-1", "seq": 0, "lanes": there}),
        }
    )


def test_lanes_of_a_spool_are_summed_up_and_receivers_while_they_report(tmp_path: Path) -> None:
    (tmp_path / "spool.json").write_text(json.dumps({"spool": "id-1"}))
    for lane, at in (("a", time.time()), ("b-c", time.time()), ("gone", time.time() - 3600)):
        folder = tmp_path / "lanes" / lane
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps(METRICS | {"spool": lane, "at": at}))
    publish(tmp_path, "a", FIRST, 0, 5, age=500)
    publish(tmp_path, "a", FIRST, 5, 12, age=50)
    publish(tmp_path, "b-c", SECOND, 40, 43, age=5)
    report = report_of({f"a/{FIRST}": 5}, {f"a/{FIRST}": 12, f"b-c/{SECOND}": 43})
    found = figures_of(report, [tmp_path])
    assert (found.waiting, found.received, found.depth, found.reconnects) == (7 + 3, 200, 100, 4)
    assert found.lanes == {"a": 7, "b-c": 3}
    assert found.lag_seconds is not None
    assert 50 <= found.lag_seconds < 60
    assert "10 rows wait, the oldest for 5" in str(found)
    assert "in 2 lanes" in str(found)
    done = figures_of(report_of({f"a/{FIRST}": 12, f"b-c/{SECOND}": 43}, {}), [tmp_path])
    assert (done.lag_seconds, done.lanes) == (0.0, {"a": 0, "b-c": 0})
    assert figures_of(progress(queue(1, 1)), [tmp_path / "another"]).received is None


def test_report_and_file_are_put_together_by_the_id_of_the_spool(tmp_path: Path) -> None:
    filled(tmp_path, 50, age=60)
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS | {"at": time.time()}))
    found = figures_of(progress(queue(30, 42), name="orders"), [tmp_path, tmp_path / "nothing"])
    assert found.lag_seconds is not None
    assert 30 <= found.lag_seconds < 40  # of row 30, not of the row that is noted as consumed
    assert replace(found, lag_seconds=1.25) == QueryFigures(
        query="orders",
        batch=7,
        rows=10,
        rows_per_second=20.0,
        waiting=12,
        lag_seconds=1.25,
        lanes={},
        depth=50,
        received=100,
        duplicates=2,
        rejected=1,
        reconnects=2,
        full=True,
    )
    assert str(replace(found, lag_seconds=1.25)) == (
        "orders: batch 7: 10 rows, 20 rows/s, 12 rows wait, the oldest for 1.2 s, 50 messages wait at the peer, "
        "2 duplicates, 2 reconnects, 1 rejected, the spool is full"
    )


def test_lag_goes_on_when_receiving_has_ended_and_receivers_are_not_known(tmp_path: Path) -> None:
    filled(tmp_path, 50, age=60)
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS | {"at": time.time() - 3600}))
    found = figures_of(progress(queue(30, 42)), [tmp_path])
    assert found.lag_seconds is not None
    assert found.lag_seconds >= 30
    assert (found.received, found.depth, found.full) == (None, None, None)


def test_file_of_another_spool_says_nothing_of_a_query(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS | {"spool": "id-2"}))
    (tmp_path / "spool.json").write_text(json.dumps({"spool": "id-2"}))
    found = figures_of(progress(queue(30, 30), numInputRows=0, processedRowsPerSecond="NaN"), [tmp_path])
    assert (found.waiting, found.depth, found.rows_per_second) == (0, None, 0.0)
    assert str(found) == "query-id: batch 7: 0 rows, 0 rows wait"


def test_spool_in_an_object_store_is_read_every_ten_seconds(
    objects: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(objects.uri(tmp_path.name))
    store.put("spool.json", json.dumps({"spool": "id-1"}).encode())
    store.put("lanes/a/metrics.json", json.dumps(METRICS | {"at": time.time()}).encode())
    store.put(f"manifests/a/{FIRST}.{0:020d}-{5:020d}.100.json", b"{}")
    watched = [WatchedSpool(store)]
    report = report_of({f"a/{FIRST}": 2}, {f"a/{FIRST}": 5})
    assert combined(report, watched).lanes == {"a": 3}
    store.put(f"manifests/a/{FIRST}.{5:020d}-{9:020d}.100.json", b"{}")
    assert combined(report, watched).lanes == {"a": 3}
    assert combined(progress(queue(1, 1) | {"endOffset": {"spool": "id-2", "seq": 1}}), watched).lanes is None
    monkeypatch.setattr(query_watch, "_AGE", 0.0)
    assert combined(report, watched).lanes == {"a": 7}


def test_store_that_cannot_be_read_leaves_the_last_figures(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 50)
    watched = WatchedSpool(FolderStore(tmp_path))
    report = progress(queue(30, 42))
    before = combined(report, [watched]).lanes

    def fail(_: object) -> None:
        raise OSError("no disk")

    monkeypatch.setattr(query_watch, "reports", fail)
    assert combined(report, [watched]).lanes == before == {}
    assert "cannot be read now: no disk" in caplog.text


class Unread(FolderStore):
    """A store like one of objects, which counts how often it is asked for its spool."""

    remote = True
    asked = 0
    fails = False

    def get(self, name: str) -> bytes | None:
        self.asked += name == "spool.json"
        if self.fails:
            raise OSError("no network")
        return super().get(name)


@pytest.mark.parametrize("fails", [False, True])
def test_store_of_no_spool_of_the_query_is_asked_every_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    store = Unread(tmp_path)
    store.fails = fails
    watched = WatchedSpool(store)
    for _ in range(3):
        assert combined(progress(queue(1, 1)), [watched]).lag_seconds is None
    assert store.asked == 1
    monkeypatch.setattr(query_watch, "_AGE", 0.0)
    store.fails = False
    store.put("spool.json", b'{"spool": "id-1"}')
    assert combined(progress(queue(1, 1)), [watched]).lag_seconds == 0.0
    store.fails = True
    assert combined(progress({"endOffset": {"spool": "id-2", "seq": 1}}), [watched]).lag_seconds is None


def test_spool_that_replaces_another_is_known(tmp_path: Path) -> None:
    watched = WatchedSpool(FolderStore(tmp_path))
    for name in ("id-0", "id-1"):
        filled(tmp_path, 50)
        (tmp_path / "spool.json").write_text(json.dumps({"spool": name}))
        report = progress({"endOffset": {"spool": name, "seq": 50}})
        assert combined(report, [watched]).lag_seconds == 0.0


def test_lanes_of_the_same_name_in_two_spools_are_summed_up(tmp_path: Path) -> None:
    sources: list[dict[str, Any]] = []
    for number, name in enumerate(("id-1", "id-2"), 1):
        folder = tmp_path / name
        publish(folder, "lane-0", FIRST, 0, 5 * number, age=5)
        (folder / "spool.json").write_text(json.dumps({"spool": name}))
        sources.append({"endOffset": {"spool": name, "seq": 0, "lanes": {f"lane-0/{FIRST}": 2}}})
    found = figures_of(progress(*sources), [tmp_path / "id-1", tmp_path / "id-2"])
    assert found.lanes == {"lane-0": 3 + 8}


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
