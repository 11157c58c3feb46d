"""Places where tasks wait for the engine, and checkpoints that cost little."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from trio_amqp10.net.waiters import (
    CheckpointThrottle,
    EnteredWithAsync,
    OneShotEvent,
    Waiter,
    interrupts_unwrapped,
)

if TYPE_CHECKING:
    from collections.abc import Callable


async def test_waiter_wakes_all_who_wait() -> None:
    waiter = Waiter()
    woken: list[int] = []

    async def wait(number: int) -> None:
        with assert_checkpoints():
            await waiter.wait()
        woken.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(wait, number)
        await wait_all_tasks_blocked()
        assert waiter.waiting == 3
        waiter.wake()
        waiter.wake()
        assert waiter.waiting == 0
    assert sorted(woken) == [0, 1, 2]


async def test_waiter_forgets_who_is_cancelled() -> None:
    waiter = Waiter()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiter.wait)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert waiter.waiting == 0
    waiter.wake()


async def test_waiter_forgets_exactly_those_who_are_cancelled() -> None:
    for cancelled in itertools.product((False, True), repeat=3):
        waiter = Waiter()
        woken: list[int] = []

        async def wait(
            number: int, scope: trio.CancelScope, waiter: Waiter = waiter, woken: list[int] = woken
        ) -> None:
            with scope:
                await waiter.wait()
                woken.append(number)

        async with trio.open_nursery() as nursery:
            scopes = [trio.CancelScope() for _ in cancelled]
            for number, scope in enumerate(scopes):
                nursery.start_soon(wait, number, scope)
                await wait_all_tasks_blocked()  # so that they come in this order
            for scope, goes in zip(scopes, cancelled, strict=True):
                if goes:
                    scope.cancel()
            await wait_all_tasks_blocked()
            assert waiter.waiting == cancelled.count(False)
            late = trio.CancelScope()
            nursery.start_soon(wait, 3, late)
            await wait_all_tasks_blocked()
            waiter.wake()
        assert sorted(woken) == [*(number for number in range(3) if not cancelled[number]), 3]


async def test_waiter_loses_no_wake_up_when_one_is_cancelled_in_the_same_moment() -> None:
    waiter = Waiter()
    returned = False

    async def wait() -> None:
        nonlocal returned
        await waiter.wait()
        returned = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        waiter.wake()
        nursery.cancel_scope.cancel()
    assert returned


async def test_happening_lets_all_go_on_who_wait_for_it_before_or_after() -> None:
    happening = OneShotEvent()
    gone_on: list[int] = []

    async def wait(number: int) -> None:
        with assert_checkpoints():
            await happening.wait()
        gone_on.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(wait, number)
        await wait_all_tasks_blocked()
        assert not happening.is_set()
        happening.set()
        assert happening.is_set()
        assert not gone_on
    await wait(2)
    assert sorted(gone_on) == [0, 1, 2]


async def test_pace_has_a_full_checkpoint_within_64_calls() -> None:
    pace = CheckpointThrottle()
    ran = 0

    async def other() -> None:
        nonlocal ran
        while True:
            ran += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        for _ in range(64 * 20):
            await pace.checkpoint()
        assert ran >= 10  # trio runs two tasks in either order, so not exactly once in 64
        nursery.cancel_scope.cancel()


async def test_pace_has_a_full_checkpoint_in_every_64_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.net.waiters.perf_counter", lambda: 0.0)
    pace = CheckpointThrottle()
    for _ in range(3):
        with assert_checkpoints():
            for _ in range(64):
                await pace.checkpoint()


async def test_pace_sees_a_passed_deadline_within_a_millisecond_of_slow_work() -> None:
    pace = CheckpointThrottle()
    calls = 0
    with trio.move_on_after(0.001) as scope:
        while calls < 64:
            await pace.checkpoint()
            calls += 1
            until = time.perf_counter() + 0.0011
            while time.perf_counter() < until:
                pass
    assert scope.cancelled_caught
    assert calls <= 3


async def test_pace_sees_a_cancellation_at_once() -> None:
    pace = CheckpointThrottle()
    await pace.checkpoint()
    with trio.CancelScope() as scope:
        scope.cancel()
        await pace.checkpoint()
        raise AssertionError("not reached")
    assert scope.cancelled_caught


async def test_pace_counts_for_each_task() -> None:
    pace = CheckpointThrottle()
    turns: list[str] = []

    async def work(name: str) -> None:
        for _ in range(640):
            await pace.checkpoint()
            if not turns or turns[-1] != name:
                turns.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, "a")
        nursery.start_soon(work, "b")
    assert len(turns) >= 6


def test_interrupt_beside_another_exception_stays_in_its_group() -> None:
    with pytest.raises(BaseExceptionGroup) as raised, interrupts_unwrapped():
        raise BaseExceptionGroup("", [KeyboardInterrupt(), ValueError()])
    assert len(raised.value.exceptions) == 2


@pytest.mark.parametrize("misuse", [lambda opening: opening.__enter__(), lambda opening: opening.__await__()])
def test_block_that_is_not_entered_with_async_says_how(misuse: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match=r"'EnteredWithAsync' object is .*: async with \.\.\. as name"):
        misuse(EnteredWithAsync())
