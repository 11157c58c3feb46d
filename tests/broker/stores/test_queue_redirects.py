"""The redirects of queues: in memory, and in a store that may fail."""

from __future__ import annotations

import pytest

from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.broker.stores.base import Batch, Done, StoreError, until_done
from trio_amqp10.broker.stores.group_commit import Journal
from trio_amqp10.broker.stores.queue_redirects import QueueRedirects

URL = "amqp://b.example:5672/q"


class FailingStore(MemoryStore):
    """A store that can refuse to write."""

    fails = False

    def write(self, batch: Batch, done: Done) -> None:
        """Write, or fail."""
        if self.fails:
            done(StoreError("the disk is gone"))
        else:
            super().write(batch, done)


async def keep(redirects: QueueRedirects, address: str, url: str | None) -> None:
    await until_done(lambda done: redirects.set(address, url, done))


async def test_without_a_store_they_are_in_memory() -> None:
    redirects = QueueRedirects(None)
    await keep(redirects, "q", URL)
    assert redirects.get("q") == URL
    await keep(redirects, "q", None)
    assert redirects.get("q") is None
    await keep(redirects, "q", URL)
    redirects.drop("q")
    redirects.drop("q")
    assert redirects.get("q") is None


@pytest.mark.parametrize("dropped", [False, True])
async def test_they_are_in_the_store(dropped: bool) -> None:
    store = MemoryStore()
    redirects = QueueRedirects(Journal(store))
    await keep(redirects, "q", URL)
    await keep(redirects, "p", "amqp://c.example:5672/p")
    again = QueueRedirects(Journal(store))
    assert (again.get("q"), again.get("p")) == (URL, "amqp://c.example:5672/p")
    if dropped:
        again.drop("q")
        await keep(again, "other", None)
    else:
        await keep(again, "q", None)
    after = QueueRedirects(Journal(store))
    assert (after.get("q"), after.get("p")) == (None, "amqp://c.example:5672/p")


@pytest.mark.logs_errors
async def test_nothing_changes_where_the_store_fails() -> None:
    store = FailingStore()
    redirects = QueueRedirects(Journal(store))
    await keep(redirects, "q", URL)
    store.fails = True
    for url in ("amqp://c.example:5672/q", None):
        with pytest.raises(StoreError, match="the disk is gone"):
            await keep(redirects, "q", url)
        assert redirects.get("q") == URL
