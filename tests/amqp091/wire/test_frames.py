"""Frames of 0-9-1: each is read as it was written; a bad head is refused at once.

The payload of a frame with a bad head is not awaited.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import (
    ANY_SIZE,
    BODY,
    FRAME_END,
    HEAD_SIZE,
    HEADER,
    HEARTBEAT_FRAME,
    METHOD,
    OVERHEAD,
    body_frames,
    frame,
    read_head,
)


@given(
    st.sampled_from([METHOD, HEADER, BODY]),
    st.integers(0, 0xFFFF),
    st.binary(max_size=50),
    st.binary(max_size=9),
)
def test_frame_is_read_as_it_was_written(kind: int, channel: int, payload: bytes, before: bytes) -> None:
    octets = frame(kind, channel, payload)
    assert read_head(before + octets, len(before), ANY_SIZE) == (kind, channel, len(payload))
    assert octets[HEAD_SIZE:] == payload + bytes([FRAME_END])
    assert len(octets) == len(payload) + OVERHEAD


@given(st.binary(max_size=99), st.integers(1, 40))
def test_body_is_split_into_frames_of_the_largest_size(body: bytes, largest: int) -> None:
    frames = list(body_frames(7, body, largest))
    payloads = [each[HEAD_SIZE:-1] for each in frames]
    assert b"".join(payloads) == body
    assert all(len(each) == largest for each in payloads[:-1])
    assert all(read_head(each, 0, largest) == (BODY, 7, len(each) - OVERHEAD) for each in frames)


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ((4, 0, 0), 501),
        ((METHOD, 1, 101), 501),
        ((BODY, 1, 201), 501),
        ((HEADER, 1, 201), 501),
        ((8, 0, 1), 501),
        ((8, 1, 0), 505),
    ],
)
def test_head_that_is_bad_is_refused(head: tuple[int, int, int], code: int) -> None:
    with pytest.raises(ReplyError) as caught:
        read_head(struct.pack(">BHI", *head), 0, 100, 200)
    assert caught.value.code == code


def test_header_may_be_larger_than_other_frames_where_it_is_said() -> None:
    assert read_head(struct.pack(">BHI", HEADER, 1, 200), 0, 100, 200) == (HEADER, 1, 200)


def test_heartbeat_is_an_empty_frame_of_type_8_on_channel_0() -> None:
    assert HEARTBEAT_FRAME == b"\x08\0\0\0\0\0\0\xce"
    assert read_head(HEARTBEAT_FRAME, 0, 0) == (8, 0, 0)
