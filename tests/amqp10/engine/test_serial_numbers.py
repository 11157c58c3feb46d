"""Serial numbers wrap at 2**32, and are compared by their distance (2.8.10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.engine.serial_numbers import HALF, MASK, add, distance

serials = st.integers(0, MASK) | st.sampled_from([0, 1, HALF - 1, HALF, HALF + 1, MASK - 1, MASK])
steps = st.integers(0, HALF - 1) | st.sampled_from([0, 1, HALF - 1])


@given(serials, steps)
def test_distance_undoes_add_over_the_wrap(start: int, n: int) -> None:
    later = add(start, n)
    assert 0 <= later <= MASK
    assert distance(later, start) == n


@given(serials, serials)
def test_distance_is_congruent_to_the_difference_and_in_range(later: int, earlier: int) -> None:
    ahead = distance(later, earlier)
    assert -HALF <= ahead < HALF
    assert (ahead - (later - earlier)) % (MASK + 1) == 0


@given(serials, serials)
def test_distance_changes_sign_when_its_arguments_change_places(later: int, earlier: int) -> None:
    ahead = distance(later, earlier)
    if ahead != -HALF:
        assert distance(earlier, later) == -ahead


@given(serials, steps, steps)
def test_distance_orders_three_serials_when_they_lie_within_half_the_circle(
    start: int, m: int, n: int
) -> None:
    if m + n < HALF:
        assert distance(add(add(start, m), n), start) == m + n


@pytest.mark.parametrize("start", [0, 5, HALF, MASK])
def test_distance_reads_exactly_half_the_circle_as_behind(start: int) -> None:
    assert distance(add(start, HALF), start) == -HALF
    assert distance(start, add(start, HALF)) == -HALF
