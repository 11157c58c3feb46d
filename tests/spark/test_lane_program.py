"""The program of a lane: it reports failures, and opens its spool with its bounds."""

from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.spark.lane_program import LaneTask, open_lane
from trio_amqp10.spark.options import QueueOptions
from trio_amqp10.spark.spool import SpoolError

from .desk import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def options(spool: Path, **given: str) -> QueueOptions:
    needed = {"url": "amqp://127.0.0.1:1", "address": "q", "spool": str(spool)}
    return QueueOptions.parse(needed | dotted(given))


def test_lane_is_bounded_by_spool_max_bytes(tmp_path: Path) -> None:
    lane = open_lane(options(tmp_path, spool_maxBytes="64k", reconnect_timeout="1s"), "a")
    try:
        assert not lane.full
        lane.write(1, lambda file: file.write(bytes(70_000)))
        assert lane.full
    finally:
        lane.close()


def test_program_reports_why_its_spool_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    task = LaneTask(options(tmp_path / "file"), "lane-0", emptying=True)
    done = subprocess.run(
        [sys.executable, "-m", "trio_amqp10.spark.lane_program"],
        input=pickle.dumps(task),
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=60,
        check=True,
    )
    [report] = map(json.loads, done.stdout.splitlines())
    assert str(tmp_path / "file") in report["failed"]


def test_spool_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "consumed.json").write_text(json.dumps({"version": 99, "reader": "r", "rows": {}}))
    with pytest.raises(SpoolError):
        open_lane(options(tmp_path), "a")
