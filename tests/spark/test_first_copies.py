"""First copies: each id once, wherever it was received."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.spark.first_copies import Identified, first_copies
from trio_amqp10.spark.spool import Slice


def rows(source: str, ids: list[str | None], first: int = 0) -> Identified:
    return Identified(Slice(source, first, first + len(ids), 0), ids)


def test_rows_without_copies_are_left_as_they_are() -> None:
    batch = [rows("a", ["1", "2", None, None]), rows("b", ["3"])]
    assert first_copies([rows("z", ["0", None])], batch) == [each.rows for each in batch]


def test_copies_are_cut_out() -> None:
    before = [rows("z", ["1"])]
    batch = [rows("a", ["0", "1", "2", "2", None], first=10), rows("b", ["2", "4", None])]
    assert first_copies(before, batch) == [
        Slice("a", 10, 11, 0),
        Slice("a", 12, 13, 0),
        Slice("a", 14, 15, 0),
        Slice("b", 1, 3, 0),
    ]


@given(
    st.lists(st.lists(st.sampled_from(["1", "2", "3", "4", None]), max_size=6), max_size=5), st.integers(0, 5)
)
def test_each_id_is_there_once_and_rows_without_one_always(
    segments: list[list[str | None]], first: int
) -> None:
    named = [rows(str(place), ids) for place, ids in enumerate(segments)]
    before, batch = named[:first], named[first:]
    found = [
        segments[int(str(each.source))][row]
        for each in first_copies(before, batch)
        for row in range(each.start, each.stop)
    ]
    old = {each for ids in segments[:first] for each in ids}
    new = [each for ids in segments[first:] for each in ids]
    assert found.count(None) == new.count(None)
    assert sorted(filter(None, found)) == sorted({*filter(None, new)} - old)
