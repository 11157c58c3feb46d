"""Tables that are divided into parts: totals, pages and deletions, in each store, against a model."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scaled import scaled
from trio_amqp10 import MemoryStore, SqliteStore, StoreError
from trio_amqp10.broker.stores import part_deletions
from trio_amqp10.broker.stores.base import Page, PartRows, PartTotals

from .rows import PARCELS, write

TOWNS = ("Ulm", "Zürich", "\0hidden")

changes = st.dictionaries(
    st.integers(1, 12),
    st.none()
    | st.tuples(
        st.sampled_from(TOWNS), st.integers(-3, 3), st.binary(max_size=3), st.sampled_from([None, 5, 1.5])
    ),
    max_size=6,
)
deletions = st.builds(
    PartRows,
    st.sampled_from(TOWNS),
    st.none() | st.tuples(st.integers(-3, 3), st.integers(0, 12)),
    st.integers(0, 12),
    st.lists(st.integers(1, 12), max_size=3, unique=True).map(tuple),
)
batches = st.lists(st.tuples(changes, st.none() | deletions), max_size=5)


def position(row: Any) -> Any:
    return row[2], row[0]


def apply(model: dict[int, Any], batch: dict[Any, Any]) -> None:
    """Do to a model what a batch does to a store."""
    for key in [key for key in batch if isinstance(key, PartRows)]:
        for number, row in list(model.items()):
            after = key.after is None or position(row) > key.after
            if row[1] == key.part and after and number <= key.last and number not in key.kept:
                del model[number]
    for key, row in batch.items():
        if row is not None:
            model[key] = row
        elif not isinstance(key, PartRows):
            model.pop(key, None)


def totals_of(model: dict[int, Any]) -> dict[Any, PartTotals]:
    towns = {each[1]: [row for row in model.values() if row[1] == each[1]] for each in model.values()}
    return {
        town: PartTotals(
            len(rows),
            sum(len(row[3]) for row in rows),
            min((row[4] for row in rows if row[4] is not None), default=None),
            min(row[2] for row in rows),
            max(row[2] for row in rows),
            max(row[2] & 1 for row in rows),
        )
        for town, rows in towns.items()
    }


@pytest.mark.parametrize("kind", ["memory", "sqlite", "sqlite in pieces"])
@settings(max_examples=scaled(60), deadline=None)
@given(batches, st.integers(1, 4), st.sampled_from([float("inf"), 4, 0]))
def test_pages_and_totals_are_those_of_the_rows(
    kind: str, script: list[Any], most: int, octets: float
) -> None:
    model: dict[int, Any] = {}

    async def main(folder: str) -> None:
        store: Any = MemoryStore() if kind == "memory" else SqliteStore(Path(folder) / "store")
        with store:
            store.totals(PARCELS)
            for changed, deletion in script:
                batch: dict[Any, Any] = {
                    key: None if row is None else (key, *row) for key, row in changed.items()
                }
                if deletion is not None:
                    batch[deletion] = None
                assert await write(store, {PARCELS: batch}) is None
                apply(model, batch)
                for town in TOWNS:
                    rows = sorted((row for row in model.values() if row[1] == town), key=position)
                    assert read_all(store, town, most, octets) == rows
        if kind != "memory":
            store = SqliteStore(Path(folder) / "store")
        with store:
            assert store.totals(PARCELS) == totals_of(model)
            assert store.last_key(PARCELS) == max(model, default=0)
            assert sorted(store.pick(PARCELS, range(3, 9))) == sorted(
                row for key, row in model.items() if 3 <= key < 9
            )

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if kind == "sqlite in pieces":
            patch.setattr(part_deletions, "MOST", 2)
        trio.run(main, folder)


def read_all(store: Any, town: Any, most: int, octets: float = float("inf")) -> list[Any]:
    """Return all rows of a part, read page by page."""
    found: list[Any] = []
    after = None
    while page := list(store.read(Page(PARCELS, town, after, most, octets))):
        assert len(page) <= most
        assert sum(len(row[3]) for row in page[:-1]) <= octets
        found += page
        after = position(page[-1])
    return found


def parcel(key: int, town: str = "Ulm") -> tuple[Any, ...]:
    return key, town, key, b"octets", None


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_page_that_is_fetched_has_the_batch_before_it(kind: str, tmp_path: Path) -> None:
    store: Any = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "store")
    with store:
        store.totals(PARCELS)
        told: list[Any] = []
        over = trio.Event()

        def found(rows: Any, failure: StoreError | None) -> None:
            told.append((list(rows), failure))
            over.set()

        store.write({PARCELS: {1: parcel(1)}}, told.append)
        store.fetch(Page(PARCELS, "Ulm", None, 5), found)
        assert not told
        with trio.fail_after(60):
            await over.wait()
        assert told == [None, ([parcel(1)], None)]


async def test_sqlite_store_reports_a_page_that_cannot_be_read(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        store.totals(PARCELS)
        assert await write(store, {PARCELS: {1: parcel(1)}}) is None
        store._db.execute("DROP INDEX parts_of_parcels")  # pyright: ignore[reportPrivateUsage]
        page = Page(PARCELS, "Ulm", None, 5)
        with pytest.raises(StoreError, match="no such index"):
            store.read(page)
        failures: list[StoreError | None] = []
        over = trio.Event()

        def found(_rows: Any, failure: StoreError | None) -> None:
            failures.append(failure)
            over.set()

        store.fetch(page, found)
        with trio.fail_after(60):
            await over.wait()
        assert "no such index" in str(failures[0])
    with pytest.raises(StoreError, match="is closed"):
        store.read(page)
    with pytest.raises(StoreError, match="is closed"):
        store.fetch(page, found)


async def test_sqlite_store_of_an_earlier_version_gets_its_index_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "trio_amqp10.container")
    path = tmp_path / "store"
    with SqliteStore(path) as store:
        assert store.totals(PARCELS) == {}
        assert await write(store, {PARCELS: {1: parcel(1), 2: parcel(2)}}) is None
    assert not caplog.records
    by_hand(path, "DROP INDEX parts_of_parcels")
    for _ in range(2):
        with SqliteStore(path) as store:
            assert store.totals(PARCELS) == {"Ulm": PartTotals(2, 12, None, 1, 2, 1)}
    assert [record.getMessage() for record in caplog.records] == [
        f"the store {str(path)!r} is of an earlier version: it gets an index of its parcels"
    ]


async def store_of_five(folder: Path) -> Path:
    """Make a file with five rows of a part."""
    path = folder / "store"
    with SqliteStore(path) as store:
        store.totals(PARCELS)
        assert await write(store, {PARCELS: {key: parcel(key) for key in range(1, 6)}}) is None
    return path


def by_hand(path: Path, statement: str) -> None:
    """Change a file that no store has open."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
        database.commit()


