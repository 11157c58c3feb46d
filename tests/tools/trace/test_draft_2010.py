"""Frames of the draft of 2010 in a trace."""

from __future__ import annotations

import pytest

from tests.amqp10.draft_2010.test_vectors import COMPOSITES, framed, named
from trio_amqp10.tools.trace.frame_splitter import read_pieces
from trio_amqp10.tools.trace.frame_text import describe, redacted

FRAMES = [row["name"] for row in COMPOSITES if framed(bytes.fromhex(row["hex"]))]


@pytest.mark.parametrize("name", FRAMES)
def test_frame_of_the_draft_is_shown_by_its_fields(name: str) -> None:
    (piece,) = read_pieces(named(name))
    assert piece.fault is None
    assert type(piece.performative).__module__.startswith("trio_amqp10.amqp10.draft_2010")
    assert type(piece.performative).__name__ in describe(piece)


def test_secrets_of_the_draft_are_not_shown() -> None:
    (piece,) = read_pieces(named("sasl-init"))
    assert "<4 octets>" in describe(piece)
    assert b"\x00a\x00b" not in redacted(piece)
    assert len(redacted(piece)) == len(named("sasl-init"))


def test_frame_of_the_draft_that_is_none_says_why() -> None:
    octets = bytearray(named("close"))
    octets[-3] = 0xFF
    (piece,) = read_pieces(bytes(octets))
    assert piece.fault is not None


@pytest.mark.parametrize(
    ("name", "payload", "shown"),
    [
        ("transfer", b"hello", "payload=<5 octets>"),
        ("transfer-one-fragment", b"x", "fragment_offset=0, payload=<1 octets>)"),
    ],
)
def test_contents_are_the_payload_and_not_in_the_fields(name: str, payload: bytes, shown: str) -> None:
    (piece,) = read_pieces(named(name))
    assert payload in piece.payload
    text = describe(piece)
    assert shown in text
    assert "hello" not in text
    assert text.endswith(f" + {len(piece.payload)} octets")
