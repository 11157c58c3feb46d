"""Fixtures for the tests of the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trio_amqp10.broker.stores.base import Store


@pytest.fixture(params=["none", "memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store | None]:
    if request.param == "none":
        yield None
    elif request.param == "memory":
        yield amqp.MemoryStore()
    else:
        with amqp.SqliteStore(tmp_path / "store") as made:
            yield made
