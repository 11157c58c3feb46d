"""A bucket of tokens: bursts, refills, and no limit at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.engine.token_bucket import TokenBucket


def test_rate_allows_the_burst_and_no_more_when_no_time_passes() -> None:
    rate = TokenBucket(3, 1.0)
    assert [rate.allows(5.0) for _ in range(5)] == [True, True, True, False, False]


def test_rate_allows_one_more_when_its_time_has_passed() -> None:
    rate = TokenBucket(1, 2.0)
    assert rate.allows(10.0)
    assert not rate.allows(10.4)
    assert rate.allows(10.5)
    assert not rate.allows(10.5)


def test_rate_saves_no_more_than_a_burst_when_nothing_happens_for_long() -> None:
    rate = TokenBucket(2, 1.0)
    rate.allows(0.0)
    assert [rate.allows(1e6) for _ in range(3)] == [True, True, False]


def test_rate_allows_all_when_there_is_no_burst() -> None:
    rate = TokenBucket(None, 0.0)
    assert all(rate.allows(0.0) for _ in range(10_000))


@given(st.integers(1, 20), st.integers(1, 20), st.lists(st.integers(0, 64), max_size=60))
def test_rate_never_allows_more_than_burst_and_rate_together(burst: int, rate: int, gaps: list[int]) -> None:
    bucket = TokenBucket(burst, float(rate))
    now, allowed = 0.0, 0
    for gap in gaps:
        now += gap / 64  # exact in binary, so that the sum below is too
        allowed += bucket.allows(now)
    assert allowed <= burst + rate * now
