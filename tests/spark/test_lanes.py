"""Lanes without Spark: receivers in their own processes, and one reader."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.spark import lane_processes
from trio_amqp10.spark.backlog import Backlog, Position
from trio_amqp10.spark.lane_processes import LaneError
from trio_amqp10.spark.lane_spool import LaneSpool
from trio_amqp10.spark.options import OptionError, QueueOptions
from trio_amqp10.spark.spool import SpoolError

from .desk import dotted, numbered, read, until
from .peers import lacks
from .test_lane_spool import put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .failures import Failures
    from .objects import ObjectServer
    from .peers import Peer
    from .server import Server


@pytest.fixture
def opened(peer: Peer, tmp_path: Path) -> Iterator[Callable[..., Backlog]]:
    """Opens one backlog after the other, of the same spool."""
    found: list[Backlog] = []

    def open_one(**given: str) -> Backlog:
        while found:
            found.pop().close()
        needed = {
            "url": peer.url,
            "address": peer.address("q"),
            "spool": str(tmp_path / "spool"),
            "lanes": "2",
        }
        found.append(Backlog(QueueOptions.parse(needed | dotted(given))))
        return found[-1]

    yield open_one
    for each in found:
        each.close()


def again(backlog: Backlog, position: Position) -> Position:
    """Convert a position to an offset and back, as a checkpoint does."""
    return backlog.position(json.loads(json.dumps(backlog.offset(position))))


def rows_until(backlog: Backlog, start: Position, count: int) -> Position:
    """Wait for so many rows behind a position; where they end."""
    until(lambda: backlog.check() or backlog.rows(start, backlog.end(start)) >= count)
    return again(backlog, backlog.end(start))


def bodies(backlog: Backlog, start: Position, end: Position) -> Counter[bytes]:
    return Counter(row["body"] for row in read(backlog.slices(start, end), columns="body"))


def once(*numbers: int) -> Counter[bytes]:
    return Counter(b"%d" % number for number in numbers)


def pids(backlog: Backlog) -> list[int]:
    assert backlog._processes is not None
    return [lane._process.pid for lane in backlog._processes._lanes]


def test_two_lanes_share_a_queue_and_settle_it(peer: Peer, opened: Callable[..., Backlog]) -> None:
    backlog = opened(credit="200")
    start = backlog.low()
    backlog.receive(emptying=False)
    until(lambda: peer.receivers("q") == 2)
    peer.put("q", numbered(3000))
    end = rows_until(backlog, start, 3000)
    assert {key.partition("/")[0] for key in end.lanes} == {"lane-0", "lane-1"}
    assert bodies(backlog, start, end) == once(*range(3000))
    until(lambda: peer.held("q") == 0)
    backlog.close()
    until(lambda: peer.receivers("q") == 0)


def test_emptying_ends_when_all_is_taken(peer: Peer, opened: Callable[..., Backlog]) -> None:
    peer.put("q", numbered(1000))
    backlog = opened()
    start = backlog.low()
    backlog.receive(emptying=True)
    backlog.wait(start, None)
    backlog.check()
    assert bodies(backlog, start, backlog.end(start)) == once(*range(1000))
    assert peer.held("q") == 0


def test_lane_that_is_killed_is_started_again_and_loses_nothing(
    peer: Peer, opened: Callable[..., Backlog], failures: Failures
) -> None:
    failures.delay("synced", 0.2)  # so that it dies between disk and settlement
    backlog = opened(dedup="message-id", credit="100")
    start = backlog.low()
    backlog.receive(emptying=False)
    until(lambda: peer.receivers("q") == 2)
    peer.put("q", numbered(1500))
    for victim in (0, 1, 0):
        before = backlog.end(start)
        until(lambda before=before: backlog.rows(before, backlog.end(before)) > 0)  # type: ignore[misc]
        os.kill(pids(backlog)[victim], signal.SIGKILL)
    until(lambda: backlog.check() or peer.held("q") == 0)
    assert bodies(backlog, start, again(backlog, backlog.end(start))) == once(*range(1500))


def test_lanes_end_with_their_parent_however_that_ends(peer: Peer, opened: Callable[..., Backlog]) -> None:
    backlog = opened()
    backlog.receive(emptying=False)
    until(lambda: peer.receivers("q") == 2)
    assert backlog._processes is not None
    lanes = backlog._processes._lanes
    first, second = [lane._process for lane in lanes]
    first.send_signal(signal.SIGSTOP)  # not even asked, it can end
    for lane in lanes:
        lane._ending.set()
        assert lane._process.stdin is not None
        lane._process.stdin.close()  # all that a lane sees of a parent that is killed
    until(lambda: second.poll() is not None)
    first.send_signal(signal.SIGCONT)
    until(lambda: first.poll() is not None)
    until(lambda: peer.receivers("q") == 0)


def test_lane_that_fails_fails_the_query_with_the_words_of_the_peer(
    peer: Peer, opened: Callable[..., Backlog]
) -> None:
    backlog = opened(address=peer.missing())
    backlog.receive(emptying=True)
    with pytest.raises(LaneError, match=r"lane-[01]: .*amqp:not-found: no (node|queue) '"):
        until(lambda: backlog.check() or False)
    until(lambda: backlog._processes is None or backlog._processes.finished)


@lacks("nobody")
def test_lane_that_dies_time_and_again_fails_the_query(
    opened: Callable[..., Backlog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_processes, "_PROGRAM", "nothing.of.that.name")
    backlog = opened()
    backlog.receive(emptying=False)
    with pytest.raises(LaneError, match=r"the process of lane-[01] has died 5 times within 60 s.*code 1"):
        until(lambda: backlog.check() or False)


def test_lanes_may_change_between_runs_and_what_is_left_of_one_is_read(
    peer: Peer, opened: Callable[..., Backlog]
) -> None:
    """One checkpoint goes on from a spool to three lanes, one lane, and a spool."""
    found: Counter[bytes] = Counter()
    count = 0
    backlog = opened(lanes="1")
    offset = backlog.offset(backlog.low())
    assert offset.keys() == {"spool", "seq"}
    for lanes in ("1", "3", "2", "1"):
        backlog = opened(lanes=lanes, dedup="message-id")
        start = backlog.position(offset)
        peer.put("q", numbered(count + 300)[count:])
        count += 300
        backlog.receive(emptying=True)
        backlog.wait(start, None)
        backlog.check()
        assert peer.held("q") == 0
        end = backlog.cut(start, backlog.end(start), 50, None)  # most is left for later
        found += bodies(backlog, start, end)
        offset = backlog.offset(end)
        backlog.release(end)
    assert "lanes" in offset
    end = backlog.end(end)
    found += bodies(backlog, backlog.position(offset), end)
    assert found == once(*range(count))


def test_bound_in_octets_is_shared_and_lanes_rest_until_rows_are_consumed(
    peer: Peer, opened: Callable[..., Backlog]
) -> None:
    peer.address("q")
    backlog = opened(spool_maxBytes="100k", credit="10", credit_maxBytes="20k")
    start = backlog.low()
    backlog.receive(emptying=False)
    until(lambda: peer.receivers("q") == 2)
    peer.put("q", [bytes(1000)] * 300)
    until(lambda: backlog.end(start) and backlog.is_resting(start))
    assert backlog.rows(start, backlog.end(start)) < 150
    taken = 0
    while taken < 300:
        end = backlog.end(start)
        taken += backlog.rows(start, end)
        backlog.release(end)
        start = end
        time.sleep(0.05)
    until(lambda: peer.held("q") == 0)


@lacks("nobody")
@pytest.mark.parametrize("dedup", ["none", "message-id"])
def test_message_that_came_to_two_lanes_is_one_row_if_ids_are_compared(
    opened: Callable[..., Backlog], tmp_path: Path, dedup: str
) -> None:
    """A message of a dead receiver comes to another, in the same batch or a later one."""
    where = str(tmp_path / "spool")
    one, two = LaneSpool(where, "a"), LaneSpool(where, "b")
    put(one, 1, 2, 3, named=True)
    put(two, 3, 4)
    backlog = opened(lanes="external", dedup=dedup)
    start = backlog.low()
    end = again(backlog, backlog.end(start))
    put(two, 2, 5, named=True)
    last = again(backlog, backlog.end(end))
    for _ in range(2):  # planned again, a batch is the same
        batches = bodies(backlog, start, end), bodies(backlog, end, last)
        if dedup == "none":
            assert batches == (once(1, 2, 3, 3, 4), once(2, 5))
        else:
            assert batches == (once(1, 2, 3, 4), once(5))
        backlog.release(end)
    for each in (one, two):
        each.close()


@lacks("nobody")
def test_rows_of_the_spool_are_compared_with_those_of_lanes(
    peer: Peer, opened: Callable[..., Backlog], tmp_path: Path
) -> None:
    peer.put("q", numbered(3))
    backlog = opened(lanes="1", dedup="message-id")
    start = backlog.low()
    backlog.receive(emptying=True)
    until(lambda: backlog.end(start).row == 3)
    first = backlog.offset(backlog.end(start))
    lane = LaneSpool(str(tmp_path / "spool"), "a")
    put(lane, 2, 3, named=True)
    backlog = opened(lanes="external", dedup="message-id")
    at = backlog.position(first)
    assert bodies(backlog, at, backlog.end(at)) == once(3)
    assert bodies(backlog, start, backlog.end(start)) == once(0, 1, 2, 3)
    lane.close()


@lacks("nobody")
def test_external_lanes_are_read_as_far_as_they_were_when_the_run_began(
    opened: Callable[..., Backlog], objects: ObjectServer, tmp_path: Path
) -> None:
    where = objects.uri(tmp_path.name)
    lane = LaneSpool(where, "a")
    put(lane, 1, 2)
    backlog = opened(lanes="external", spool=where)
    start = backlog.low()
    backlog.receive(emptying=True)
    backlog.freeze()
    put(lane, 3)
    backlog.wait(start, None)
    end = backlog.end(start)
    assert bodies(backlog, start, end) == once(1, 2)
    offset = backlog.offset(end)
    backlog = opened(lanes="external", spool=where)
    assert bodies(backlog, backlog.position(offset), backlog.end(end)) == once(3)
    with pytest.raises(SpoolError, match="the checkpoint belongs to the spool x"):
        backlog.position(offset | {"spool": "x"})
    with pytest.raises(SpoolError, match="the checkpoint is at row 7 of a folder"):
        backlog.position(offset | {"seq": 7})


@lacks("nobody")
def test_lanes_that_are_gone_from_the_disk_are_an_error(opened: Callable[..., Backlog]) -> None:
    backlog = opened(lanes="1")
    with pytest.raises(SpoolError, match="has rows of lanes, and the spool has none"):
        backlog.position(backlog.offset(backlog.low()) | {"lanes": {"lane-0/x": 5}})


@lacks("keeping")
def test_link_of_each_lane_is_kept_and_nothing_comes_twice(
    server: Server, opened: Callable[..., Backlog], failures: Failures
) -> None:
    failures.delay("synced", 0.3)
    backlog = opened(dedup="link", credit="100")
    start = backlog.low()
    backlog.receive(emptying=False)
    until(lambda: server.receivers("q") == 2)
    server.put("q", [b"%d" % number for number in range(800)])  # without ids
    for victim in (0, 1):
        before = backlog.end(start)
        until(lambda before=before: backlog.rows(before, backlog.end(before)) > 0)  # type: ignore[misc]
        os.kill(pids(backlog)[victim], signal.SIGKILL)
    until(lambda: backlog.check() or server.held("q") == 0)
    assert bodies(backlog, start, again(backlog, backlog.end(start))) == once(*range(800))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lanes": "0"}, "expected a whole number, at least 1, or external"),
        ({"lanes": "some"}, "or external"),
        (
            {"lanes": "2", "durable": "true", "linkName": "l", "containerId": "c"},
            "'lanes' = 2 would make as many",
        ),
    ],
)
def test_options_that_lanes_cannot_have(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        QueueOptions.parse({"url": "amqp://h", "address": "q", "spool": "/s"} | given)


def test_bounds_and_link_names_are_each_lanes_own() -> None:
    given: dict[str, Any] = {"linkName": "l", "containerId": "c", "spool.maxBytes": "10k"}
    options = QueueOptions.parse({"url": "amqp://h", "address": "q", "spool": "/s", "lanes": "4"} | given)
    task = lane_processes._task(options, 2, 4, False)
    assert (task.lane, task.options.link_name, task.options.spool_max_bytes) == ("lane-2", "l-lane-2", 2560)
    assert task.options.credit_max_bytes == options.credit_max_bytes // 4
