"""Figures of a spool: what waits by its files, and what receivers report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.spark.lane_spool import LaneSpool
from trio_amqp10.spark.lanes_reader import LaneRows
from trio_amqp10.spark.spool import Spool, SpoolError
from trio_amqp10.spark.spool_figures import lanes_waiting, own_waiting, present_figures, reports, spool_id
from trio_amqp10.spark.storage import FolderStore, open_store

from .test_lane_spool import put

if TYPE_CHECKING:
    from pathlib import Path

    from .objects import ObjectServer


@given(st.lists(st.integers(1, 9), max_size=6), st.integers(0, 60), st.integers(0, 60))
def test_rows_that_wait_are_those_of_the_open_spool(
    tmp_path_factory: pytest.TempPathFactory, segments: list[int], consumed: int, row: int
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool = Spool(folder)
    for rows in segments:
        spool.write(rows, lambda file, rows=rows: file.write(bytes(rows)))
    spool.release(min(consumed, spool.end))
    store = FolderStore(folder)
    own = own_waiting(store)
    assert (own.rows, own.octets, own.since) == (spool.end - spool.low, spool.size, spool.waiting_since)
    after = own_waiting(store, max(row, spool.low))
    assert after.rows == max(0, spool.end - max(row, spool.low))
    assert (after.since is None) == (after.rows == 0)
    spool.close()


@pytest.mark.parametrize("kind", ["folder", "objects"])
def test_rows_of_lanes_wait_until_they_are_consumed(objects: ObjectServer, tmp_path: Path, kind: str) -> None:
    where = str(tmp_path) if kind == "folder" else objects.uri(tmp_path.name)
    one, two = LaneSpool(where, "one"), LaneSpool(where, "two")
    put(one, 0, 1, 2)
    put(two, 3)
    store = open_store(where)
    assert {lane: waits.rows for lane, waits in lanes_waiting(store).items()} == {"one": 3, "two": 1}
    found = lanes_waiting(store)["one"]
    assert found.octets == one.size
    assert found.since is not None
    assert abs(found.since - time.time()) < 60
    rows = LaneRows(store)
    rows.release({f"one/{one.epoch.name}": 2, f"two/{two.epoch.name}": 1})
    assert {lane: waits.rows for lane, waits in lanes_waiting(store).items()} == {"one": 1, "two": 0}
    assert lanes_waiting(store, {f"one/{one.epoch.name}": 3})["one"] == (0, 0, None)
    for each in (one, two):
        each.close()


def test_report_has_what_waits_at_present(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    assert (spool_id(store), reports(store), present_figures(store)) == (None, {}, {})
    spool = Spool(tmp_path)
    for _ in range(2):
        spool.write(5, lambda file: file.write(bytes(100)))
    spool.release(5)
    spool.close()
    old = time.time() - 500
    os.utime(spool.segments[-1], (old, old))
    store.put(
        "metrics.json",
        json.dumps({"rows_waiting": 99, "lag_seconds": 0.0, "received": 7, "at": 1.0}).encode(),
    )
    lane = LaneSpool(str(tmp_path), "silent")
    put(lane, 1, 2)
    lane.close()
    found = present_figures(store)
    assert {folder: each["rows_waiting"] for folder, each in found.items()} == {".": 5, "lanes/silent": 2}
    assert (found["."]["octets_waiting"], found["."]["received"], found["."]["at"]) == (100, 7, 1.0)
    assert 500 <= found["."]["lag_seconds"] < 560
    assert spool_id(store) == spool.id


def test_report_of_a_folder_without_a_spool_is_as_it_is(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("metrics.json", b'{"rows_waiting": 99}')
    assert present_figures(store) == {".": {"rows_waiting": 99}}
    store.put("metrics.json", b"[]")
    with pytest.raises(SpoolError, match="no figures of a spool"):
        present_figures(store)


def test_top_shows_the_lanes_of_an_object_store(objects: ObjectServer, tmp_path: Path) -> None:
    where = objects.uri(tmp_path.name)
    lane = LaneSpool(where, "one")
    put(lane, 0, 1)
    lane.show_figures("metrics.json", json.dumps({"rows_waiting": 0, "received": 7, "at": time.time()}))
    open_store(where).put("spool.json", b'{"spool": "id-1"}')
    command = [sys.executable, "-m", "trio_amqp10", "top", "--spool", where, "--once", "--json"]
    shown = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    [spool] = json.loads(shown)["spools"]
    assert (spool["folder"], spool["rows_waiting"], spool["received"]) == ("lanes/one", 2, 7)
