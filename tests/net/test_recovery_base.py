"""A connection that is lost is dialled again, until its attempts are used up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dialled import EVEN, Dialling

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_connection_is_dialled_again_at_the_next_place(autojump_clock: MockClock) -> None:
    dialling = Dialling("a", "b", answers="ab", backoff=EVEN)
    changes = dialling.changes()
    async with dialling as connection:
        connection.finished.set()
        told = [await anext(changes) for _ in range(3)]
        assert [(change.kind, change.url) for change in told] == [
            ("restored", "a"),
            ("lost", None),
            ("restored", "b"),
        ]
        assert connection.told == ["ready", "restore", "ready"]
    assert (await anext(changes)).kind == "stopped"


async def test_connection_is_given_up_when_attempts_are_used_up(autojump_clock: MockClock) -> None:
    dialling = Dialling("a", answers="a", backoff=EVEN)
    changes = dialling.changes()
    async with dialling as connection:
        dialling.answers = ""
        connection.finished.set()
        assert [change.kind async for change in changes] == ["restored", "lost", "failed", "stopped"]
        assert connection.told == ["ready", "hang up", "passed: a", "fail: exhausted: a"]
        assert str(connection.recovery.failure) == "exhausted: a"
