"""Receivers of lanes in processes: how bounds are shared, and what a failed or killed one does to the query."""

from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.spark import lane_processes
from trio_amqp10.spark.lane_processes import LaneError, LaneProcesses, _task
from trio_amqp10.spark.options import QueueOptions

from .desk import dotted, until

if TYPE_CHECKING:
    from pathlib import Path


def options(spool: Path | str, **given: str) -> QueueOptions:
    needed = {"url": "amqp://127.0.0.1:1", "address": "q", "spool": str(spool)}
    return QueueOptions.parse(needed | dotted(given))


def test_bounds_in_octets_are_shared_and_each_link_has_its_name() -> None:
    given = options(
        "/s", spool_maxBytes="3m", credit_maxBytes="1m", linkName="l", containerId="c", durable="true"
    )
    tasks = [_task(given, number, 3, emptying=True) for number in range(3)]
    assert [each.lane for each in tasks] == ["lane-0", "lane-1", "lane-2"]
    assert {each.options.spool_max_bytes for each in tasks} == {2**20}
    assert {each.options.credit_max_bytes for each in tasks} == {2**20 // 3}
    assert [each.options.link_name for each in tasks] == ["l-lane-0", "l-lane-1", "l-lane-2"]
    assert all(each.emptying for each in tasks)
    assert _task(options("/s"), 0, 1, emptying=False).options.link_name is None


def test_lane_that_says_why_it_failed_fails_the_query(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    lanes = LaneProcesses(options(tmp_path / "file"), 1)
    try:
        until(lambda: lanes.finished)
        with pytest.raises(LaneError, match=r"^lane-0: .*file"):
            lanes.check()
    finally:
        lanes.stop()


def kill(lanes: LaneProcesses, number: int, deaths: int) -> None:
    """Kill the process of a lane, and each that is started in its place."""
    lane = lanes._lanes[number]
    for left in reversed(range(deaths)):
        process = lane._process
        os.kill(process.pid, signal.SIGKILL)
        if left:
            until(lambda process=process: lane._process is not process)  # type: ignore[misc]


def test_lane_that_dies_too_often_fails_the_query_if_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_processes, "_MOST_DEATHS", 2)
    lanes = LaneProcesses(options(tmp_path), 1)
    try:
        lanes.check()
        kill(lanes, 0, 2)
        until(lambda: lanes.finished)
        with pytest.raises(LaneError, match="has died 2 times"):
            lanes.check()
    finally:
        lanes.stop()


def test_lane_that_dies_too_often_rests_while_another_receives_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lane_processes, "_MOST_DEATHS", 2)
    lanes = LaneProcesses(options(tmp_path), 2)
    first = lanes._lanes[0]
    try:
        kill(lanes, 0, 2)
        until(lambda: first.resting is not None)
        lanes.check()
        assert not lanes.finished
        kill(lanes, 1, 2)
        until(lambda: lanes.finished)
        with pytest.raises(LaneError, match="lane-0 has died 2 times"):
            lanes.check()
    finally:
        lanes.stop()
    assert "it is tried again in 60 s" in caplog.text
    assert not any(lane.running for lane in lanes._lanes)
    monkeypatch.setattr(lane_processes, "_REST", 0.01)
    lanes = LaneProcesses(options(tmp_path / "again"), 2)
    first = lanes._lanes[0]
    try:
        kill(lanes, 0, 2)
        dead = first._process
        until(lambda: first._process is not dead)
        lanes.check()
        assert first.resting is None
    finally:
        lanes.stop()


def test_lane_whose_process_cannot_be_started_again_fails_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    lanes = LaneProcesses(options(tmp_path), 2)
    try:
        monkeypatch.setattr("subprocess.Popen", refuse)
        kill(lanes, 0, 1)
        until(lambda: lanes._lanes[0].failure is not None)
        with pytest.raises(LaneError, match=r"^lane-0: its process cannot be started again: .*memory"):
            lanes.check()
    finally:
        lanes.stop()
    assert not any(lane.running for lane in lanes._lanes)


def test_lane_that_dies_too_often_fails_a_run_that_empties_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_processes, "_MOST_DEATHS", 2)
    lanes = LaneProcesses(options(tmp_path), 2, emptying=True)
    try:
        kill(lanes, 0, 2)
        until(lambda: lanes._lanes[0].failure is not None)
        with pytest.raises(LaneError, match="has died 2 times"):
            lanes.check()
    finally:
        lanes.stop()
