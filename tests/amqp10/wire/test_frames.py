"""The frame: sizes and offsets (2.3)."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.wire.frames import (
    AMQP_FRAME,
    EMPTY_FRAME,
    FRAME_HEADER_SIZE,
    MIN_MAX_FRAME_SIZE,
    SASL_FRAME,
    encode_frame,
    parse_frame,
)
from trio_amqp10.core.errors import RemoteProtocolError

channels = st.integers(0, 0xFFFF)
bodies = st.binary(max_size=64)
frames = st.tuples(st.sampled_from([AMQP_FRAME, SASL_FRAME]), channels, bodies)


def test_encode_frame_writes_the_header_of_the_standard() -> None:
    assert encode_frame(7, b"body") == bytes.fromhex("0000000c 02 00 0007") + b"body"
    assert encode_frame(0, b"body", SASL_FRAME) == bytes.fromhex("0000000c 02 01 0000") + b"body"


def test_empty_frame_is_a_header_and_nothing_else() -> None:
    assert encode_frame(0, b"") == EMPTY_FRAME
    assert parse_frame(EMPTY_FRAME, 0, MIN_MAX_FRAME_SIZE) == (AMQP_FRAME, 0, 8, 8)


@given(frame=frames, before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_parse_frame_finds_what_encode_frame_wrote(
    frame: tuple[int, int, bytes], before: bytes, after: bytes
) -> None:
    frame_type, channel, body = frame
    buf = before + encode_frame(channel, body, frame_type) + after
    parsed = parse_frame(buf, len(before), MIN_MAX_FRAME_SIZE)
    assert parsed is not None
    assert parsed[:2] == (frame_type, channel)
    assert buf[parsed[2] : parsed[3]] == body
    assert parsed[3] == len(buf) - len(after)


@given(extended=st.integers(0, 253).map(lambda words: bytes(4 * words)), body=bodies)
def test_parse_frame_skips_the_extended_header(extended: bytes, body: bytes) -> None:
    size = FRAME_HEADER_SIZE + len(extended) + len(body)
    buf = pack(">IBBH", size, 2 + len(extended) // 4, AMQP_FRAME, 1) + extended + body
    assert parse_frame(buf, 0, 4096) == (AMQP_FRAME, 1, 8 + len(extended), size)


@given(sent=st.lists(frames, max_size=6), data=st.data())
def test_parse_frame_gives_the_same_frames_in_any_chunking(
    sent: list[tuple[int, int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(encode_frame(channel, body, frame_type) for frame_type, channel, body in sent)
    got: list[tuple[int, int, bytes]] = []
    buf = b""
    pos = 0
    while pos < len(stream):
        size = data.draw(st.integers(1, len(stream) - pos))
        buf += stream[pos : pos + size]
        pos += size
        while (frame := parse_frame(buf, 0, MIN_MAX_FRAME_SIZE)) is not None:
            frame_type, channel, start, end = frame
            got.append((frame_type, channel, buf[start:end]))
            buf = buf[end:]
    assert got == sent
    assert buf == b""


@pytest.mark.parametrize("have", range(4))
def test_parse_frame_says_nothing_before_the_size_is_there(have: int) -> None:
    assert parse_frame(b"\xff\xff\xff\xff"[:have], 0, MIN_MAX_FRAME_SIZE) is None


def test_row_20_parse_frame_refuses_a_size_over_the_limit_from_four_octets() -> None:
    with pytest.raises(RemoteProtocolError, match="larger than the 512 agreed") as caught:
        parse_frame(pack(">I", 513), 0, 512)
    assert caught.value.condition == "amqp:connection:framing-error"
    assert parse_frame(pack(">I", 512), 0, 512) is None


@pytest.mark.parametrize("size", [0, 1, 7])
def test_row_19_parse_frame_refuses_a_size_below_the_header(size: int) -> None:
    with pytest.raises(RemoteProtocolError, match="less than its own header") as caught:
        parse_frame(pack(">I", size), 0, MIN_MAX_FRAME_SIZE)
    assert caught.value.condition == "amqp:connection:framing-error"


@pytest.mark.parametrize(("size", "doff"), [(8, 0), (8, 1), (8, 3), (15, 4), (16, 5), (8, 255)])
def test_row_19_parse_frame_refuses_a_data_offset_out_of_range(size: int, doff: int) -> None:
    buf = pack(">IBBH", size, doff, AMQP_FRAME, 0) + bytes(size - FRAME_HEADER_SIZE)
    with pytest.raises(RemoteProtocolError, match="data offset") as caught:
        parse_frame(buf, 0, MIN_MAX_FRAME_SIZE)
    assert caught.value.condition == "amqp:connection:framing-error"


@given(data=st.binary(max_size=40), pos=st.integers(0, 8))
def test_parse_frame_raises_nothing_else_on_garbage(data: bytes, pos: int) -> None:
    try:
        frame = parse_frame(data, pos, MIN_MAX_FRAME_SIZE)
    except RemoteProtocolError as error:
        assert error.condition == "amqp:connection:framing-error"  # noqa: PT017 - both ends are right
    else:
        assert frame is None or pos + FRAME_HEADER_SIZE <= frame[2] <= frame[3] <= len(data)
