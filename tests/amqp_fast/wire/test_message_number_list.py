"""Lists of message numbers are read as they were written, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp_fast.wire.faults import ReplyError
from trio_amqp10.amqp_fast.wire.message_number_list import read_list, write_list


@given(st.sets(st.integers(0, 200) | st.integers(0, 2**32 - 1)))
def test_message_list_is_read_as_it_was_written(numbers: set[int]) -> None:
    octets, highest = write_list(numbers)
    assert highest == 0
    assert [number for each in read_list(octets) for number in each] == sorted(numbers)


def test_message_list_is_that_of_the_document() -> None:
    numbers = [0, 5, 9, *range(15, 41), 80]
    assert write_list(numbers) == (b"0 5 9 15-40 80", 0)


@given(st.sets(st.integers(0, 100), min_size=1), st.integers(0, 40))
def test_message_list_names_its_highest_number_when_there_are_more(numbers: set[int], largest: int) -> None:
    octets, highest = write_list(numbers, largest)
    assert len(octets) <= largest
    there = [number for each in read_list(octets) for number in each]
    assert there == sorted(numbers)[: len(there)]
    assert highest == (0 if len(there) == len(numbers) else max(there, default=0))


@pytest.mark.parametrize("octets", [b"a", b"1-", b"-1", b"2-1", b"4294967296", b"1,2", b"1 2--3"])
def test_message_list_is_refused_when_it_is_none(octets: bytes) -> None:
    with pytest.raises(ReplyError) as caught:
        read_list(octets)
    assert caught.value.code == 502
