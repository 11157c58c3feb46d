"""Long work in pieces: others run between them."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.container.management.pace import Pace, take_in_turns

if TYPE_CHECKING:
    from collections.abc import Generator


def work(seconds: float) -> None:
    """Use the processor for a while."""
    until = perf_counter() + seconds
    while perf_counter() < until:
        pass


async def test_pause_lets_others_run_once_there_was_much_work() -> None:
    ran: list[str] = []

    async def other() -> None:
        ran.append("other")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        pace = Pace()
        for _ in range(2):  # The tasks of one pass run in any order.
            work(0.002)
            assert pace.is_over()
            await pace.pause()
        assert ran == ["other"]


async def test_steps_return_their_result_and_others_run_between_them() -> None:
    turns: list[int] = []

    def steps() -> Generator[None, None, str]:
        for _ in range(5):
            work(0.003)
            turns.append(other_ran)
            yield
        return "done"

    other_ran = 0

    async def other() -> None:
        nonlocal other_ran
        while True:
            other_ran += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        assert await take_in_turns(steps()) == "done"
        nursery.cancel_scope.cancel()
    assert len(turns) == 5
    assert turns[0] < turns[-1]


async def test_steps_raise_what_they_fail_with() -> None:
    def steps() -> Generator[None, None, None]:
        yield
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await take_in_turns(steps())


async def test_steps_go_on_after_a_cancellation() -> None:
    ended: list[bool] = []

    def steps() -> Generator[None, None, None]:
        for _ in range(5):
            work(0.003)
            yield
        ended.append(True)

    with trio.CancelScope() as scope:
        scope.cancel()
        await take_in_turns(steps())
    assert scope.cancelled_caught
    with trio.fail_after(5):
        while not ended:
            await trio.lowlevel.checkpoint()
