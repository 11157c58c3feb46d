"""A message read from any chunks of its payload: sections before the body, its octets, the footer (3.2)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.message import Data, Message, Sequence, encode_around
from trio_amqp10.amqp10.message.incremental_reader import BodyReader
from trio_amqp10.core.errors import Condition, RemoteProtocolError

FULL = Message(
    Data(b"", b"one", b"x" * 300),
    subject="s",
    durable=True,
    annotations={"a": 1},
    application_properties={"k": "v" * 300},
    footer={"f": b"sum"},
)


def read(reader: BodyReader, *chunks: bytes) -> bytes:
    got = b""
    for chunk in chunks:
        reader.feed(chunk)
        while (part := reader.pop_chunk()) is not None:
            got += part
    return got


@given(st.lists(st.integers(0, 800), max_size=8))
def test_body_is_the_same_however_it_is_cut(cuts: list[int]) -> None:
    payload = FULL.to_payload()
    edges = [0, *sorted(min(cut, len(payload)) for cut in cuts), len(payload)]
    reader = BodyReader()
    assert read(reader, *(payload[a:b] for a, b in pairwise(edges) if a < b)) == FULL.body
    reader.end()
    assert reader.finished
    message = reader.message()
    assert message.body is None
    for name in ("subject", "durable", "annotations", "application_properties", "footer"):
        assert getattr(message, name) == getattr(FULL, name)


def test_body_is_the_same_octet_by_octet() -> None:
    reader = BodyReader()
    assert read(reader, *(bytes([octet]) for octet in FULL.to_payload())) == FULL.body
    reader.end()


def test_head_is_there_when_the_body_begins_and_nothing_was_given_out() -> None:
    payload = FULL.to_payload()
    reader = BodyReader()
    fed = 0
    while not reader.in_body:
        reader.feed(payload[fed : fed + 50])
        fed += 50
    assert reader.message().subject == "s"
    assert reader.raw == payload[:fed]
    assert not reader.started
    reader.feed(payload[fed:])
    reader.end()
    assert reader.raw == payload


def test_head_is_all_there_is_when_there_is_no_body() -> None:
    reader = BodyReader()
    reader.feed(encode_around(Message(subject="s"))[0])
    assert not reader.in_body
    reader.end()
    assert reader.in_body
    assert reader.message().subject == "s"
    assert reader.pop_chunk() is None


@pytest.mark.parametrize("body", ["text", {"k": 1}, Sequence([1], [2])])
@pytest.mark.parametrize("size", [1, 1000])
def test_body_that_is_no_data_is_named_and_kept(body: object, size: int) -> None:
    payload = Message(body, subject="s").to_payload()
    reader = BodyReader()
    assert read(reader, *(payload[at : at + size] for at in range(0, len(payload), size))) == b""
    reader.end()
    assert reader.other in {"amqp:amqp-value:*", "amqp:amqp-sequence:list"}
    assert reader.message().subject == "s"
    assert reader.raw == payload


def test_message_of_another_format_is_all_body() -> None:
    reader = BodyReader(7)
    assert reader.in_body
    assert read(reader, b"anything", b"goes") == b"anythinggoes"
    reader.end()
    assert reader.message().message_format == 7


@pytest.mark.parametrize("symbolic", [b"\x00\xa3\x10amqp:data:binary", b"\x00\x80" + bytes(7) + b"\x75"])
def test_descriptor_may_be_of_any_shape_and_cut_anywhere(symbolic: bytes) -> None:
    reader = BodyReader()
    assert read(reader, *(bytes([octet]) for octet in symbolic + b"\xa0\x02ab")) == b"ab"
    reader.end()


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"\x40", "begins no section"),
        (b"\x00\x53\x01\x40", "describes no section"),
        (b"\x00\x53\x75\xa1\x01a", "a data section of type 0xa1"),
        (b"\x00\x53\x73\x45\x00\x53\x70\x45", "section amqp:header:list after amqp:properties:list"),
        (b"\x00\x53\x75\xa0\x00\x00\x53\x77\x40", "amqp-value:\\* after amqp:data:binary"),
        (b"\x00\x53\x78\xc1\x01\x00\x00\x53\x75\xa0\x00", "data:binary after amqp:footer:map"),
    ],
)
def test_octets_that_are_no_message_are_refused(octets: bytes, text: str) -> None:
    with pytest.raises(RemoteProtocolError, match=text) as caught:
        BodyReader().feed(octets)
    assert (caught.value.condition, caught.value.scope) == (Condition.DECODE_ERROR.value, "link")


@pytest.mark.parametrize(
    "octets", [b"\x00", b"\x00\x53\x75\xa0\x02a", b"\x00\x53\x75\xb0\x00", b"\x00\x53\x73\xc0"]
)
def test_message_that_ends_inside_a_section_is_refused(octets: bytes) -> None:
    reader = BodyReader()
    reader.feed(octets)
    with pytest.raises(RemoteProtocolError, match="end inside a section"):
        reader.end()


def test_sections_that_are_kept_are_bounded() -> None:
    for octets in (
        b"\x00\x53\x74\xd1" + (2**20).to_bytes(4, "big"),
        b"\x00\xb3" + (2**21).to_bytes(4, "big"),
    ):
        reader = BodyReader()
        with pytest.raises(RemoteProtocolError, match="are not its body") as caught:
            reader.feed(octets)
            for _ in range(33):
                reader.feed(bytes(2**15))
        assert caught.value.condition == Condition.RESOURCE_LIMIT_EXCEEDED.value
