"""Traces of AMQP/Fast: cut into commands with fragments, and without secrets.

Other protocols are not taken for AMQP/Fast.
"""

from __future__ import annotations

import pytest

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.frames import INITIATION, frame_of
from trio_amqp10.tools.trace.frame_log import Record, entries_of
from trio_amqp10.tools.trace.frame_splitter import FrameSplitter, read_pieces
from trio_amqp10.tools.trace.frame_text import describe, fields_of, redacted
from trio_amqp10.tools.trace.page_model import PageModel

CHALLENGE = frame_of(spec.ConnectionChallenge(mechanisms="PLAIN"))
RESPONSE = frame_of(
    spec.ConnectionResponse(mechanism="PLAIN", responses={"LOGIN": "ada", "PASSWORD": "secret"})
)
SEND = frame_of(spec.HandleSend(handle_id=1, confirm_tag=7, fragment_size=5)) + b"\xcecup\x80"
CLIENT = INITIATION + RESPONSE + SEND + frame_of(spec.ConnectionPing())
SERVER = CHALLENGE + frame_of(
    spec.HandleReply(handle_id=1, confirm_tag=7, reply_code=310, reply_text="Nothing")
)


def test_client_is_cut_into_commands_with_their_fragments() -> None:
    assert [describe(piece) for piece in read_pieces(CLIENT)] == [
        "initiation AMQP/Fast version 1",
        "connection response(mechanism='PLAIN', responses=<2 fields>)",
        "handle send(handle_id=1, confirm_tag=7, fragment_size=5) + 5 octets",
        "connection ping()",
    ]
    assert read_pieces(CLIENT)[-1].is_empty
    assert not read_pieces(CLIENT)[-1].is_error  # type: ignore[attr-defined]


@pytest.mark.parametrize("stream", [CLIENT, SERVER])
def test_stream_is_told_octet_by_octet(stream: bytes) -> None:
    splitter = FrameSplitter()
    pieces = [piece for at in range(len(stream)) for piece in splitter.feed(stream[at : at + 1])]
    assert pieces == read_pieces(stream)
    assert b"".join(piece.octets for piece in pieces) == stream
    assert not splitter.rest


def test_reply_of_a_failure_is_shown_as_one() -> None:
    model = PageModel()
    for entry in entries_of([Record(1, ">", CLIENT), Record(1, "<", SERVER)]):
        model.feed(entry)
    errors = [row["error"]["what"] for row in model.as_json()["rows"] if "error" in row]
    assert errors == ["310 Nothing"]
    assert describe(read_pieces(SERVER)[1]).endswith("reply_code=310, reply_text='Nothing') !")


def test_fields_of_a_login_are_not_shown() -> None:
    piece = read_pieces(CLIENT)[1]
    assert fields_of(piece.performative)["responses"] == "<2 fields>"
    assert redacted(piece) == RESPONSE[:3] + b"*" * (len(RESPONSE) - 4) + b"\xce"
    assert redacted(read_pieces(CLIENT)[2]) == SEND
    long = b"\xff\xff" + (len(RESPONSE) - 2).to_bytes(4, "big") + RESPONSE[2:]
    assert redacted(read_pieces(INITIATION + long)[1]) == long[:7] + b"*" * (len(long) - 8) + b"\xce"


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"\x00\x00", "octets, not 0"),
        (b"\x00\x02\x63\xce", "no command 99"),
        (b"\x00\x02\x0f\x00", "does not end with its end octet"),
        (frame_of(spec.HandleSend(fragment_size=2**31)), "a fragment of 2147483648 octets"),
    ],
)
def test_what_cannot_be_read_is_one_piece_of_octets(octets: bytes, why: str) -> None:
    (_, lost) = read_pieces(INITIATION + octets)
    assert lost.octets == octets
    assert lost.fault is not None
    assert why in lost.fault


@pytest.mark.parametrize(
    "octets", [INITIATION[:1], INITIATION + SEND[:4], INITIATION + SEND[:-1], CHALLENGE[:2]]
)
def test_stream_that_ends_within_a_piece_says_so(octets: bytes) -> None:
    assert read_pieces(octets)[-1].fault == "the stream ends within it"


@pytest.mark.parametrize("octets", [b"\0\0\0\x08\x02\0\0\0", b"\0\x05\x0b\x01", b"AMQP\0\1\0\0", b"\x81\1"])
def test_other_protocols_are_not_taken_for_it(octets: bytes) -> None:
    assert "connection" not in read_pieces(octets)[0].name
    assert "initiation" not in read_pieces(octets)[0].name
