"""Many rows that are deleted together, piece by piece: what a reader, a kill and a full disk find between two pieces."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import trio

from trio_amqp10 import SqliteStore, StoreError, StoreFullError
from trio_amqp10.broker.stores import part_deletions
from trio_amqp10.broker.stores.base import Page, PartRows
from trio_amqp10.broker.stores.part_deletions import PartDeletion

from .rows import PARCELS, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COUNT = 20
ALL = PartRows("Ulm", None, COUNT)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_deletions, "MOST", 3)


def parcel(key: int, town: str = "Ulm", octets: bytes = b"octets") -> tuple[Any, ...]:
    return key, town, key, octets, None


async def fill(store: SqliteStore) -> None:
    """Write rows of the part Ulm, and one of another part."""
    store.totals(PARCELS)
    rows = {key: parcel(key) for key in range(1, COUNT + 1)}
    assert await write(store, {PARCELS: rows | {100: parcel(100, "Bonn")}}) is None


def left_in(path: Path) -> list[int]:
    """Return the keys of all rows that a new process finds."""
    with SqliteStore(path) as store:
        store.totals(PARCELS)
        found: list[Any] = [row[0] for row in store.rows(PARCELS)]
        return found


class Pieces:
    """Holds the pieces of a store back, and counts those that begin."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, before: Callable[[], object] | None = None) -> None:
        self.count = 0
        self.may_begin = before is not None
        deletes = SqliteStore._delete_piece  # pyright: ignore[reportPrivateUsage]

        def delete_piece(store: SqliteStore) -> StoreError | None:
            self.count += 1
            if before is not None:
                before()
            return deletes(store)

        def has_piece(store: SqliteStore) -> bool:
            return self.may_begin and bool(store._deletions) and not store._deletions_fail  # pyright: ignore[reportPrivateUsage]

        monkeypatch.setattr(SqliteStore, "_delete_piece", delete_piece)
        monkeypatch.setattr(SqliteStore, "_has_piece", property(has_piece))


async def test_rows_are_deleted_in_pieces_and_the_answer_waits_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = Pieces(monkeypatch, lambda: None)
    with SqliteStore(tmp_path / "store") as store:
        await fill(store)
        assert await write(store, {PARCELS: {ALL: None}}) is None
    assert pieces.count == COUNT // 3
    assert left_in(tmp_path / "store") == [100]
    with closing(sqlite3.connect(tmp_path / "store")) as database:
        assert database.execute("SELECT * FROM part_deletions").fetchall() == []


