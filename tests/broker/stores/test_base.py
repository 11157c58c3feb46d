"""What every store does: rows come back by their key, and are replaced or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10 import MemoryStore, SqliteStore, StoreTable

from .rows import THINGS, row, write

if TYPE_CHECKING:
    from collections.abc import Iterator
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
