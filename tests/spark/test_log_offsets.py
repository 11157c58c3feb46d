"""Offsets of logs that were away, are new, or were replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.spark.log_dialects import hub_of
from trio_amqp10.spark.log_offsets import DataLossError, beginnings, next_offsets, ranges
from trio_amqp10.spark.options import Moment

if TYPE_CHECKING:
    from collections.abc import Mapping


def following(
    at: dict[str, int], ends: dict[str, int], begin: Mapping[str, int] | None = None, **more: Any
) -> dict[str, int]:
    options: dict[str, Any] = {"most": None, "fail_on_data_loss": True} | more
    return next_offsets(at, ends, lambda logs: {log: (begin or {})[log] for log in logs}, **options)


def test_log_that_is_away_for_a_run_is_not_read_again() -> None:
    away = following({"a": 10, "b": 20}, {"a": 15})
    assert away == {"a": 15, "b": 20}
    back = following(away, {"a": 15, "b": 25})
    assert ranges(away, back, 1) == [("b", 20, 25)]


def test_new_log_joins_at_its_beginning_without_a_row() -> None:
    joined = following({"a": 10}, {"a": 15, "b": 25}, {"b": 5})
    assert joined == {"a": 15, "b": 5}
    assert ranges({"a": 10}, joined, 1) == [("a", 10, 15)]
    assert ranges(joined, following(joined, {"a": 15, "b": 25}), 1) == [("b", 5, 25)]


def test_another_log_of_that_name_is_an_error_or_begins_anew() -> None:
    with pytest.raises(
        DataLossError, match=r"message 10 of 'a', which ends with 4 .*'failOnDataLoss' = 'false'"
    ):
        following({"a": 10}, {"a": 4})
    anew = following({"a": 10, "b": 1}, {"a": 4, "b": 2}, {"a": 1}, fail_on_data_loss=False)
    assert anew == {"a": 1, "b": 2}
    assert ranges({"a": 10, "b": 1}, anew, 1) == [("b", 1, 2)]
    assert ranges(anew, following(anew, {"a": 4, "b": 2}), 1) == [("a", 1, 4)]


def test_beginnings_are_what_was_asked_for() -> None:
    asked: dict[str, Any] = {"a": "earliest", "b": "latest", "c": 7, "d": Moment(1000)}
    ends = {"a": 10, "b": 20, "c": 30, "d": 40}
    found = beginnings(
        asked, asked.__getitem__, lambda: {"a": 3}, ends, lambda moments: {"d": moments["d"] // 100}
    )
    assert found == {"a": 3, "b": 20, "c": 7, "d": 10}

    def unasked(*_: Any) -> dict[str, int]:
        raise AssertionError("nobody wants to know")

    assert beginnings(["b"], asked.__getitem__, unasked, ends, unasked) == {"b": 20}


@pytest.mark.parametrize(
    ("log", "hub"),
    [("clicks/Partitions/0", "clicks"), ("a/Partitions/b/Partitions/1", "a/Partitions/b"), ("q", None)],
)
def test_hub_of_a_partition_is_in_its_name(log: str, hub: str | None) -> None:
    assert hub_of(log) == hub


NAMES = st.sampled_from("abcd")


@given(
    st.dictionaries(NAMES, st.integers(0, 50)),
    st.lists(st.tuples(st.sets(NAMES), st.integers(0, 40)), min_size=1, max_size=8),
    st.one_of(st.none(), st.integers(1, 30)),
    st.integers(1, 5),
)
def test_each_message_is_read_once_whatever_logs_come_and_go(
    first: dict[str, int], runs: list[tuple[set[str], int]], most: int | None, least: int
) -> None:
    """Logs that only grow begin at 3, or where the checkpoint has them."""
    ends = dict.fromkeys("abcd", 50)
    at = dict(first)
    read: dict[str, list[int]] = {log: [] for log in "abcd"}
    joined = dict(first)
    for here, more in runs:
        ends = {log: end + more for log, end in ends.items()}
        end = following(at, {log: ends[log] for log in sorted(here)}, dict.fromkeys("abcd", 3), most=most)
        for log in here:
            joined.setdefault(log, 3)
        found = ranges(at, end, least)
        if most is not None:
            assert sum(stop - start for _, start, stop in found) <= most
        for log, start, stop in found:
            read[log] += range(start, stop)
        at = end
    for log, numbers in read.items():
        assert numbers == list(range(joined.get(log, 0), joined.get(log, 0) + len(numbers)))
    assert all(at[log] == joined[log] + len(read[log]) for log in at)
