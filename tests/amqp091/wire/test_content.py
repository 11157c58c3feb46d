"""Content headers: flags, properties, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp091 import naive
from tests.engine_pairs import refusal
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, read_header, write_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import FIVE, USUAL
from trio_amqp10.core.errors import LocalProtocolError

from .test_fields import names, tables, usual
from .test_vectors import NAMES, plain

TEXTS = ("content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id", "type", "user_id",
         "app_id", "cluster_id")  # fmt: skip

properties = st.builds(
    BasicProperties,
    headers=st.none() | tables(usual),
    delivery_mode=st.none() | st.integers(0, 255),
    priority=st.none() | st.integers(0, 255),
    timestamp=st.none() | st.integers(0, (1 << 64) - 1),
    **{name: st.none() | names for name in TEXTS},
)


@given(properties, st.binary(max_size=20))
def test_headers_round_trip_and_the_second_reader_agrees(made: BasicProperties, body: bytes) -> None:
    payload = write_header(Content(made, body), USUAL)
    header = read_header(payload, USUAL)
    assert header.size == len(body)
    assert header.octets == made.encode(USUAL) == payload[12:]
    assert header.properties.encode(USUAL) == header.octets
    assert write_header(Content(BasicProperties(), body, header.octets), USUAL) == payload
    for name, value in zip(NAMES, naive.properties(header.octets), strict=True):
        if name not in ("headers", "timestamp"):
            assert value == plain(getattr(made, name))


@given(st.binary(max_size=80))
def test_any_octets_are_a_header_or_refused(octets: bytes) -> None:
    for payload in (octets, b"\0\x3c\0\0" + bytes(8) + octets):
        fault = refusal(read_header, payload, USUAL)
        assert fault is None or fault.code in (501, 502, 505)


def header(rest: bytes, class_id: int = 60, weight: int = 0) -> bytes:
    return class_id.to_bytes(2) + weight.to_bytes(2) + bytes(8) + rest


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"\0\x3c", 501),
        (header(b"\0\0", class_id=50), 505),
        (header(b"\0\0", weight=1), 505),
        (header(b"\0\0\0"), 501),
        (header(b"\x80\0\2a"), 501),
        (header(b"\0\1"), 501),
        (header(b"\0\1\x80\0"), 502),
        (header(b"\0\1\0\1\0\0"), 502),
        (header(b"\x20\0\0\0\0\3\1\0V"), 502),
    ],
)
def test_bad_header_is_refused(payload: bytes, code: int) -> None:
    with pytest.raises(ReplyError) as caught:
        read_header(payload, USUAL)
    assert caught.value.code == code


def test_flag_of_no_property_and_empty_continuation_are_taken() -> None:
    assert read_header(header(b"\0\2"), USUAL).properties == BasicProperties()
    assert read_header(header(b"\x10\1\0\0\2"), USUAL).properties == BasicProperties(delivery_mode=2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("priority", 256),
        ("content_type", "\0"),
        ("timestamp", -1),
        ("timestamp", "now"),
        ("headers", {"k": object()}),
        ("headers", {5: "k"}),
        ("headers", 5),
    ],
)
def test_property_that_does_not_fit_is_a_local_error_that_names_it(name: str, value: Any) -> None:
    for letters in (USUAL, FIVE):
        with pytest.raises(LocalProtocolError, match=name):
            BasicProperties(**{name: value}).encode(letters)
