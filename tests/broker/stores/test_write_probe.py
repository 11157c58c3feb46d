"""The probe of a store: it writes, and reports what the store reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.broker.stores.base import StoreError
from trio_amqp10.broker.stores.group_commit import Journal
from trio_amqp10.broker.stores.write_probe import PROBES, WriteProbe

if TYPE_CHECKING:
    from pathlib import Path


async def test_probe_writes_one_row_however_often_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with amqp.SqliteStore(path) as store:
        probe = WriteProbe(journal := Journal(store))
        await probe.write(1.0)
        await probe.write(2.5)
        assert journal.commits == 2
    with amqp.SqliteStore(path) as store:
        assert list(store.rows(PROBES)) == [(1, 2.5)]


@pytest.mark.logs_errors
async def test_probe_raises_what_the_store_reports_and_works_again() -> None:
    store = MemoryStore()
    probe = WriteProbe(Journal(store))
    store.failure = StoreError("the disk is gone")
    with pytest.raises(StoreError, match="the disk is gone"):
        await probe.write(1.0)
    store.failure = None
    await probe.write(2.0)
