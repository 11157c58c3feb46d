"""Lanes in a folder and in an object store, written, read and deleted."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import trio_amqp10 as amqp
from trio_amqp10.spark import lane_spool, lanes_reader
from trio_amqp10.spark.lane_spool import LaneSpool
from trio_amqp10.spark.lanes_reader import LaneRows
from trio_amqp10.spark.manifest_catalog import Manifest, Positions
from trio_amqp10.spark.segments import StoredMessage, segment
from trio_amqp10.spark.spool import SpoolError, SpoolFullError
from trio_amqp10.spark.storage import FolderStore, is_remote, open_source, open_store, shown

from .desk import read
from .failures import call_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from trio_amqp10.spark.storage import Store

    from .objects import ObjectServer


@pytest.fixture(params=["folder", "objects"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new store of each kind."""
    if request.param == "folder":
        return str(tmp_path / "spool")
    objects: ObjectServer = request.getfixturevalue("objects")
    return objects.uri(tmp_path.name)


@pytest.fixture(autouse=True)
def _fresh_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_reader, "_AGE", 0.0)


@pytest.fixture
def opened() -> Iterator[Callable[..., LaneSpool]]:
    spools: list[LaneSpool] = []

    def open_one(where: str, lane: str = "a", **given: Any) -> LaneSpool:
        spools.append(LaneSpool(where, lane, **{"patience": 0.2, **given}))
        return spools[-1]

    yield open_one
    for each in spools:
        each.close()


def ids(*numbers: int) -> list[str | None]:
    return [f"ulong:{number}" for number in numbers]


def fill(numbers: tuple[int, ...]) -> Callable[[BinaryIO], None]:
    came = [StoredMessage(amqp.Message(b"%d" % n, message_id=n).to_payload(), b"t", 0) for n in numbers]
    table = segment(came, [0] * len(came), address="q", peer="p")

    def write(file: BinaryIO) -> None:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_batch(table)

    return write


def put(spool: LaneSpool, *numbers: int, named: bool = False) -> None:
    spool.write(len(numbers), fill(numbers), ids=ids(*numbers) if named else None)


def numbers(rows: LaneRows, start: Positions, end: Positions) -> list[int]:
    return [int(row["body"]) for row in read(rows.batch(start, end), columns="body")]


def test_rows_of_all_lanes_are_read_and_deleted_once_they_are_consumed(
    where: str, opened: Callable[..., LaneSpool]
) -> None:
    one, two = opened(where), opened(where, "b")
    put(one, 0, 1, 2)
    put(two, 3, 4)
    put(one, 5)
    rows = LaneRows(open_store(where))
    end = rows.ends({})
    assert sorted(end.values()) == [2, 4]
    assert numbers(rows, {}, end) == [0, 1, 2, 5, 3, 4]
    rows.release(end)
    rows.release(end)
    left = [Manifest.parse(name) for name in open_store(where).names("manifests")]
    assert sorted((each.lane, each.first) for each in left if each) == [
        ("a", 3),
        ("b", 0),
    ]  # the last of each lane
    assert len(open_store(where).names("segments")) == 2
    again = LaneRows(open_store(where))
    assert again.consumed == end
    assert numbers(again, end, again.ends(end)) == []


def test_receiver_goes_on_counting_where_the_one_before_it_ended(
    where: str, opened: Callable[..., LaneSpool]
) -> None:
    for first in (0, 3, 5):
        spool = opened(where)
        assert (spool.low, spool.end) == (first, first)
        put(spool, *range(first, {0: 3, 3: 5, 5: 6}[first]))
        spool.close()
    rows = LaneRows(open_store(where))
    found = read(rows.batch({}, rows.ends({})), columns="body,seq")
    assert [(row["seq"], int(row["body"])) for row in found] == [(number, number) for number in range(6)]