@pytest.mark.parametrize(
    "town", ["NULL", "7", "1.5", "x'ff00'", "''", "CAST(x'61ff62' AS TEXT)"], ids=lambda each: str(each)
)
async def test_rows_of_a_part_without_a_proper_name_are_read(town: str, tmp_path: Path) -> None:
    path = await store_of_five(tmp_path)
    by_hand(path, f"UPDATE parcels SET town = {town} WHERE id > 2")
    with SqliteStore(path) as store:
        totals = store.totals(PARCELS)
        assert totals.pop("Ulm") == PartTotals(2, 12, None, 1, 2, 1)
        ((name, of_name),) = totals.items()
        assert of_name == PartTotals(3, 18, None, 3, 5, 1)
        assert [row[0] for row in read_all(store, name, 2)] == [3, 4, 5]
        assert [row[0] for row in read_all(store, "Ulm", 2)] == [1, 2]


@pytest.mark.parametrize("place", ["NULL", "'last'", "1.5", "x'ff'", "CAST(x'61ff62' AS TEXT)"])
async def test_rows_without_a_proper_place_do_not_hide_the_others(place: str, tmp_path: Path) -> None:
    path = await store_of_five(tmp_path)
    by_hand(path, f"UPDATE parcels SET place = {place} WHERE id IN (2, 4)")
    with SqliteStore(path) as store:
        found = {row[0] for row in read_all(store, "Ulm", 1)}
        assert {1, 3, 5} <= found
        assert found == {1, 2, 3, 4, 5} or (place == "NULL" and len(found) == 4)


@pytest.mark.parametrize(("place", "left"), [("NULL", [1, 2, 4]), ("CAST(x'61ff62' AS TEXT)", [1, 4])])
async def test_rows_after_one_without_a_proper_place_are_deleted(
    place: str, left: list[int], tmp_path: Path
) -> None:
    path = await store_of_five(tmp_path)
    by_hand(path, f"UPDATE parcels SET place = CASE WHEN id < 3 THEN {place} ELSE x'ff' END")
    with SqliteStore(path) as store:
        (row,) = store.read(Page(PARCELS, "Ulm", None, 1))
        assert await write(store, {PARCELS: {PartRows("Ulm", (row[2], row[0]), 5, (4,)): None}}) is None
        assert [row[0] for row in store.rows(PARCELS)] == left


@pytest.mark.logs_errors
async def test_index_that_is_out_of_order_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store"
    rows = {key: (key, "Ulm", key, b"x", None) for key in range(1, 4)}
    with SqliteStore(path) as store:
        store.totals(PARCELS)
        assert await write(store, {PARCELS: rows}) is None
    with closing(sqlite3.connect(path)) as db:
        ((root,),) = db.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'").fetchall()
        ((size,),) = db.execute("PRAGMA page_size").fetchall()
    octets = bytearray(path.read_bytes())
    second = octets.index(b"Ulm", octets.index(b"Ulm", (root - 1) * size) + 1)
    octets[second : second + 3] = b"Ulk"  # as a bit that flips does
    path.write_bytes(octets)
    with SqliteStore(path) as store:
        assert store.totals(PARCELS) == totals_of(rows)
        assert store.read(Page(PARCELS, "Ulm", None, 9, 99)) == list(rows.values())
    assert [each.levelname for each in caplog.records] == ["ERROR"]
    assert "has a damaged index of its parcels, which is made again" in caplog.text
