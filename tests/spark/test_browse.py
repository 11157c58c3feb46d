"""Copies of what a queue has: all or the first few, and the queue keeps everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10.spark.browse import browse
from trio_amqp10.spark.options import BrowseOptions

from .desk import dotted, numbered
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def full() -> Iterator[Server]:
    """A container with ten messages in its queue."""
    with Server() as running:
        running.address("q")
        running.put("q", numbered(10))
        yield running


def seen(peer: Server, **given: str) -> list[tuple[int, bytes]]:
    options = BrowseOptions.parse({"url": peer.url, "address": peer.address("q")} | dotted(given))
    return [(row["seq"], row["body"]) for batch in browse(options) for row in batch.to_pylist()]


def test_queue_is_seen_whole_and_the_same_again(full: Server) -> None:
    found = seen(full, credit="4")
    assert found == [(number, b"%d" % number) for number in range(10)]
    assert seen(full) == found
    assert full.held("q") == 10


@pytest.mark.parametrize("limit", [1, 7, 10, 30])
def test_no_more_are_seen_than_are_wanted(full: Server, limit: int) -> None:
    assert len(seen(full, credit="4", browseLimit=str(limit))) == min(limit, 10)


def test_iteration_may_end_before_the_queue_does(full: Server) -> None:
    options = BrowseOptions.parse({"url": full.url, "address": full.address("q"), "credit": "1"})
    batches = browse(options)
    assert next(batches).num_rows == 1
    batches.close()  # type: ignore[attr-defined]  # it is a generator
    assert full.held("q") == 10
