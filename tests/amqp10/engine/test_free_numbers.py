"""The lowest free number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.engine.free_numbers import FreeNumbers


@given(st.lists(st.one_of(st.none(), st.integers(0, 20))))
def test_lowest_is_the_least_number_that_is_not_in_use(steps: list[int | None]) -> None:
    numbers, used = FreeNumbers(), set[int]()
    for step in steps:
        least = min(set(range(len(used) + 1)) - used)
        assert numbers.lowest() == least
        if step is None:
            assert numbers.take() == least
            used.add(least)
        elif step in used:
            numbers.free(step)
            used.remove(step)