async def test_small_deletion_leaves_no_trace(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        await fill(store)
        assert await write(store, {PARCELS: {PartRows("Ulm", (18, 18), COUNT): None}}) is None
    with closing(sqlite3.connect(tmp_path / "store")) as database:
        assert database.execute("SELECT count(*) FROM parcels").fetchone() == (19,)
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    assert ("part_deletions",) not in tables


@pytest.mark.parametrize("octets", [1, 100, 1000])
async def test_piece_of_large_rows_has_few_of_them(
    octets: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_deletions, "MOST", 10)
    monkeypatch.setattr(part_deletions, "MOST_OCTETS", 300)
    pieces = Pieces(monkeypatch, lambda: None)
    with SqliteStore(tmp_path / "store") as store:
        store.totals(PARCELS)
        rows = {key: parcel(key, octets=bytes(octets)) for key in range(1, COUNT + 1)}
        assert await write(store, {PARCELS: rows}) is None
        assert await write(store, {PARCELS: {ALL: None}}) is None
    assert pieces.count == {1: 2, 100: 6, 1000: 20}[octets]
    assert left_in(tmp_path / "store") == []


@pytest.mark.parametrize("kept", [(), (2, 9, COUNT)])
async def test_kill_before_any_piece_brings_nothing_back_and_takes_nothing_new(
    kept: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives: list[Path] = []

    def kill() -> None:  # What is in the files now is what another process would find.
        lives.append(tmp_path / f"life {len(lives)}")
        for suffix in ("", "-wal"):
            shutil.copy(f"{tmp_path / 'store'}{suffix}", f"{lives[-1]}{suffix}")

    with pytest.MonkeyPatch.context() as patch:
        held = Pieces(patch)
        with SqliteStore(tmp_path / "store") as store:
            await fill(store)
            assert await write(store, {PARCELS: {PartRows("Ulm", None, COUNT, kept): None}}) is None
            kill()
            assert await write(store, {PARCELS: {101: parcel(101), 102: (102, "Ulm", 1, b"", None)}}) is None
            kill()
            assert held.count == 0
    pieces = Pieces(monkeypatch, kill)
    assert left_in(tmp_path / "store") == [*kept, 100, 101, 102]
    assert pieces.count > 5
    monkeypatch.undo()
    monkeypatch.setattr(part_deletions, "MOST", 3)
    assert [left_in(life) for life in lives] == [[*kept, 100]] + [[*kept, 100, 101, 102]] * (len(lives) - 1)


async def test_page_of_the_part_has_no_row_that_is_deleted_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Pieces(monkeypatch)
    with SqliteStore(tmp_path / "store") as store:
        await fill(store)
        changes = {ALL: None, 101: parcel(101), 5: parcel(5)}
        assert await write(store, {PARCELS: changes}) is None
        assert [row[0] for row in store.read(Page(PARCELS, "Bonn", None, COUNT))] == [100]
        assert store._deletions  # pyright: ignore[reportPrivateUsage]
        assert [row[0] for row in store.read(Page(PARCELS, "Ulm", None, COUNT))] == [5, 101]
        assert not store._deletions  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("row", "at_once"),
    [
        (parcel(1), True),
        (parcel(19), True),
        ((19, "Ulm", None, b"", None), True),
        (parcel(4), False),
        (parcel(19, "Bonn"), False),
        (parcel(21), False),
    ],
)
async def test_row_that_is_written_again_stays(
    row: tuple[Any, ...], at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Pieces(monkeypatch)
    after = None if row[0] == 1 else (4, 4)
    with SqliteStore(tmp_path / "store") as store:
        await fill(store)
        assert await write(store, {PARCELS: {PartRows("Ulm", after, COUNT): None}}) is None
        assert await write(store, {PARCELS: {row[0]: row}}) is None
        assert bool(store._deletions) is not at_once  # pyright: ignore[reportPrivateUsage]
    before = set() if after is None else {1, 2, 3, 4}
    assert left_in(tmp_path / "store") == sorted({row[0], 100} | before)


async def test_batch_that_fails_forgets_its_deletion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Pieces(monkeypatch)
    with SqliteStore(tmp_path / "store") as store:
        await fill(store)
        failure = await write(store, {PARCELS: {ALL: None, 101: (101, object(), 1, b"", None)}})
        assert "failed" in str(failure)
        assert not store._deletions  # pyright: ignore[reportPrivateUsage]
    assert left_in(tmp_path / "store") == [*range(1, COUNT + 1), 100]


@pytest.mark.logs_errors
async def test_piece_that_fails_is_tried_again_after_the_next_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    deletes, tries, failed = PartDeletion.delete_some, [0], threading.Event()

    def delete_some(deletion: PartDeletion) -> bool:
        tries[0] += 1
        if tries[0] in {2, 3}:  # It is tried twice at once, because the log may be full.
            if tries[0] == 3:
                failed.set()
            raise sqlite3.OperationalError("no room")
        return deletes(deletion)

    monkeypatch.setattr(PartDeletion, "delete_some", delete_some)
    monkeypatch.setattr(SqliteStore, "_explain", lambda _store, failure: StoreFullError(str(failure)))
    with SqliteStore(tmp_path / "store") as store:
        await fill(store)
        assert await write(store, {PARCELS: {ALL: None}}) is None
        assert await trio.to_thread.run_sync(failed.wait, 60)
        assert await write(store, {PARCELS: {101: parcel(101)}}) is None
    with closing(sqlite3.connect(tmp_path / "store")) as database:
        assert database.execute("SELECT id FROM parcels").fetchall() == [(100,), (101,)]
    assert [record.getMessage() for record in caplog.records] == [
        "deleted rows are still in the file, and are deleted later: no room"
    ]


async def test_store_is_refused_when_the_deletions_of_an_earlier_process_cannot_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        Pieces(patch)
        with SqliteStore(tmp_path / "store") as store:
            await fill(store)
            assert await write(store, {PARCELS: {ALL: None}}) is None

    def fail(_deletion: PartDeletion) -> bool:
        raise sqlite3.OperationalError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(PartDeletion, "delete_some", fail)
        with pytest.raises(StoreError, match="no room"):
            left_in(tmp_path / "store")
    with closing(sqlite3.connect(tmp_path / "store")) as database:
        database.execute("UPDATE part_deletions SET kept = 'no list'")
        database.commit()
    with pytest.raises(StoreError, match="has a row that cannot be read"):
        left_in(tmp_path / "store")


@pytest.mark.parametrize("place", ["NULL", "'last'", "x'ff'", "CAST(x'61ff62' AS TEXT)"])
@pytest.mark.parametrize("killed", [False, True])
async def test_rows_without_a_proper_place_are_deleted_too(
    place: str, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(tmp_path / "store") as store:
        await fill(store)
    with closing(sqlite3.connect(tmp_path / "store")) as database:
        database.execute(f"UPDATE parcels SET place = {place} WHERE id BETWEEN 5 AND 12")
        database.execute("UPDATE parcels SET town = CAST(x'61ff62' AS TEXT) WHERE town = 'Ulm'")
        database.commit()
    with pytest.MonkeyPatch.context() as patch:
        if killed:
            Pieces(patch)
        with SqliteStore(tmp_path / "store") as store:
            ((town, _),) = [each for each in store.totals(PARCELS).items() if each[0] != "Bonn"]
            assert await write(store, {PARCELS: {PartRows(town, None, COUNT, (7,)): None}}) is None
    assert left_in(tmp_path / "store") == [7, 100]
