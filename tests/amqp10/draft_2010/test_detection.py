"""Detection of the standard by the first frame (D 310-318, 532-545)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.draft_2010.connection import DraftConnection
from trio_amqp10.amqp10.draft_2010.detection import detect_draft
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.core.protocol_headers import HEADER_SIZE


def first_frame(kind: type[Connection], name: str) -> bytes:
    """The octets of an engine's open."""
    engine = kind(name)
    engine.open()
    return (engine.data_to_send() or b"")[HEADER_SIZE:]


@pytest.mark.parametrize(("kind", "is_draft"), [(DraftConnection, True), (Connection, False)])
def test_open_of_each_standard_is_told(kind: type[Connection], is_draft: bool) -> None:
    frame = first_frame(kind, "c")
    assert detect_draft(frame) is is_draft
    told = [detect_draft(frame[:size]) for size in range(len(frame) + 1)]
    first = told.index(is_draft)
    assert set(told[:first]) == {None}
    assert set(told[first:]) == {is_draft}


@given(st.integers(2, 255), st.booleans())
def test_longer_header_of_a_frame_is_skipped(doff: int, is_draft: bool) -> None:
    frame = first_frame(DraftConnection if is_draft else Connection, "c")
    longer = frame[:4] + bytes((doff,)) + frame[5:8] + b"\x00\x80" * (2 * doff - 4) + frame[8:]
    assert detect_draft(longer[: doff * 4]) is None
    assert detect_draft(longer) is is_draft


@given(st.binary(max_size=40))
def test_octets_of_any_kind_are_told_for_good(octets: bytes) -> None:
    told = [detect_draft(octets[:size]) for size in range(len(octets) + 1)]
    decided = [each for each in told if each is not None]
    assert told == [None] * (len(told) - len(decided)) + decided
    assert len(set(decided)) <= 1


def test_symbol_of_an_open_counts_as_the_final_standards() -> None:
    assert detect_draft(bytes((0, 0, 0, 40, 2, 0, 0, 0)) + b"\x00\xa3\x0eamqp:open:list") is False


def test_at_most_1030_octets_decide() -> None:
    assert detect_draft(bytes((0, 0, 8, 0, 255, 0, 0, 0)) + bytes(1022)) is False
