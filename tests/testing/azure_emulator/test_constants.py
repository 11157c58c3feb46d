"""Times of .NET count from the year 1, in units of 100 ns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.testing.azure_emulator.constants import ticks

BEGIN = datetime(1, 1, 1, tzinfo=UTC)


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001 - without a zone, as hypothesis wants it
def test_ticks_are_units_of_100_ns_since_the_year_1(moment: datetime) -> None:
    milliseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert BEGIN + timedelta(microseconds=ticks(milliseconds) // 10) == moment.replace(
        microsecond=moment.microsecond // 1000 * 1000
    )
