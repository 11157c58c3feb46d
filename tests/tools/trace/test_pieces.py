"""What a piece is called, and how a frame of another protocol describes itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trio_amqp10.amqp10.spec.transport import Begin
from trio_amqp10.tools.trace.pieces import OtherProtocolPiece, Piece


@pytest.mark.parametrize(
    ("piece", "name", "is_header", "is_empty"),
    [
        (Piece(b"AMQP\0\1\0\0"), "header", True, False),
        (Piece(b"", channel=0, frame_type=0), "empty frame", False, True),
        (
            Piece(
                b"",
                channel=0,
                frame_type=0,
                performative=Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1),
            ),
            "Begin",
            False,
            False,
        ),
        (Piece(b"GET /", fault="not AMQP"), "octets", False, False),
        (Piece(b"", channel=0, frame_type=0, fault="no map"), "octets", False, False),
    ],
)
def test_piece_has_the_name_of_what_it_is(piece: Piece, name: str, is_header: bool, is_empty: bool) -> None:
    assert (piece.name, piece.is_header, piece.is_empty) == (name, is_header, is_empty)


class Other(OtherProtocolPiece):
    """A frame with the fields of its content."""

    def fields(self) -> dict[str, str]:
        return {key: str(value) for key, value in vars(self.performative or SimpleNamespace()).items()}

    def redacted(self) -> bytes:
        return self.octets


def other(payload: bytes = b"", **fields: Any) -> Other:
    return Other(b"", channel=1, frame_type=1, performative=SimpleNamespace(**fields), payload=payload)


def test_frame_of_another_protocol_describes_itself_on_one_line() -> None:
    assert other(queue="q", ticket=0).describe() == "SimpleNamespace(queue=q, ticket=0)"
    assert other(b"abc", queue="q").describe() == "SimpleNamespace(queue=q) + 3 octets"
    assert other(reply_code=404).describe() == "SimpleNamespace(reply_code=404) !"
    assert Other(b"", channel=0, frame_type=8).describe() == "empty frame"


@pytest.mark.parametrize(("code", "is_error"), [(200, False), (299, False), (300, True), (541, True)])
def test_reply_code_of_300_or_more_is_an_error(code: int, is_error: bool) -> None:
    assert other(reply_code=code).is_error is is_error
    assert not other(queue="q").is_error
