"""A store in memory, for tests of programs: it fails when it is told to."""

from __future__ import annotations

from trio_amqp10 import MemoryStore, StoreFullError

from .rows import THINGS, row, write


async def test_memory_store_fails_when_it_is_told_to() -> None:
    store = MemoryStore()
    list(store.rows(THINGS))
    store.failure = StoreFullError("full")
    assert await write(store, {THINGS: {1: row(1)}}) is store.failure
    assert list(store.rows(THINGS)) == []
    assert repr(store) == "<MemoryStore rows=0>"
