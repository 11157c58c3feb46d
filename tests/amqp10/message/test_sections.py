"""Sections are found in the octets of a message, read, and refused where they break a rule (3.2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.message import Data, Sequence, Value
from trio_amqp10.amqp10.message.section_writers import SECTION_WRITERS
from trio_amqp10.amqp10.message.sections import BODY, read_section, scan
from trio_amqp10.amqp10.message.tolerant import message_class
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.peer_rules import Strict

from .parts import DATA, ORDER, VALUE, WHOLE, received, refused

SEQUENCE = bytes.fromhex("00 53 76 c0 03 01 54 01")


def test_body_kinds_compare_by_what_they_hold() -> None:
    assert Data(b"a") == Data(bytearray(b"a")) != Data(b"a", b"")
    assert hash(Data(b"a")) == hash(Data(b"a"))
    assert Sequence([1]) == Sequence((1,)) != Sequence([1], [])
    assert Value(1) == Value(1) != Value(2)
    for kind in (Data(b"a"), Sequence([b"a"]), Value(b"a")):
        assert kind != b"a"
    assert (
        repr((Data(b"a", b"b"), Sequence([1], []), Value("v")))
        == "(Data(b'a', b'b'), Sequence([1], []), Value('v'))"
    )


def test_body_kinds_refuse_what_they_cannot_hold() -> None:
    with pytest.raises(LocalProtocolError, match="holds bytes, not str"):
        Data("text")  # type: ignore[arg-type]
    for wrong in ("text", b"octets", {"a": 1}):
        with pytest.raises(LocalProtocolError, match="holds a list"):
            Sequence(wrong)


@pytest.mark.parametrize(
    ("octets", "name", "value"),
    [
        ("00 53 70 d0 00000006 00000001 56 01", "durable", True),
        ("00 80 0000000000000070 c0 02 01 41", "durable", True),
        ("00 a3 10 616d71703a6865616465723a6c697374 c0 02 01 41", "durable", True),
        ("00 b3 00000010 616d71703a6865616465723a6c697374 45", "durable", False),
        ("00 53 73 c0 0a 01 80 0000000000000007", "message_id", 7),
    ],
)
def test_section_is_understood_in_every_encoding(octets: str, name: str, value: Any) -> None:
    section = bytes.fromhex(octets)
    message = received(section + DATA)
    assert getattr(message, name) == value
    assert message.body == b"hi"
    assert message.to_payload() == section + DATA


@given(present=st.lists(st.booleans(), min_size=7, max_size=7))
def test_sections_are_found_whichever_are_present(present: list[bool]) -> None:
    message = received(b"".join(section for section, there in zip(ORDER, present, strict=True) if there))
    assert message.durable is present[0]
    assert message.delivery_annotations == ({"d": 1} if present[1] else {})
    assert message.annotations == ({"m": 2} if present[2] else {})
    assert message.message_id == ("i" if present[3] else None)
    assert message.application_properties == ({"a": 3} if present[4] else {})
    assert message.body == (b"hi" if present[5] else None)
    assert message.footer == ({"f": 4} if present[6] else {})


@pytest.mark.parametrize("at", range(6))
def test_sections_out_of_order_are_refused_when_read(at: int) -> None:
    sections = list(ORDER)
    sections[at : at + 2] = sections[at + 1], sections[at]
    error = refused(b"".join(sections), read_by=message_class(Strict(section_order=True)))
    assert error.condition == "amqp:decode-error"
    assert " after amqp:" in error.description


@pytest.mark.parametrize("section", [each for each in ORDER if each is not DATA] + [VALUE])
def test_section_that_comes_twice_is_refused_when_read(section: bytes) -> None:
    assert refused(section + section).condition == "amqp:decode-error"


@pytest.mark.parametrize("first", [DATA, SEQUENCE, VALUE])
@pytest.mark.parametrize("second", [DATA, SEQUENCE, VALUE])
def test_body_sections_of_two_kinds_are_refused_when_read(first: bytes, second: bytes) -> None:
    if first is second and first is not VALUE:
        assert len(received(first + second).sections) == 2
    else:
        assert refused(first + second).condition == "amqp:decode-error"


@pytest.mark.parametrize(
    "octets",
    [
        "40",
        "a0 01 00",
        "00 53 6f 40",
        "00 53 79 40",
        "00 80 0000000100000075 a0 00",
        "00 a3 04 64617461 a0 00",
        "00 a1 10 616d71703a646174613a62696e617279 a0 00",
        "00 55 75 a0 00",
        "00 40 a0 00",
        "00 c0 01 00 a0 00",
    ],
)
def test_section_that_nobody_knows_is_refused_when_read(octets: str) -> None:
    assert refused(bytes.fromhex(octets), "subject").condition == "amqp:decode-error"


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_row_24_payload_cut_short_is_refused_or_ends_at_a_section(cut: int) -> None:
    message = received(WHOLE[:cut])
    ends = [sum(map(len, ORDER[:count])) for count in range(8)]
    if cut in ends:
        assert message.durable
    else:
        with pytest.raises(RemoteProtocolError, match="end inside") as caught:
            _ = message.durable
        assert caught.value.condition == "amqp:decode-error"


@pytest.mark.parametrize(
    ("octets", "attribute"),
    [
        ("00 53 75 a1 00", "body"),
        ("00 53 75 40", "body"),
        ("00 53 76 a0 00", "body"),
        ("00 53 77 4f", "body"),
        ("00 53 77 30", "body"),
        ("00 53 77 a1 01 ff", "body"),
        ("00 53 77 c0 03 02 40 40 40", "body"),
        ("00 53 77 56 02", "body"),
        ("00 53 74 45", "application_properties"),
        ("00 53 74 c1 02 01 40", "application_properties"),
        ("00 53 72 a0 00", "annotations"),
        ("00 53 71 40", "delivery_annotations"),
        ("00 53 78 a3 00", "footer"),
        ("00 53 74 c1 0b 04 a1 01 61 54 01 a1 01 61 54 02", "application_properties"),
    ],
)
def test_row_24_section_that_does_not_decode_is_refused_when_read(octets: str, attribute: str) -> None:
    assert refused(bytes.fromhex(octets), attribute).condition == "amqp:decode-error"


def test_every_section_is_written_as_it_was_read() -> None:
    for place, span in enumerate(scan(WHOLE)):
        assert span is not None
        out = bytearray()
        SECTION_WRITERS[place](out, read_section(place, WHOLE, span))
        assert bytes(out) == ORDER[place]
    assert ORDER[BODY] == DATA
