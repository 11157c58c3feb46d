"""Pieces as text, and no secret in it."""

from __future__ import annotations

import pytest

from tests.naive.performatives import empty_frame, frame, header, raw_frame
from trio_amqp10.tools.trace.frame_splitter import read_pieces
from trio_amqp10.tools.trace.frame_text import describe, fields_of, hexdump, redacted

SECRET = b"\0guest\0xyzzy"


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (header(), "header AMQP 0 1.0.0 (AMQP)"),
        (header("sasl"), "header AMQP 3 1.0.0 (SASL)"),
        (b"AMQP\0\0\x09\1", "header AMQP 0 0.9.1 (AMQP)"),
        (b"AMQP\1\1\0\0", "header AMQP 1 1.0.0"),
        (empty_frame(), "empty frame"),
        (frame("end", channel=7), "[7] End()"),
        (
            frame("transfer", payload=b"12345", handle=1, delivery_tag=b"t"),
            "[0] Transfer(handle=1, delivery_tag=b't') + 5 octets",
        ),
        (raw_frame(b"\x40"), "9 octets: expected a performative, got 0x40 (2.3.2)"),
    ],
    ids=range(8),
)
def test_piece_is_described_on_one_line(octets: bytes, text: str) -> None:
    [piece] = read_pieces(octets)
    assert describe(piece) == text


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (
            frame("sasl-init", mechanism="PLAIN", initial_response=SECRET),
            "SaslInit(mechanism=Symbol('PLAIN'), initial_response=<12 octets>)",
        ),
        (frame("sasl-challenge", challenge=SECRET), "SaslChallenge(challenge=<12 octets>)"),
        (frame("sasl-response", response=SECRET), "SaslResponse(response=<12 octets>)"),
        (
            frame("sasl-outcome", code=0, additional_data=SECRET * 30),
            "SaslOutcome(code=<SaslCode.OK: 0>, additional_data=<360 octets>)",
        ),
    ],
    ids=["init", "challenge", "response", "outcome"],
)
def test_secret_is_neither_shown_nor_kept(octets: bytes, text: str) -> None:
    [piece] = read_pieces(octets)
    assert describe(piece) == text
    kept = redacted(piece)
    assert b"xyzzy" not in kept
    assert len(kept) == len(octets)
    [again] = read_pieces(kept)
    assert describe(again) == text


def test_secret_is_not_kept_of_a_frame_that_cannot_be_read() -> None:
    octets = frame("sasl-init", mechanism="PLAIN", initial_response=SECRET)
    for broken in (
        octets[:-1],
        raw_frame(SECRET, frame_type=1),
        raw_frame(octets[8:] + SECRET, frame_type=1),
    ):
        [piece] = read_pieces(broken)
        assert piece.fault is not None
        assert piece.payload == b""
        assert redacted(piece) == broken[:8] + b"*" * (len(broken) - 8)


def test_pieces_without_secrets_are_kept_as_they_are() -> None:
    octets = header() + empty_frame() + frame("sasl-init", mechanism="ANONYMOUS") + raw_frame(b"\x40")
    assert b"".join(redacted(piece) for piece in read_pieces(octets)) == octets


def test_fields_with_their_default_are_left_out() -> None:
    [piece] = read_pieces(frame("open", container_id="peer", channel_max=7))
    assert fields_of(piece.performative) == {"container_id": "'peer'", "channel_max": "7"}


def test_hexdump_shows_offset_octets_and_text() -> None:
    assert hexdump(b"AMQP\0\1\0\0" + bytes(range(0x60, 0x70)), start=16) == [
        "000010  41 4d 51 50 00 01 00 00 60 61 62 63 64 65 66 67  AMQP....`abcdefg",
        "000020  68 69 6a 6b 6c 6d 6e 6f                          hijklmno",
    ]
