"""Streams from lanes, with a real Spark, in a folder and in an object store."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from trio_amqp10.spark.lane_spool import LaneSpool

from .desk import PATIENCE, numbered, until
from .kills import children, command
from .peers import lacks
from .test_lane_spool import put
from .test_stream import Pipe, once

if TYPE_CHECKING:
    from pathlib import Path

    from .failures import Failures
    from .objects import ObjectServer
    from .peers import Peer


@pytest.fixture
def pipe(spark: Any, peer: Peer, tmp_path: Path) -> Pipe:
    return Pipe(spark, peer, tmp_path)


def lanes_of(this: int) -> list[int]:
    return sorted(pid for pid in children(this) if "trio_amqp10.spark.lane_program" in command(pid))


def test_two_lanes_read_everything_once_in_limited_batches(peer: Peer, pipe: Pipe) -> None:
    peer.put("q", numbered(2500))
    sizes = pipe.run(lanes="2", maxRowsPerTrigger="1000")
    assert sum(sizes) == 2500
    assert max(sizes) <= 1000
    assert pipe.bodies() == once(2500)
    assert peer.held("q") == 0
    peer.put("q", numbered(2600)[2500:])
    assert sum(pipe.run(lanes="3")) == 100
    peer.put("q", numbered(2700)[2600:])
    assert sum(pipe.run()) == 100  # and one, in the process of the reader
    assert pipe.bodies() == once(2700)


def test_lane_that_is_killed_goes_on_and_ends_with_the_query(peer: Peer, pipe: Pipe) -> None:
    peer.address("q")
    query = pipe.start(now=False, lanes="2", dedup="message-id", credit="200")
    until(lambda: peer.receivers("q") == 2)
    victim = lanes_of(os.getpid())[0]
    peer.put("q", numbered(1000))
    until(lambda: peer.held("q") < 1000)
    os.kill(victim, signal.SIGKILL)
    peer.put("q", numbered(2000)[1000:])
    until(lambda: peer.held("q") == 0)
    query.processAllAvailable()
    assert query.exception() is None
    query.stop()
    until(lambda: not lanes_of(os.getpid()))
    until(lambda: peer.receivers("q") == 0)
    assert pipe.bodies() == once(2000)


def test_lanes_end_with_a_reader_that_is_killed(peer: Peer, pipe: Pipe) -> None:
    peer.address("q")
    query = pipe.start(now=False, lanes="2")
    until(lambda: peer.receivers("q") == 2)
    (reader,) = [pid for pid in children(os.getpid()) if "python_streaming_source_runner" in command(pid)]
    os.kill(reader, signal.SIGKILL)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(PATIENCE)
    until(lambda: not lanes_of(os.getpid()))
    until(lambda: peer.receivers("q") == 0)
    peer.put("q", numbered(100))
    assert sum(pipe.run(lanes="2")) == 100


def test_crash_of_a_lane_or_of_the_reader_loses_nothing_and_ids_know_what_came_twice(
    peer: Peer, pipe: Pipe, failures: Failures
) -> None:
    count = 0
    for place in (
        "claimed",
        "written",
        "published",
        "synced",
        "settled",
        "offset",
        "planned",
        "consumed",
        "deleted",
    ):
        peer.put("q", numbered(count + 200)[count:])
        count += 200
        failures.crash(place)
        query = pipe.start(
            lanes="2", credit="50", dedup="message-id", dedup_window="200", maxRowsPerTrigger="100"
        )
        if place in ("offset", "planned", "consumed", "deleted"):  # the reader's
            with pytest.raises(StreamingQueryException):
                query.awaitTermination(PATIENCE)
        else:
            assert query.awaitTermination(PATIENCE)
        assert failures.crashed(place), place
        until(lambda: peer.receivers("q") == 0)
    pipe.run(lanes="2", credit="50", dedup="message-id", dedup_window="200")
    assert pipe.bodies() == once(count)
    assert peer.held("q") == 0


@lacks("nobody")
@pytest.mark.parametrize("kind", ["folder", "objects"])
def test_rows_that_others_receive_are_read_each_once(
    pipe: Pipe, objects: ObjectServer, tmp_path: Path, kind: str
) -> None:
    """Two lanes; one has a receiver that seemed dead, and its successor.

    Both of these have written one of the messages.
    """
    where = objects.uri(tmp_path.name) if kind == "objects" else str(tmp_path / "spool")
    zombie, other = LaneSpool(where, "a"), LaneSpool(where, "b")
    put(zombie, 0, 1, named=True)
    put(other, 2, 3, named=True)
    given = {"spool": where, "lanes": "external", "dedup": "message-id"}
    assert sum(pipe.run(**given)) == 4
    if kind == "folder":
        zombie.close()  # it has a lock there
    successor = LaneSpool(where, "a")
    put(successor, 4, 5, named=True)
    if kind == "objects":
        put(zombie, 5, 6, named=True)
    put(other, 7, 8, named=True)
    pipe.run(**given)
    put(successor, 9, named=True)
    if kind == "objects":
        put(zombie, 10, named=True)  # behind its successor, and after rows of that were consumed
    pipe.run(**given)
    expected = Counter(b"%d" % number for number in (*range(11),))
    if kind == "folder":
        expected -= Counter([b"6", b"10"])
    assert pipe.bodies() == expected
    for each in (zombie, other, successor):
        each.close()


def test_lanes_beside_the_driver_may_write_to_an_object_store(
    peer: Peer, pipe: Pipe, objects: ObjectServer, tmp_path: Path
) -> None:
    where = objects.uri(tmp_path.name)
    for before, count in ((0, 500), (500, 800)):
        peer.put("q", numbered(count)[before:])
        pipe.run(spool=where, lanes="2", maxRowsPerTrigger="300")
        assert pipe.bodies() == once(count)
    assert peer.held("q") == 0
    assert (
        objects.count(tmp_path.name, lambda name: name.endswith(".arrow")) < 10
    )  # what is consumed is deleted


def test_rows_of_an_object_store_may_travel_with_the_plan(
    peer: Peer, pipe: Pipe, objects: ObjectServer, tmp_path: Path
) -> None:
    peer.put("q", numbered(200))
    pipe.run(spool=objects.uri(tmp_path.name), spool_transport="inline", columns="seq,body")
    assert pipe.bodies() == once(200)
