"""Octets split into frames: those of the naive codec, and invalid ones."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import empty_frame, frame, header, raw_frame
from trio_amqp10.amqp10.spec.transport import Begin, Open, Transfer
from trio_amqp10.amqp_fast.spec import ConnectionPing
from trio_amqp10.amqp_fast.wire.frames import frame_of
from trio_amqp10.tools.trace import frame_splitter
from trio_amqp10.tools.trace.frame_splitter import FrameSplitter, Piece, piece_at, read_pieces
from trio_amqp10.tools.trace.frame_text import describe

CONVERSATION = b"".join(
    [
        header("sasl"),
        frame("sasl-init", mechanism="PLAIN", initial_response=b"\0guest\0secret"),
        header(),
        frame("open", container_id="peer", max_frame_size=1024),
        frame("begin", channel=3, next_outgoing_id=0, incoming_window=10, outgoing_window=10),
        empty_frame(),
        frame("transfer", channel=3, payload=b"payload", handle=1, delivery_id=0, delivery_tag=b"t"),
    ]
)


def test_conversation_is_read_piece_by_piece() -> None:
    pieces = read_pieces(CONVERSATION)
    assert [piece.name for piece in pieces] == [
        "header",
        "SaslInit",
        "header",
        "Open",
        "Begin",
        "empty frame",
        "Transfer",
    ]
    assert b"".join(piece.octets for piece in pieces) == CONVERSATION
    assert [piece.channel for piece in pieces] == [None, 0, None, 0, 3, 0, 3]
    assert [piece.frame_type for piece in pieces] == [None, 1, None, 0, 0, 0, 0]
    assert [piece.is_header for piece in pieces] == [True, False, True, False, False, False, False]
    assert [piece.is_empty for piece in pieces] == [False] * 5 + [True, False]
    assert pieces[3].performative == Open(container_id="peer", max_frame_size=1024)
    assert isinstance(pieces[4].performative, Begin)
    assert isinstance(pieces[6].performative, Transfer)
    assert pieces[6].payload == b"payload"


@given(st.lists(st.integers(0, len(CONVERSATION))))
def test_splitter_gives_the_same_pieces_however_the_octets_come(cuts: list[int]) -> None:
    splitter = FrameSplitter()
    edges = [0, *sorted(cuts), len(CONVERSATION)]
    pieces = [piece for a, b in pairwise(edges) for piece in splitter.feed(CONVERSATION[a:b])]
    assert pieces == read_pieces(CONVERSATION)
    assert splitter.rest == b""
    assert splitter.finish() == []


def test_incomplete_piece_is_returned_at_the_end_of_the_stream() -> None:
    splitter = FrameSplitter()
    assert splitter.feed(b"AMQP\0\1") == []
    assert splitter.rest == b"AMQP\0\1"
    assert splitter.finish() == [Piece(b"AMQP\0\1", fault="the stream ends within it")]
    assert read_pieces(b"AM")[0].name == "octets"
    assert read_pieces(b"\0\0\1")[0].octets == b"\0\0\1"


def test_octets_of_a_large_frame_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a frame of 64 MiB would be copied a thousand times while it arrives."""
    tries: list[int] = []

    def counted(buffer: bytes, pos: int) -> tuple[Piece | None, int]:
        tries.append(len(buffer))
        return piece_at(buffer, pos)

    monkeypatch.setattr(frame_splitter, "piece_at", counted)
    splitter = FrameSplitter()
    octets = raw_frame(b"", size=1000) + bytes(992)
    pieces = [piece for at in range(0, 1000, 10) for piece in splitter.feed(octets[at : at + 10])]
    assert [piece.octets for piece in pieces] == [octets]
    assert tries == [10, 1000]
    assert splitter.feed(empty_frame() + octets[:20]) == [Piece(empty_frame(), 0, 0)]
    assert splitter.rest == octets[:20]
    assert splitter.finish() == [Piece(octets[:20], fault="the stream ends within it")]
    assert [piece.is_empty for piece in splitter.feed(empty_frame())] == [True]


def test_octets_after_an_impossible_frame_are_one_piece() -> None:
    splitter = FrameSplitter()
    [good, bad] = splitter.feed(empty_frame() + b"GET / HTTP")
    assert good.is_empty
    assert bad.fault is not None
    assert bad.fault.startswith("frame of 1195725856 octets")
    assert bad.octets == b"GET / HTTP"
    assert not bad.is_empty
    assert not bad.is_header


def test_splitter_stays_lost_after_an_impossible_frame() -> None:
    splitter = FrameSplitter()
    assert splitter.lost is None
    [bad] = splitter.feed(b"\0\0\0\7\2\0\0\0")
    assert splitter.lost == bad.fault
    assert bad.fault == "frame size 7 is less than its own header of 8 octets (2.3.1)"
    [more] = splitter.feed(empty_frame())
    assert more.octets == empty_frame()
    assert more.fault == bad.fault
    assert splitter.feed(b"") == []


@pytest.mark.parametrize(
    ("octets", "fault"),
    [
        (raw_frame(b"\x00\x53\x10\x45"), "container-id"),
        (raw_frame(b"\x40"), "expected a performative, got 0x40"),
        (raw_frame(b"", frame_type=7), "unknown frame type 0x07"),
    ],
    ids=["field", "body", "type"],
)
def test_frame_that_cannot_be_decoded_has_the_reason(octets: bytes, fault: str) -> None:
    [piece, after] = read_pieces(octets + empty_frame())
    assert piece.fault is not None
    assert fault in piece.fault
    assert piece.octets == octets
    assert piece.name == "octets"
    assert after.is_empty


@pytest.mark.parametrize(
    ("protocol", "octets", "text"),
    [
        ("AMQP 1.0", frame("close"), "[0] Close()"),
        ("AMQP 0-9-1", bytes([8, 0, 0, 0, 0, 0, 0, 0xCE]), "heartbeat"),
        ("AMQ Protocol 10.3", bytes([8, 0, 0, 0, 0, 0, 0, 0, 0xCE]), "heartbeat"),
        ("AMQP/Fast", frame_of(ConnectionPing()), "connection ping()"),
    ],
)
def test_stream_of_a_known_protocol_begins_with_any_frame(protocol: str, octets: bytes, text: str) -> None:
    splitter = FrameSplitter(protocol)
    assert [describe(piece) for piece in splitter.feed(octets * 2)] == [text, text]
    assert splitter.lost is None