def test_receiver_that_was_taken_for_dead_loses_nothing_and_ends(
    objects: ObjectServer, tmp_path: Path, opened: Callable[..., LaneSpool]
) -> None:
    """An object store has no locks: both receivers write, and rows of both are read."""
    where = objects.uri(tmp_path.name)
    zombie = opened(where)
    put(zombie, 0, 1)
    successor = opened(where)
    put(successor, 2, 3)
    rows = LaneRows(open_store(where))
    seen = rows.ends({})
    assert numbers(rows, {}, seen) == [0, 1, 2, 3]
    rows.release(seen)
    put(zombie, 4, 5)
    put(successor, 6)
    rows = LaneRows(open_store(where))
    assert numbers(rows, seen, rows.ends(seen)) == [4, 5, 6]
    successor.refresh()
    with pytest.raises(
        SpoolError, match=r"another receiver began with epoch 2, and this one has 1.*stay valid"
    ):
        zombie.refresh()


def test_folder_has_one_receiver_for_each_lane(tmp_path: Path, opened: Callable[..., LaneSpool]) -> None:
    opened(str(tmp_path))
    opened(str(tmp_path), "b")
    with pytest.raises(SpoolError, match="each lane has one receiver at a time"):
        opened(str(tmp_path))


def test_lane_is_full_until_somebody_else_has_consumed(where: str, opened: Callable[..., LaneSpool]) -> None:
    spool = opened(where, max_bytes=2000)
    while not spool.full:
        put(spool, 1)
    assert spool.size >= 2000
    assert spool.waiting_since is not None
    spool.close()
    successor = opened(where, max_bytes=2000)
    assert successor.full  # what was left counts
    rows = LaneRows(open_store(where))
    rows.release(rows.ends({}))
    successor.refresh()
    assert (successor.full, successor.size, successor.waiting_since) == (False, 0, None)
    put(successor, 2)
    assert successor.end == successor.low + 1


class Failing:
    """A store that fails for a while when something is put."""

    def __init__(self, store: Store, failures: list[OSError | SpoolFullError], of: str) -> None:
        self._store = store
        self.failures = failures
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, name: str, octets: bytes, *, lasting: bool = True) -> None:
        if name.startswith(self._of) and self.failures:
            raise self.failures.pop(0)
        self._store.put(name, octets, lasting=lasting)


@pytest.mark.parametrize("what", ["segments", "manifests"])
def test_store_that_fails_for_a_moment_gets_the_same_octets_again(
    tmp_path: Path, what: str, opened: Callable[..., LaneSpool]
) -> None:
    failing = Failing(FolderStore(tmp_path), [OSError(errno.EIO, "no"), OSError(errno.EIO, "no")], what)
    spool = opened("", store=failing, patience=30.0)
    put(spool, 1, 2)
    assert not failing.failures
    rows = LaneRows(open_store(str(tmp_path)))
    assert numbers(rows, {}, rows.ends({})) == [1, 2]
    failing.failures += [OSError(errno.EIO, "no")] * 5
    spool._patience = 0.1
    with pytest.raises(OSError, match="no"):
        put(spool, 3)
    assert numbers(rows, {}, rows.ends({})) == [1, 2]


@pytest.mark.parametrize("what", ["segments", "manifests"])
def test_store_without_room_is_full_and_nothing_has_changed(
    tmp_path: Path, what: str, opened: Callable[..., LaneSpool], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(FolderStore(tmp_path), [SpoolFullError("full")], what)
    spool = opened("", store=failing)
    with pytest.raises(SpoolFullError):
        put(spool, 1, 2)
    assert (spool.full, spool.end) == (True, 0)
    put(spool, 1, 2, 3)
    assert not spool.full
    rows = LaneRows(open_store(str(tmp_path)))
    assert numbers(rows, {}, rows.ends({})) == [1, 2, 3]


def test_full_store_after_a_failure_is_a_failure(tmp_path: Path, opened: Callable[..., LaneSpool]) -> None:
    """A failed write may have stored the segment, so no other may begin at its row."""
    failing = Failing(FolderStore(tmp_path), [OSError(errno.EIO, "no"), SpoolFullError("full")], "manifests")
    spool = opened("", store=failing)
    with pytest.raises(OSError, match="full"):
        put(spool, 1, 2)
    assert not spool.full


def test_disk_without_room_is_told_from_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)

    def fail(code: int) -> Callable[[int], None]:
        def fsync(_: int) -> None:
            raise OSError(code, "no")

        return fsync

    for code, kind in ((errno.ENOSPC, SpoolFullError), (errno.EIO, OSError)):
        with monkeypatch.context() as patch, pytest.raises(kind, match="no"):
            patch.setattr("os.fsync", fail(code))
            store.put("a", b"x")
        assert store.names("") == []


