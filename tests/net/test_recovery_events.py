"""Changes of a connection are told to all who watch, until nothing can change any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
