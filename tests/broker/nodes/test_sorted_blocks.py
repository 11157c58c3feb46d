"""A shelf against a sorted list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from trio_amqp10.broker.nodes.sorted_blocks import SortedBlocks, all_after

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random


class Thing:
    def __init__(self, order: int) -> None:
        self.order = order


def orders(things: Iterable[Thing]) -> list[int]:
    return [thing.order for thing in things]


def shelf_of(numbers: list[int]) -> tuple[SortedBlocks[Thing], dict[int, Thing]]:
    shelf = SortedBlocks[Thing]()
    things = {number: Thing(number) for number in numbers}
    for thing in things.values():
        shelf.add(thing)
    return shelf, things


def test_shelf_that_is_empty_has_no_first() -> None:
    shelf = SortedBlocks[Thing]()
    assert not shelf
    assert shelf.first() is None
    assert list(shelf.after(-1)) == []
    assert not shelf.remove(Thing(1))


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 2000))
def test_shelf_keeps_order_whatever_is_added_and_taken(random: Random, count: int) -> None:
    numbers = random.sample(range(5000), count)
    shelf, things = shelf_of(numbers)
    left = sorted(numbers)
    assert orders(shelf.after(-1)) == left
    for number in numbers[: count // 2]:
        assert shelf.remove(things[number])
        assert not shelf.remove(things[number])
        assert not shelf.remove(Thing(number))
        left.remove(number)
    for number in numbers[:10]:
        assert orders(shelf.after(number)) == [each for each in left if each > number]
    for number in numbers[: count // 2 : 2]:
        shelf.add(things[number])
        left = sorted([*left, number])
    assert len(shelf) == len(left)
    first = shelf.first()
    assert (first.order if first else None) == (left[0] if left else None)
    assert [shelf.pop().order for _ in range(len(shelf))] == left
    assert not shelf


def test_shelf_is_filled_and_emptied_at_its_ends_in_blocks() -> None:
    shelf, _ = shelf_of(list(range(3000)))
    assert [shelf.pop().order for _ in range(2999)] == list(range(2999))
    for number in range(3000, 6000):
        shelf.add(Thing(number))
    while shelf:
        shelf.drop_some()
    assert shelf.first() is None


def test_all_after_merges_what_lies_on_several_shelves() -> None:
    evens, _ = shelf_of(list(range(0, 20, 2)))
    odds, _ = shelf_of(list(range(1, 20, 2)))
    assert orders(all_after([evens, odds], 4)) == list(range(5, 20))
    assert orders(all_after([evens], 4)) == list(range(6, 20, 2))
    assert orders(all_after([], 4)) == []
