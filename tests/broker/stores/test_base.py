"""What every store does: rows come back by their key, and are replaced or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10 import MemoryStore, SqliteStore, StoreTable

from .rows import THINGS, row, write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NAMES = StoreTable("names", ("name", "id"), str)


@pytest.fixture(params=["memory", "sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Gives a store; called again, what the next process would get."""
    if request.param == "memory":
        memory = MemoryStore()
        yield lambda: memory
        return
    stores: list[SqliteStore] = []

    def again() -> SqliteStore:
        if stores:
            stores[-1].close()
        stores.append(SqliteStore(tmp_path / "store"))
        return stores[-1]

    yield again
    stores[-1].close()


async def test_store_gives_rows_back_by_key_when_it_is_opened_again(reopen: Any) -> None:
    store = reopen()
    assert list(store.rows(THINGS)) == []
    assert list(store.rows(NAMES)) == []
    octets = bytes(range(256)) * 10
    things = {key: row(key, octets) for key in (3, 1, 2)}
    assert await write(store, {THINGS: things, NAMES: {"b": ("b", None), "a": ("a", 1.5)}}) is None
    store = reopen()
    assert list(store.rows(THINGS)) == [row(1, octets), row(2, octets), row(3, octets)]
    assert list(store.rows(NAMES)) == [("a", 1.5), ("b", None)]


async def test_store_replaces_and_deletes_when_a_key_is_written_again(reopen: Any) -> None:
    store = reopen()
    list(store.rows(THINGS))
    many = 300  # more than one statement takes
    assert await write(store, {THINGS: {key: row(key) for key in range(many)}}) is None
    gone: dict[int, Any] = dict.fromkeys(range(10, many))
    assert await write(store, {THINGS: {**gone, 5: row(5, b"new"), 1000: None}}) is None
    assert list(reopen().rows(THINGS)) == [row(key, b"new" if key == 5 else b"") for key in range(10)]


@pytest.mark.parametrize("step", [1, 2, 7])
async def test_store_deletes_no_row_between_those_that_it_deletes(reopen: Any, step: int) -> None:
    store = reopen()
    list(store.rows(THINGS))
    many = range(1000)
    assert await write(store, {THINGS: {key: row(key) for key in many}}) is None
    gone = many[200:900:step]
    drops: dict[int, None] = dict.fromkeys(reversed(gone))
    assert await write(store, {THINGS: drops}) is None
    assert list(reopen().rows(THINGS)) == [row(key) for key in many if key not in gone]


async def test_store_deletes_rows_whose_keys_are_texts(reopen: Any) -> None:
    store = reopen()
    list(store.rows(NAMES))
    names = {str(number): (str(number), number) for number in range(10)}
    assert await write(store, {NAMES: names}) is None
    drops: dict[str, None] = dict.fromkeys("2345")
    assert await write(store, {NAMES: drops}) is None
    assert list(reopen().rows(NAMES)) == [names[name] for name in "016789"]


@pytest.mark.parametrize("filled", [(), (0,), (3,), (259,), range(260)])
async def test_store_keeps_each_cell_of_a_column_that_is_mostly_null(
    reopen: Any, filled: Sequence[int]
) -> None:
    store = reopen()
    list(store.rows(NAMES))
    rows = {
        name: (name, number if number in filled else None)
        for number, name in enumerate(f"{number:03}" for number in range(260))
    }
    assert await write(store, {NAMES: rows}) is None
    assert list(reopen().rows(NAMES)) == list(rows.values())


@pytest.mark.parametrize("store", ["orders.db", 5])
async def test_path_in_place_of_a_store_is_refused(store: Any) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=r"expected a store, such as SqliteStore\(path\)"):
        amqp.Container(store=store)
    async with amqp.Container().connect() as conn:
        with pytest.raises(
            amqp.LocalProtocolError, match=r"expected a store, such as SqliteTerminusStore\(path\)"
        ):
            async with conn.open_receiver("q", name="orders-of-desk-1", store=store):
                pass
