"""The journal: what shares a batch, who is told when, and what happens when the store fails."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10.broker.stores import StoreError, StoreFullError, StoreTable
from trio_amqp10.broker.stores import group_commit as module
from trio_amqp10.broker.stores.group_commit import Journal

if TYPE_CHECKING:
    from trio_amqp10.broker.stores.base import Done

THINGS = StoreTable("things", ("id", "name"))


class Scripted:
    """A store that writes when the test says so."""

    def __init__(self) -> None:
        self.batches: list[dict[Any, Any]] = []
        self.dones: list[Done] = []
        self.closed = False

    def rows(self, table: StoreTable) -> list[Any]:
        return []

    def write(self, batch: Any, done: Done) -> None:
        if self.closed:
            raise StoreError("closed")
        assert len(self.dones) == 0, "one at a time"
        self.batches.append({key: row for changes in batch.values() for key, row in changes.items()})
        self.dones.append(done)

    async def finish(self, failure: StoreError | None = None) -> None:
        """The batch that is being written is done."""
        await wait_all_tasks_blocked()
        self.dones.pop()(failure)
        await wait_all_tasks_blocked()


@pytest.fixture
def store() -> Scripted:
    return Scripted()


@pytest.fixture
def journal(store: Scripted) -> Journal:
    return Journal(store)  # type: ignore[arg-type]


async def test_journal_writes_what_one_turn_brings_in_one_batch(store: Scripted, journal: Journal) -> None:
    told: list[Any] = []
    journal.note(THINGS, 1, (1, "a"))
    journal.after(partial(told.append))
    journal.note(THINGS, 2, (2, "b"))
    assert journal.busy
    await wait_all_tasks_blocked()
    assert store.batches == [{1: (1, "a"), 2: (2, "b")}]
    assert told == []
    await store.finish()
    assert told == [None]
    assert not journal.busy


async def test_journal_gathers_the_next_batch_while_one_is_written(store: Scripted, journal: Journal) -> None:
    journal.note(THINGS, 1, (1, "a"))
    await wait_all_tasks_blocked()
    journal.note(THINGS, 2, (2, "b"))
    await trio.lowlevel.checkpoint()
    journal.note(THINGS, 3, (3, "c"))
    journal.note(THINGS, 2, None)
    await wait_all_tasks_blocked()
    assert len(store.batches) == 1
    await store.finish()
    assert store.batches[1:] == [{2: None, 3: (3, "c")}]
    await store.finish()
    assert not journal.busy


async def test_journal_tells_at_once_when_nothing_is_on_its_way(journal: Journal) -> None:
    told: list[Any] = []
    journal.after(told.append)
    assert told == [None]


async def test_journal_tells_in_turn_when_some_wait_without_a_change(
    store: Scripted, journal: Journal
) -> None:
    told: list[str] = []
    journal.note(THINGS, 1, (1, "a"))
    journal.after(lambda failure: told.append("first"))

    def later(failure: StoreError | None) -> None:
        told.append("second")
        journal.after(lambda failure: told.append("third"))

    journal.after(later)
    await wait_all_tasks_blocked()
    journal.after(lambda failure: told.append("behind"))
    await store.finish()
    assert told == ["first", "second", "behind", "third"]
    assert len(store.batches) == 1  # nothing to write, nothing written


@pytest.mark.logs_errors
async def test_journal_tells_of_a_failure_and_goes_on(store: Scripted, journal: Journal) -> None:
    told: list[Any] = []
    journal.note(THINGS, 1, (1, "a"))
    journal.after(told.append)
    full = StoreFullError("full")
    await store.finish(full)
    journal.note(THINGS, 2, (2, "b"))
    journal.after(told.append)
    await store.finish()
    assert told == [full, None]


@pytest.mark.logs_errors
async def test_journal_drops_again_with_the_next_batch_when_one_failed(
    store: Scripted, journal: Journal
) -> None:
    journal.drop(THINGS, 1)
    journal.note(THINGS, 2, None)
    await store.finish(StoreError("broken"))
    assert not journal.busy  # a store that fails is not asked all the time
    journal.note(THINGS, 3, (3, "c"))
    await store.finish(StoreError("broken still"))
    journal.note(THINGS, 4, (4, "d"))
    await store.finish()
    assert store.batches == [{1: None, 2: None}, {1: None, 3: (3, "c")}, {1: None, 4: (4, "d")}]


@pytest.mark.logs_errors
async def test_journal_writes_a_key_anew_when_its_drop_was_owed(store: Scripted, journal: Journal) -> None:
    journal.drop(THINGS, 1)
    await wait_all_tasks_blocked()
    journal.note(THINGS, 1, (1, "new"))
    await store.finish(StoreError("broken"))
    assert store.batches[1] == {1: (1, "new")}
    await store.finish()


async def test_journal_says_when_it_is_crowded_and_when_not_any_more(
    store: Scripted, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_ROWS", 2)
    called: list[str] = []

    def again(name: str) -> None:
        called.append(name)
        journal.note(THINGS, 10 + len(called), ())
        journal.note(THINGS, 20 + len(called), ())

    journal.note(THINGS, 1, ())
    assert not journal.crowded
    journal.note(THINGS, 2, ())
    assert journal.crowded
    await wait_all_tasks_blocked()
    journal.note(THINGS, 3, (), octets=16 * 1024 * 1024)
    assert journal.crowded
    journal.when_roomy(partial(again, "a"))
    journal.when_roomy(partial(again, "b"))
    await store.finish()
    assert called == []  # what was gathered meanwhile is still waiting
    await store.finish()
    assert called == ["a"]
    await store.finish()
    assert called == ["a", "b"]
    await store.finish()


@pytest.mark.logs_errors
async def test_journal_survives_who_fails_when_told(
    store: Scripted, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []
    journal.note(THINGS, 1, ())
    journal.after(lambda failure: 1 / 0)
    journal.after(told.append)
    await store.finish()
    assert told == [None]
    assert "a callback that waited for the store failed" in caplog.text


@pytest.mark.logs_errors
async def test_journal_fails_what_waits_when_the_store_is_closed(store: Scripted, journal: Journal) -> None:
    told: list[Any] = []
    store.closed = True
    journal.note(THINGS, 1, ())
    journal.after(told.append)
    await journal.flushed()
    assert [str(failure) for failure in told] == ["closed"]


async def test_journal_waits_for_what_was_noted_so_far_and_not_for_more(
    store: Scripted, journal: Journal
) -> None:
    async def note() -> None:
        journal.note(THINGS, 1, ())
        await journal.until_safe()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(note)
        await wait_all_tasks_blocked()
        assert nursery.child_tasks
        journal.note(THINGS, 2, ())
        await store.finish()
        assert not nursery.child_tasks
    assert journal.busy


async def test_journal_waits_for_what_is_being_written(store: Scripted, journal: Journal) -> None:
    await journal.until_safe()
    journal.note(THINGS, 1, ())
    await wait_all_tasks_blocked()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.until_safe)
        await wait_all_tasks_blocked()
        assert nursery.child_tasks
        await store.finish()
        assert not nursery.child_tasks
    assert not journal.busy


@pytest.mark.logs_errors
async def test_journal_waits_no_more_when_the_store_failed(store: Scripted, journal: Journal) -> None:
    journal.note(THINGS, 1, ())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.until_safe)
        await store.finish(StoreError("broken"))
        assert not nursery.child_tasks


async def test_journal_is_flushed_when_all_is_written(store: Scripted, journal: Journal) -> None:
    await journal.flushed()
    journal.note(THINGS, 1, ())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.flushed)
        await wait_all_tasks_blocked()
        journal.note(THINGS, 2, ())
        await store.finish()
        assert nursery.child_tasks
        await store.finish()
        assert not nursery.child_tasks


@pytest.mark.parametrize("writing", [False, True])
def test_journal_writes_in_one_run_what_another_left(
    store: Scripted, journal: Journal, writing: bool
) -> None:
    told: list[Any] = []

    async def leave() -> None:
        journal.note(THINGS, 1, (1, "a"))
        journal.note(THINGS, 2, (2, "b"))
        journal.after(told.append)
        if writing:
            await wait_all_tasks_blocked()
            journal.note(THINGS, 2, None)
            journal.after(told.append)

    async def write() -> None:
        journal.resume_writing()
        journal.resume_writing()
        journal.note(THINGS, 3, (3, "c"))
        await store.finish()
        assert not journal.busy

    trio.run(leave)
    assert store.dones.pop()  # whoever is to be told is not there any more
    store.batches.clear()
    trio.run(write)
    assert store.batches == [{1: (1, "a"), 2: None if writing else (2, "b"), 3: (3, "c")}]
    assert told == [None] * (2 if writing else 1)


async def test_journal_resumes_nothing_in_the_same_run(store: Scripted, journal: Journal) -> None:
    journal.note(THINGS, 1, ())
    await wait_all_tasks_blocked()
    journal.note(THINGS, 2, ())
    journal.resume_writing()
    await store.finish()
    await store.finish()
    assert store.batches == [{1: ()}, {2: ()}]
    assert not journal.busy


@pytest.mark.logs_errors
async def test_journal_asks_again_for_what_is_owed_before_it_says_that_all_is_safe(
    store: Scripted, journal: Journal
) -> None:
    told: list[Any] = []
    journal.drop(THINGS, 1)
    await store.finish(StoreError("broken"))
    assert not journal.busy
    journal.after(told.append)
    assert told == []
    await store.finish()
    assert store.batches == [{1: None}, {1: None}]
    assert told == [None]


@pytest.mark.logs_errors
async def test_journal_drops_by_themselves_when_the_store_is_full(store: Scripted, journal: Journal) -> None:
    told: list[Any] = []
    full = StoreFullError("full")
    journal.drop(THINGS, 1)
    journal.note(THINGS, 2, (2, "b"))
    journal.note(THINGS, 3, None)  # of a transaction: it goes with the rest, or not at all
    journal.after(told.append)
    await wait_all_tasks_blocked()
    journal.note(THINGS, 4, (4, "d"))
    journal.drop(THINGS, 5)
    journal.drop(THINGS, 5)
    journal.after(told.append)
    await store.finish(full)
    assert told == [full]
    await store.finish()
    await store.finish()
    assert told == [full, None]
    assert store.batches == [{1: None, 2: (2, "b"), 3: None}, {1: None, 5: None}, {4: (4, "d")}]
    assert not journal.busy


@pytest.mark.logs_errors
async def test_journal_drops_some_at_a_time_while_the_store_is_full(
    store: Scripted, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PIECE", 2)
    for key in range(5):
        journal.drop(THINGS, key)
    await store.finish(StoreFullError("full"))
    for _ in range(3):
        await store.finish()
    assert [sorted(batch) for batch in store.batches] == [[0, 1, 2, 3, 4], [0, 1], [2, 3], [4]]
    assert not journal.busy


@pytest.mark.parametrize("failure", [StoreFullError("full"), StoreError("broken")])
@pytest.mark.logs_errors
async def test_journal_asks_no_more_when_there_is_no_room_to_drop_anything(
    store: Scripted, journal: Journal, failure: StoreError
) -> None:
    journal.drop(THINGS, 1)
    await store.finish(StoreFullError("full"))
    await store.finish(failure)
    assert store.batches == [{1: None}, {1: None}]
    assert not journal.busy
    journal.note(THINGS, 2, (2, "b"))
    await store.finish()
    assert store.batches[2:] == [{1: None, 2: (2, "b")}]


@pytest.mark.logs_errors
async def test_journal_keeps_a_key_that_was_written_anew_when_the_store_is_full(
    store: Scripted, journal: Journal
) -> None:
    journal.drop(THINGS, 1)
    await wait_all_tasks_blocked()
    journal.drop(THINGS, 2)
    journal.note(THINGS, 2, (2, "new"))
    await store.finish(StoreFullError("full"))
    await store.finish()
    await store.finish()
    assert store.batches == [{1: None}, {1: None}, {2: (2, "new")}]


@pytest.mark.logs_errors
async def test_journal_tells_of_drops_when_the_batch_after_the_failed_one_has_them(
    store: Scripted, journal: Journal
) -> None:
    told: list[Any] = []
    journal.when_dropped(told.append)
    assert told == [None]
    journal.drop(THINGS, 1)
    journal.when_dropped(told.append)
    await store.finish(StoreFullError("full"))
    assert told == [None]
    assert store.batches[-1] == {1: None}
    while store.dones:
        await store.finish()
    assert told == [None, None]
    journal.drop(THINGS, 2)
    journal.when_dropped(told.append)
    await store.finish(StoreError("broken"))
    await store.finish(StoreError("still broken"))
    assert str(told[-1]) == "still broken"
    assert store.dones == []
