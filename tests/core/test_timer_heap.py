"""Timers in order of time; cancelled ones occupy at most as many places as others."""

from __future__ import annotations

import gc
import weakref
from math import inf, log2

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.amqp10.engine.steps import steps
from trio_amqp10.core.timer_heap import Timer, TimerHeap


def test_timers_are_due_in_order_of_time_then_of_adding() -> None:
    heap: TimerHeap[str] = TimerHeap()
    for time, item in ((3, "late"), (1, "first"), (2, "second"), (1, "after the first")):
        heap.add(time, item)
    assert heap.next() == 1
    assert list(heap.pop_due(2)) == ["first", "after the first", "second"]
    assert (len(heap), heap.next()) == (1, 3)


def test_items_that_cannot_be_compared_are_due_at_one_time() -> None:
    heap: TimerHeap[object] = TimerHeap()
    items = [object() for _ in range(9)]
    for item in items:
        heap.add(1, item)
    assert list(heap.pop_due(1)) == items


def test_timer_that_is_cancelled_is_not_due() -> None:
    heap: TimerHeap[str] = TimerHeap()
    first, _second, third = [heap.add(time, str(time)) for time in (1, 2, 3)]
    first.cancel()
    first.cancel()
    assert (len(heap), heap.next()) == (2, 2)
    assert list(heap.pop_due(2)) == ["2"]
    third.cancel()
    assert (len(heap), heap.next(), heap.empty) == (0, inf, 0)


def test_timer_that_was_due_cannot_be_cancelled() -> None:
    heap: TimerHeap[str] = TimerHeap()
    timer = heap.add(1, "x")
    heap.add(2, "y")
    assert list(heap.pop_due(1)) == ["x"]
    timer.cancel()
    assert timer.item is None
    assert (len(heap), heap.empty) == (1, 0)


def test_timer_at_no_time_is_in_no_heap() -> None:
    heap: TimerHeap[str] = TimerHeap()
    timer = heap.add(inf, "x")
    assert (len(heap), heap.next(), list(heap.pop_due(inf))) == (0, inf, [])
    timer.cancel()
    assert timer.item is None
    assert heap.empty == 0


def test_item_that_is_added_while_others_are_taken_is_taken_if_it_is_due() -> None:
    heap: TimerHeap[int] = TimerHeap()
    heap.add(1, 1)
    heap.add(5, 5)
    taken: list[int] = []
    for item in heap.pop_due(4):
        taken.append(item)
        heap.add(item + 1, item + 1)
    assert taken == [1, 2, 3, 4]
    assert list(heap.pop_due(9)) == [5, 5]


def test_items_that_are_not_asked_for_stay() -> None:
    heap: TimerHeap[int] = TimerHeap()
    for time in range(5):
        heap.add(time, time)
    assert next(heap.pop_due(9)) == 0
    assert list(heap.pop_due(9)) == [1, 2, 3, 4]


def test_heap_that_is_cleared_cancels_its_timers() -> None:
    heap: TimerHeap[int] = TimerHeap()
    timers = [heap.add(time, time) for time in range(4)]
    timers[3].cancel()
    taking = heap.pop_due(9)
    assert next(taking) == 0
    heap.clear()
    assert list(taking) == []
    assert [timer.item for timer in timers] == [None] * 4
    timers[2].cancel()
    assert (len(heap), heap.empty, heap.next()) == (0, 0, inf)


def test_item_goes_when_its_timer_is_cancelled_or_was_due() -> None:
    class Item:
        timer: Timer[Item]

    heap: TimerHeap[Item] = TimerHeap()
    gone: list[weakref.ref[Item]] = []
    gc.disable()  # reference counting must suffice
    try:
        for time in (1, 2, 3, 9, 10, 11):
            item = Item()
            item.timer = heap.add(time, item)
            gone.append(weakref.ref(item))
            if time == 2:
                item.timer.cancel()
        del item
        assert sum(1 for _ in heap.pop_due(5)) == 2
        assert [each() is None for each in gone] == [True, True, True, False, False, False]
        heap.clear()
        assert all(each() is None for each in gone)
    finally:
        gc.enable()


