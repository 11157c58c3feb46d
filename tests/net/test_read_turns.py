"""Work left by a turn is done in later turns, in order, also after failures."""

from __future__ import annotations

import logging
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10.net.read_turns import ReadTurn, ReadTurns, current_turns


class Clock:
    """A clock that work moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


async def test_turn_is_over_after_a_millisecond_of_work_and_never_where_none_runs() -> None:
    clock = Clock()
    turns = ReadTurns(clock)
    clock.work(1.0)
    assert not turns.is_over()
    turn = ReadTurn(turns)
    began = turn.began()
    clock.work(0.0009)
    assert not turns.is_over()
    clock.work(0.0002)
    assert turns.is_over()
    turn.charge(began)
    assert not turns.is_over()


async def test_time_in_which_the_thread_did_not_run_ends_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = ReadTurns()
    turns.begin()
    monkeypatch.setattr(turns, "_until", 0.0)  # so long ago for the usual clock
    assert not turns.is_over()
    monkeypatch.setattr(turns, "_until", 0.0)
    monkeypatch.setattr(turns, "_worked_until", 0.0)
    assert turns.is_over()


async def test_work_is_done_in_turns_of_a_millisecond_in_its_order() -> None:
    clock = Clock()
    turns = ReadTurns(clock)
    done: list[int] = []

    def work(number: int) -> None:
        clock.work(0.0006)
        done.append(number)
        if number < 10:
            turns.later(partial(work, number + 10))

    for number in range(3):
        turns.later(partial(work, number))
    lengths: list[int] = []
    while len(done) < 6:
        before = len(done)
        await trio.lowlevel.checkpoint()
        lengths.append(len(done) - before)
    await turns.until_idle()
    assert done == [0, 1, 2, 10, 11, 12]
    assert len(lengths) > 1


@pytest.mark.logs_errors
async def test_work_that_fails_is_logged_and_the_next_is_done(caplog: pytest.LogCaptureFixture) -> None:
    await trio.lowlevel.checkpoint()
    turns, done = current_turns(), list[str]()
    turns.later(lambda: 1 / 0)
    turns.later(lambda: done.append("next"))
    with caplog.at_level(logging.ERROR, "trio_amqp10.pump"):
        await turns.until_idle()
    assert done == ["next"]
    assert [record.getMessage() for record in caplog.records] == ["work that was left for later failed"]


async def test_call_is_a_turn_of_its_own_unless_one_runs() -> None:
    clock = Clock()
    turns = ReadTurns(clock)
    over: list[bool] = []

    def work() -> None:
        clock.work(0.0008)
        over.append(turns.is_over())

    turns.run(work)
    turns.run(work)
    turns.begin()
    turns.run(work)
    turns.run(work)
    assert over == [False, False, False, True]


async def test_turn_goes_on_when_the_connection_that_waits_or_has_it_is_cancelled() -> None:
    turns = ReadTurns()
    first, second, third = (ReadTurn(turns) for _ in range(3))
    order: list[str] = []

    async def take(name: str, turn: ReadTurn) -> None:
        await turn.take()
        order.append(name)

    async with trio.open_nursery() as nursery:
        await first.take()
        with trio.CancelScope() as scope:
            nursery.start_soon(take, "third", third)
            await wait_all_tasks_blocked()
            scope.cancel()
            await second.take()
        assert scope.cancelled_caught
        first.account = 1.0
        with trio.move_on_after(0):
            await first.rest()
        first.release()
        await wait_all_tasks_blocked()
        assert order == ["third"]
        assert third.held
        with trio.CancelScope() as scope:
            scope.cancel()
            await third.rest()
        assert scope.cancelled_caught
        third.release()
        assert turns.holder is None


async def test_cancelled_wait_is_passed_over() -> None:
    turns = ReadTurns()
    first, second = ReadTurn(turns), ReadTurn(turns)
    await first.take()
    with trio.move_on_after(0):
        await second.take()
    assert turns.first() is None
    await first.rest()
    assert turns.holder is None


async def test_slice_is_charged_with_a_millisecond_at_most() -> None:
    seconds = [0.0]
    turn = ReadTurn(ReadTurns(lambda: seconds[0]))
    for number in (1, 2):
        assert not turn.due  # it may have had 2 ms more than others
        began = turn.began()
        seconds[0] += 5.0
        turn.charge(began)
        assert turn.account == pytest.approx(number / 1000)
    assert turn.due
