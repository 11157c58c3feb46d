"""The short ways through the octets of a message, held against the long ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.amqp10.wire import strategies as wire
from trio_amqp10.amqp10.message import Value
from trio_amqp10.amqp10.message.sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    BODY,
    PROPERTIES,
    read_section,
    scan,
)
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.spark import section_columns
from trio_amqp10.spark.typed_json import map_to_text

from .test_rows import mangled


def either(call: Any) -> Any:
    """The result, or that there is none."""
    try:
        return call()
    except RemoteProtocolError as fault:
        return fault.condition


def the_long_way(payload: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(section_columns, "_properties", lambda *_: None)
        patch.setattr(section_columns, "_pairs", lambda *_: None)
        return either(lambda: everything(payload, scan(payload)))


TAILS: Any = {}
"""The cache of all messages of all tests, which must not change any result."""


def everything(payload: bytes, spans: Any) -> list[Any]:
    return [
        either(lambda: section_columns.properties(payload, spans[PROPERTIES], TAILS)),
        either(lambda: section_columns.pairs(APPLICATION_PROPERTIES, payload, spans[APPLICATION_PROPERTIES])),
        either(lambda: section_columns.pairs(ANNOTATIONS, payload, spans[ANNOTATIONS])),
    ]


@given(mangled())
@example(b"\x00\x53\x74\xc1\x07\x04\xa1\x01k\x41\xa1\x01k\x42")
@example(b"\x00\x53\x74\xc1\x04\x03\xa1\x01k")
@example(b"\x00\x53\x73\xc0\x03\x02\x40\x40\x40")
@example(b"\x00\x53\x73\xc0\x04\x01\xa1\x05abcde")
@example(b"\x00\x53\x73\xc0\x04\x01\xa1\x02\xff\xff")
@example(b"\x00\x53\x73\xc0\x03\x01\xa1\x05")
@example(b"\x00\x53\x72\xc1\x05\x02\xa3\x01\xff\x41")
def test_short_ways_find_what_the_long_ones_find(payload: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        expected = the_long_way(payload, patch)
    assert either(lambda: everything(payload, section_columns.split(payload))) == expected
    assert either(lambda: section_columns.split(payload)) == either(lambda: scan(payload))


@given(mangled())
@example(b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xa0\x01b")
@example(b"\x00\x53\x75\xb0\x00\x00\x00\x01a\x00\x53\x75\xb0\x00\x00\x00\x01b")
@example(b"\x00\x53\x77\xa1\x01\xff")
def test_bodies_are_what_a_message_reads(payload: bytes) -> None:
    def longest() -> Any:
        span = scan(payload)[BODY]
        return None if span is None else read_section(BODY, payload, span)

    found, expected = (
        either(lambda: section_columns.body(payload, section_columns.split(payload))),
        either(longest),
    )
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)


@given(st.dictionaries(wire.texts, wire.scalars, max_size=4))
def test_maps_are_the_same_either_way(values: dict[str, Any]) -> None:
    payload = amqp.Message(b"", application_properties=values).to_payload()
    spans = section_columns.split(payload)
    found = section_columns.pairs(APPLICATION_PROPERTIES, payload, spans[APPLICATION_PROPERTIES])
    assert (found or []) == map_to_text(amqp.Message.from_payload(payload).application_properties)


@pytest.mark.parametrize(
    "value", [0, 1, -1, 127, -128, 2**31, -(2**63), amqp.UInt(0), amqp.UInt(7), amqp.ULong(2**64 - 1)]
)
def test_integers_are_themselves(value: int) -> None:
    payload = amqp.Message(b"", application_properties={"n": value}).to_payload()
    spans = section_columns.split(payload)
    assert section_columns.pairs(APPLICATION_PROPERTIES, payload, spans[APPLICATION_PROPERTIES]) == [
        ("n", str(int(value)))
    ]


def test_rest_of_a_message_is_split_as_the_whole_is() -> None:
    payload = amqp.Message(b"b", priority=9, annotations={"a": 1}, message_id="m").to_payload()
    spans = section_columns.split(payload)
    assert spans[ANNOTATIONS] is not None
    behind = spans[ANNOTATIONS][1]
    assert section_columns.split_behind(payload, behind) == [None] * 3 + spans[3:]
    assert section_columns.split_behind(payload, 0) is None  # the header is in the part that is not parsed


def test_value_that_is_octets_is_no_data() -> None:
    payload = amqp.Message(amqp.Value(b"x")).to_payload()
    assert isinstance(section_columns.body(payload, section_columns.split(payload)), Value)
