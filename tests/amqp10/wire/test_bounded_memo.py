"""BoundedMemo: what it remembers, and what it does not."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp10.wire.bounded_memo import LONGEST_KEY, MOST_KEYS, BoundedMemo


def counted() -> tuple[BoundedMemo[str, int], list[str]]:
    made: list[str] = []

    def make(key: str) -> int:
        made.append(key)
        return int(key)

    return BoundedMemo(make), made


def test_result_is_made_once() -> None:
    memo, made = counted()
    assert [memo["7"], memo["7"], memo["8"]] == [7, 7, 8]
    assert made == ["7", "8"]


def test_memo_holds_no_more_than_its_bound_whatever_is_asked() -> None:
    memo, made = counted()
    for number in range(3 * MOST_KEYS):
        assert memo[str(number)] == number
        assert len(memo) <= MOST_KEYS
    assert len(made) == 3 * MOST_KEYS


def test_long_key_is_not_remembered() -> None:
    memo, made = counted()
    longest, longer = "1" * LONGEST_KEY, "1" * (LONGEST_KEY + 1)
    for key in (longest, longer):
        assert memo[key] == memo[key] == int(key)
    assert made == [longest, longer, longer]
    assert list(memo) == [longest]


def test_what_cannot_be_made_is_not_remembered() -> None:
    memo, made = counted()
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            memo["x"]
    assert made == ["x", "x"]
    assert not memo
