"""The lock is waited for, but not for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.migrate.lock import take_lock

if TYPE_CHECKING:
    from trio.testing import MockClock


class Taken(Exception):  # noqa: N818 - what a broker answers
    """Another run has the lock."""


async def test_lock_is_taken_when_an_earlier_run_has_ended(autojump_clock: MockClock) -> None:
    async def take() -> str:
        if trio.current_time() < began + 5:
            raise Taken
        return "mine"

    began = trio.current_time()
    assert await take_lock("b.example", take, Taken) == "mine"


async def test_run_that_does_not_end_is_named(autojump_clock: MockClock) -> None:
    async def take() -> None:
        raise Taken("in use")

    with pytest.raises(CommandError, match=r"b.example: another amqp10 migrate .* \(in use\)"):
        await take_lock("b.example", take, Taken)
