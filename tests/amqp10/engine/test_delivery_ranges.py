"""What the peer said of ranges, beside a model that keeps a word for each id."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.engine.delivery_ranges import FEW, DeliveryRanges, Rank, Spans
from trio_amqp10.amqp10.engine.serial_numbers import MASK

POSITIONS = st.integers(-5, 30)


@given(
    st.lists(st.tuples(POSITIONS, st.integers(0, 12), st.sampled_from(["a", "b", None]))), st.lists(POSITIONS)
)
def test_spans_hold_what_was_put_last(puts: list[tuple[int, int, Any]], kept: list[int]) -> None:
    spans, model = Spans(), dict[int, Any]()
    for first, ahead, value in puts:
        spans.put(first, first + ahead, value)
        for position in range(first, first + ahead + 1):
            model[position] = value
    everywhere = range(-10, 50)
    assert [spans.at(i) for i in everywhere] == [model.get(i) for i in everywhere]
    runs = sum(model.get(i) is not None and model.get(i) != model.get(i - 1) for i in everywhere)
    assert len(spans) == runs
    free = [i for first, last in spans.others(-3, 20, "a") for i in range(first, last + 1)]
    assert free == [i for i in range(-3, 21) if model.get(i) != "a"]
    spans.keep(sorted(kept))
    assert all(spans.at(i) == model.get(i) for i in kept)


ACTS = st.one_of(
    st.tuples(st.just("come"), st.integers(1, 200)),
    st.tuples(st.just("go"), st.integers(0, 400)),
    st.tuples(st.just("reopen"), st.integers(0, 400)),
    st.tuples(st.sampled_from(Rank), st.integers(-600, 600), st.integers(0, 500)),
    st.tuples(st.sampled_from(Rank), st.integers(-600, 600), st.just(2**31 - 1)),
    st.tuples(st.sampled_from("ab"), st.integers(-600, 600), st.integers(0, 500)),
)


@pytest.mark.parametrize("start", [0, 7, MASK - 150, 2**31 - 100])
@given(acts=st.lists(ACTS, max_size=25))
def test_ranges_give_each_delivery_once_for_each_rank_and_its_last_word(start: int, acts: list[Any]) -> None:
    held = dict[int, str]()
    ranges, top = DeliveryRanges(held), start
    words, done = dict[int, Any](), dict[Rank, set[int]]()
    for act, *numbers in acts:
        if act == "come":
            for _each in range(numbers[0]):
                held[top & MASK] = f"delivery {top & MASK}"
                top += 1
            ranges.reach(top & MASK)
        elif act in ("go", "reopen"):
            if not held:
                continue
            some = list(held)[numbers[0] % len(held)]
            if act == "go":
                del held[some]
            else:
                ranges.forget_word(some)
                words.pop(some, None)
                for each in done.values():
                    each.discard(some)
        else:
            first, ahead = (start + numbers[0]) & MASK, numbers[1]
            named = [i for i in held if (i - first) & MASK <= ahead]
            if not isinstance(act, Rank):
                ranges.note(first, ahead, act)
                words.update(dict.fromkeys(named, act))
                continue
            due = ranges.due(first, ahead, act)
            if ahead < FEW and act is not Rank.IN_TRANSACTION:
                assert due == sorted(due, key=list(held.values()).index) == [held[i] for i in named]
            else:
                already = done.setdefault(act, set())
                assert sorted(due) == sorted(held[i] for i in named if i not in already)
                already.update(named)
        assert {i: w for i, each in held.items() if (w := ranges.word(i, each)) is not None} == {
            i: w for i, w in words.items() if i in held
        }


@pytest.mark.parametrize("rank", [Rank.NONE, Rank.IN_TRANSACTION])
def test_word_on_ids_before_their_deliveries_says_nothing_of_them(rank: Rank) -> None:
    held = dict[int, str]()
    ranges = DeliveryRanges(held)
    ranges.note(MASK, 0, "said")
    assert ranges.due(MASK, 2**31 - 1, rank) == []
    held[MASK] = "one"
    ranges.reach(0)
    assert ranges.word(MASK, "one") is None
    assert ranges.due(MASK, 2**31 - 1, rank) == ["one"]


def test_ranges_know_nothing_of_a_delivery_that_is_not_held() -> None:
    held = {0: "one"}
    ranges = DeliveryRanges(held)
    ranges.reach(1)
    ranges.note(0, 2**31 - 1, "said")
    assert (ranges.word(0, "one"), ranges.word(0, "other"), ranges.word(MASK, "gone")) == ("said", None, None)


def test_ranges_forget_what_was_said_of_deliveries_that_are_gone() -> None:
    held = dict[int, int]()
    ranges = DeliveryRanges(held)
    for i in range(1000):
        held[i] = i
        ranges.reach(i + 1)
        ranges.note(i, 0, i)
        assert ranges.word(i, i) == i
        assert ranges.words is not None
        assert len(ranges.words) <= FEW + 3
        del held[i]