class Died(BaseException):
    """The machine has lost its power."""


def die() -> None:
    raise Died


@pytest.mark.parametrize("place", ["unwritten", "written", "published"])
def test_receiver_that_dies_leaves_a_segment_whole_or_none(
    where: str, place: str, opened: Callable[..., LaneSpool], monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = opened(where)
    put(spool, 0, 1)
    with monkeypatch.context() as patch, pytest.raises(Died):
        call_at(patch, place, die)
        put(spool, 2, 3)
    spool.close()
    successor = opened(where)
    put(successor, 2, 3)  # it was not accepted, so it comes again
    rows = LaneRows(open_store(where))
    found = numbers(rows, {}, rows.ends({}))
    assert found == ([0, 1, 2, 3, 2, 3] if place == "published" else [0, 1, 2, 3])


def test_segment_that_was_never_published_is_deleted_after_a_day(
    where: str, opened: Callable[..., LaneSpool], monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = opened(where)
    put(spool, 0, 1)
    with monkeypatch.context() as patch, pytest.raises(Died):
        call_at(patch, "written", die)
        put(spool, 2, 3)
    store = open_store(where)
    (orphan,) = {*store.names("segments")} - {
        each.segment for each in map(Manifest.parse, store.names("manifests")) if each
    }
    rows = LaneRows(store)
    rows.release(rows.ends({}))
    assert orphan in store.names("segments")
    put(opened(where, "b"), 4)
    monkeypatch.setattr(lanes_reader, "_ORPHANED", -1.0)
    rows.release(rows.ends({}))
    assert orphan in store.names("segments")  # it has looked a moment ago
    rows = LaneRows(store)
    put(opened(where, "c"), 5)
    rows.release(rows.ends({}))
    assert orphan not in store.names("segments")
    assert sorted(numbers(rows, {}, rows.ends({}))) == [0, 1, 4, 5]


def test_age_of_a_segment_is_told_by_newer_ones(tmp_path: Path, opened: Callable[..., LaneSpool]) -> None:
    spool = opened(str(tmp_path))
    orphan, other = tmp_path / "segments/a/x.arrow", tmp_path / "segments/b/tmp-1-y.arrow"
    for path in (orphan, other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1000, 1000))
    rows = LaneRows(FolderStore(tmp_path))
    rows.release({"nobody": 1})
    assert orphan.exists()
    put(spool, 0)
    rows = LaneRows(FolderStore(tmp_path))
    rows.release(rows.ends({}))
    assert not orphan.exists()
    assert not other.exists()
    assert len(FolderStore(tmp_path).names("segments")) == 1


@pytest.mark.parametrize("place", ["written", "published"])
def test_segment_that_takes_too_long_is_not_accepted(
    where: str, place: str, opened: Callable[..., LaneSpool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may be stopped for a day, and wake up when what it stored is deleted."""
    call_at(monkeypatch, place, lambda: monkeypatch.setattr(lane_spool, "_PUBLISHED", -1.0))
    with pytest.raises(SpoolError, match="under way for too long"):
        put(opened(where), 0, 1)
    assert len(open_store(where).names("manifests")) == (place == "published")


@pytest.mark.parametrize("place", ["consumed", "deleted"])
def test_query_that_dies_while_it_deletes_is_followed_by_one_that_does(
    where: str, place: str, opened: Callable[..., LaneSpool], monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = opened(where)
    for number in range(5):
        put(spool, number)
    rows = LaneRows(open_store(where))
    end = rows.ends({})

    with monkeypatch.context() as patch, pytest.raises(Died):
        call_at(patch, place, die)
        rows.release(end)
    again = LaneRows(open_store(where))
    assert numbers(again, end, again.ends(end)) == []
    put(spool, 5)
    after = again.ends(end)
    assert numbers(again, end, after) == [5]
    again.release(after)
    assert len(open_store(where).names("segments")) == len(open_store(where).names("manifests")) == 1


class Away:
    """A store that can be away."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        if self.is_away and callable(getattr(self._store, name)):
            raise OSError(errno.EIO, "away")
        return getattr(self._store, name)


def test_store_that_fails_for_a_while_has_nothing_new(
    tmp_path: Path, opened: Callable[..., LaneSpool]
) -> None:
    spool = opened(str(tmp_path))
    put(spool, 0)
    put(spool, 1)
    store = Away(FolderStore(tmp_path))
    rows = LaneRows(store, patience=60)
    end = rows.ends({})
    store.is_away = True
    assert rows.ends(end) == end
    rows.release(end)
    assert rows.consumed == {}
    store.is_away = False
    assert rows.ends(end) == end
    rows.release(end)
    assert rows.consumed == end
    assert len(store.names("segments")) == 1
    store.is_away = True
    rows._patience = 0.0
    with pytest.raises(OSError, match="away"):
        rows.ends(end)
    put(spool, 2)
    store.is_away = False
    assert numbers(rows, end, rows.ends(end)) == [2]


def test_second_query_is_noticed(where: str, opened: Callable[..., LaneSpool]) -> None:
    put(opened(where), 0)
    first = LaneRows(open_store(where))
    end = first.ends({})
    LaneRows(open_store(where))
    with pytest.raises(SpoolError, match="another query consumes the rows"):
        first.release(end)


def test_ids_of_all_lanes_are_compared_and_a_batch_that_is_planned_again_is_the_same(
    where: str, opened: Callable[..., LaneSpool]
) -> None:
    one, two = opened(where), opened(where, "b")
    put(one, 0, 1, named=True)
    put(two, 1, 2)  # written without ``dedup=message-id``
    rows = LaneRows(open_store(where), window=3)
    first = rows.ends({})
    rows.release({})
    put(one, 2, 3, named=True)
    put(two, 4, 5, named=True)
    rows = LaneRows(open_store(where), window=3)
    second = rows.ends(first)

    def seen(before: Positions, after: Positions) -> tuple[list[Any], list[Any]]:
        old, new = rows.identified(before, after)
        return [each.ids for each in old], [each.ids for each in new]

    expected = ([ids(0, 1), ids(1, 2)], [ids(2, 3), ids(4, 5)])
    assert seen({}, first) == ([], expected[0])
    assert seen(first, second) == expected
    rows.release(first)
    rows = LaneRows(open_store(where), window=3)
    assert seen(first, second) == expected


def test_rows_that_somebody_has_deleted_are_an_error(where: str, opened: Callable[..., LaneSpool]) -> None:
    spool = opened(where)
    put(spool, 0, 1)
    put(spool, 2, 3)
    store = open_store(where)
    rows = LaneRows(store)
    end = rows.ends({})
    first, last = sorted(store.names("manifests"))
    store.delete(first)
    rows = LaneRows(store)
    with pytest.raises(SpoolError, match=r"rows 0 to 2 of a/.* are missing"):
        rows.ends({})
    with pytest.raises(SpoolError, match=r"2 rows of a batch are not in .* any more"):
        rows.batch({}, end)
    store.delete(last)
    with pytest.raises(SpoolError, match=r"4 rows of a batch are not in .* any more"):
        LaneRows(store).batch({}, end)


def test_batch_is_cut_by_rows_and_octets_from_each_lane(where: str, opened: Callable[..., LaneSpool]) -> None:
    one, two = opened(where), opened(where, "b")
    put(one, *range(90))
    put(two, *range(10))
    rows = LaneRows(open_store(where))
    end = rows.ends({})
    assert rows.cut({}, end, None, None) == rows.cut({}, end, 100, 10**9) == end
    cut = rows.cut({}, end, 50, None)
    assert sorted(cut.values()) == [5, 45]
    assert rows.rows({}, cut) == 50
    few = rows.cut({}, end, None, 1)
    assert rows.rows({}, few) == 1
    assert rows.octets({}).keys() == {"a", "b"}


def test_batch_has_first_what_was_listed_first_and_of_a_lane_what_was_written_first(
    where: str, opened: Callable[..., LaneSpool]
) -> None:
    one = opened(where)
    put(one, *range(10))
    rows = LaneRows(open_store(where))
    assert rows.rows({}, rows.ends({})) == 10
    one.close()
    put(opened(where), *range(10, 50))
    put(opened(where, "b"), *range(50, 70))
    end = rows.ends({})
    first = rows.cut({}, end, 4, None)
    assert numbers(rows, {}, first) == [*range(4)]
    second = rows.cut(first, end, 12, None)
    assert numbers(rows, first, second) == [*range(4, 14), 50, 51]
    again = LaneRows(open_store(where))  # which knows no order
    assert numbers(again, first, again.cut(first, again.ends(first), 12, None)) == [
        *range(4, 12),
        *range(50, 54),
    ]


def test_order_of_many_listings_is_remembered_roughly(
    where: str, opened: Callable[..., LaneSpool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes_reader, "_MOST_MARKS", 4)
    one, two = opened(where), opened(where, "b")
    rows = LaneRows(open_store(where))
    for number in range(6):
        put(one, 2 * number)
        put(two, 2 * number + 1)
        end = rows.ends({})
    position: Positions = {}
    for number in range(3):
        last = rows.cut(position, end, 4, None)
        assert sorted(numbers(rows, position, last)) == [*range(4 * number, 4 * number + 4)]
        position = last
    assert position == end


def test_newer_notes_are_refused_and_half_written_ones_waited_for(where: str) -> None:
    store = open_store(where)
    store.put("consumed.json", b'{"version": 1, ')
    assert LaneRows(store).consumed == {}
    store.put("consumed.json", json.dumps({"version": 2}).encode())
    with pytest.raises(SpoolError, match="is of version 2, and this program knows version 1"):
        LaneRows(store)


@pytest.mark.parametrize("name", ["", "a.b", "-a", "a/b", "x" * 64])
def test_names_that_no_lane_can_have_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="a lane cannot be called"):
        LaneSpool(str(tmp_path), name)


def test_small_files_of_a_lane(where: str, opened: Callable[..., LaneSpool]) -> None:
    spool = opened(where)
    assert spool.read_note("links") is None
    spool.write_note("links", "{}")
    spool.show_figures("metrics.json", "[]")
    assert (spool.read_note("links"), spool.read_note("metrics.json")) == ("{}", "[]")
    put(spool, 1)
    with open_source(spool.segments[0]) as file:
        assert pa.ipc.open_file(file).get_batch(0).num_rows == 1
    other = opened(where, "b")
    assert other.read_note("links") is None
    assert other.id != spool.id


def test_uri_that_no_store_has_is_refused_and_credentials_are_not_shown() -> None:
    with pytest.raises(SpoolError, match=r"nope://there/ cannot be used as a store"):
        open_store("nope://ada:enigma@there/x")
    assert shown("s3://ada:enigma@bucket/x?region=r") == "s3://bucket/x"
    assert shown("/a folder") == "/a folder"
    assert is_remote("s3://bucket/x")
    assert not is_remote("file:///x")
    assert not is_remote("/x")
    assert open_store("file:///tmp/a%20b").where == "/tmp/a b"
    assert open_store("file:/tmp/x").where == "/tmp/x"
    for where in ("nope:/there/x", "dbfs:/mnt/x"):
        assert is_remote(where)
        with pytest.raises(SpoolError, match="cannot be used as a store"):
            open_store(where)
    with pytest.raises(SpoolError, match="no absolute path"):
        open_store("file:x")


def test_relative_spool_is_shown_with_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store("orders").where == str(tmp_path / "orders")
    assert f"'orders' is relative to the working directory: it is {tmp_path / 'orders'}" in caplog.text
    caplog.clear()
    open_store(str(tmp_path / "orders"))
    assert not caplog.records
