"""Places in a message: what a receiver says it has is where its sender goes on (3.4.1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import sections
from trio_amqp10.amqp10.engine.section_offsets import offset_of, progress
from trio_amqp10.amqp10.spec.messaging import Received

PAYLOAD = sections(("properties", {"subject": "s"}), ("data", b"0123456789"), ("data", b""), ("data", b"x"))


@given(st.binary(max_size=20) | st.just(PAYLOAD), st.data(), st.sampled_from([0, 7]))
def test_offset_of_is_where_the_octets_ended_for_any_beginning_of_any_payload(
    payload: bytes, data: st.DataObject, message_format: int
) -> None:
    length = data.draw(st.integers(0, len(payload)))
    state = progress(payload[:length], message_format)
    assert offset_of(payload, message_format, state) == length


def test_progress_counts_whole_sections_and_octets_of_the_next() -> None:
    assert progress(PAYLOAD, 0) == Received(section_number=4, section_offset=0)
    assert progress(PAYLOAD[:-1], 0) == Received(section_number=3, section_offset=5)
    assert progress(b"", 0) == Received(section_number=0, section_offset=0)
    assert progress(PAYLOAD, 1) == Received(section_number=0, section_offset=len(PAYLOAD))


@pytest.mark.parametrize(
    ("number", "offset", "message_format"), [(5, 0, 0), (4, 1, 0), (0, 10**6, 0), (1, 0, 7), (0, 10**6, 7)]
)
def test_offset_of_is_none_where_the_message_has_no_such_place(
    number: int, offset: int, message_format: int
) -> None:
    assert offset_of(PAYLOAD, message_format, Received(section_number=number, section_offset=offset)) is None


def test_offset_of_knows_the_end_of_a_section_by_either_name() -> None:
    first = PAYLOAD.index(b"\x00\x53\x75")
    assert offset_of(PAYLOAD, 0, Received(section_number=0, section_offset=first)) == first
    assert offset_of(PAYLOAD, 0, Received(section_number=1, section_offset=0)) == first
