"""Changes of a connection are told to all who watch, until nothing can change any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10.net.recovery_events import Change, Watchers

from .dialled import EVEN, Dialling

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_failure_to_dial_ends_the_changes(autojump_clock: MockClock) -> None:
    dialling = Dialling("a", backoff=EVEN)
    changes = dialling.changes()
    with pytest.raises(OSError, match="a"):
        await dialling.__aenter__()
    assert [change.kind async for change in changes] == ["failed", "stopped"]
    assert dialling.dialled == ["a", "a"]


async def test_changes_end_at_once_where_nothing_is_dialled_again() -> None:
    assert [change async for change in Dialling("a").changes()] == []


async def test_change_that_is_put_back_is_the_next_one() -> None:
    watchers = Watchers()
    changes = watchers.changes()
    assert changes.take() is None
    watchers.tell(Change("lost"))
    watchers.tell(Change("stopped"))
    changes.put_back(await anext(changes))
    assert [change.kind async for change in changes] == ["lost", "stopped"]
    changes.put_back(Change("stopped"))
    assert [change.kind async for change in changes] == ["stopped"]


async def test_change_that_is_put_back_is_dropped_if_too_many_came_meanwhile() -> None:
    watchers = Watchers()
    changes = watchers.changes()
    watchers.tell(Change("lost"))
    oldest = await anext(changes)
    for _ in range(100):
        watchers.tell(Change("restored"))
    changes.put_back(oldest)
    watchers.tell(Change("stopped"))
    assert {change.kind async for change in changes} == {"restored", "stopped"}