class Heaps(RuleBasedStateMachine):
    """A heap and a list that is sorted before each comparison."""

    def __init__(self) -> None:
        super().__init__()
        self.heap: TimerHeap[int] = TimerHeap()
        self.timers: list[Timer[int]] = []
        self.plain: list[tuple[float, int]] = []

    @rule(time=st.integers(0, 9) | st.just(inf))
    def add(self, time: float) -> None:
        number = len(self.timers)
        self.timers.append(self.heap.add(time, number))
        if time < inf:
            self.plain.append((time, number))

    @rule(count=st.integers(30, 70))
    def add_many(self, count: int) -> None:
        for _ in range(count):
            self.add(5)

    @rule(count=st.integers(30, 70))
    def cancel_many(self, count: int) -> None:
        for number, timer in enumerate(self.timers[-count:], max(0, len(self.timers) - count)):
            timer.cancel()
            self.plain = [each for each in self.plain if each[1] != number]
            self.holds_what_the_list_holds()

    @precondition(lambda self: self.timers)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.timers) - 1))
        self.timers[number].cancel()
        self.plain = [each for each in self.plain if each[1] != number]

    @rule(now=st.integers(0, 9), most=st.integers(0, 3) | st.none())
    def take(self, now: float, most: int | None) -> None:
        expected = [number for time, number in sorted(self.plain) if time <= now][:most]
        taken = [number for _, number in zip(expected, self.heap.pop_due(now), strict=False)]
        if most is None:
            taken += self.heap.pop_due(now)
        assert taken == expected
        self.plain = [each for each in self.plain if each[1] not in taken]

    @rule()
    def clear(self) -> None:
        self.heap.clear()
        self.plain.clear()

    @rule()
    def look(self) -> None:
        assert self.heap.next() == min(self.plain, default=(inf, 0))[0]

    @invariant()
    def holds_what_the_list_holds(self) -> None:
        assert len(self.heap) == len(self.plain)
        assert 0 <= self.heap.empty <= max(len(self.heap), 32)


TestHeaps = Heaps.TestCase


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_times_come_out_as_a_sorted_list_has_them(times: list[float]) -> None:
    heap: TimerHeap[float] = TimerHeap()
    for time in times:
        heap.add(time, time)
    assert list(heap.pop_due(inf)) == sorted(times)


class Counted(float):
    """A time that counts its comparisons, which C code makes in a heap."""

    count = 0

    def __lt__(self, other: float) -> bool:
        Counted.count += 1
        return float.__lt__(self, other)

    def __eq__(self, other: object) -> bool:
        Counted.count += 1
        return float.__eq__(self, other)

    __hash__ = float.__hash__


def test_steps_of_a_timer_grow_with_the_logarithm_of_how_many_there_are() -> None:
    def live(count: int) -> None:
        heap: TimerHeap[int] = TimerHeap()
        scattered = [number * 7919 % count for number in range(count)]  # 7919 is prime
        timers = [heap.add(Counted(time), time) for time in scattered]
        for timer in timers[::2]:
            timer.cancel()
        for timer in timers[1::4]:
            timer.cancel()
        assert heap.next() < count
        assert sum(1 for _ in heap.pop_due(Counted(count))) == len(timers[3::4])

    small, large = 1 << 8, 1 << 12
    assert steps(lambda: live(large)) < 1.2 * large / small * steps(lambda: live(small))
    for count in (small, large):
        Counted.count = 0
        live(count)
        assert Counted.count < 6 * count * log2(count)


def test_cancelling_one_of_many_sweeps_seldom() -> None:
    heap: TimerHeap[int] = TimerHeap()
    timers = [heap.add(number, number) for number in range(4096)]

    def cancel_most() -> None:
        for timer in timers[1:]:
            timer.cancel()

    assert steps(cancel_most) < 100 * len(timers)
    assert len(heap) == 1
