"""The filters that compare fields."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pytest

from trio_amqp10.amqp10.filters import FilterError
from trio_amqp10.amqp10.filters.properties import application_properties_filter, properties_filter
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Decimal64, Float, Symbol, UInt

IDENTITY = uuid.UUID(int=3)
MESSAGE = Message(
    message_id=7,
    user_id=b"guest",
    subject="&red apple",
    to="queue",
    correlation_id=IDENTITY,
    content_type="text/plain",
    creation_time=42,
    group_sequence=9,
    application_properties={
        "colour": "red",
        "weight": UInt(5),
        "price": Float(0.5),
        "exact": Decimal64.from_decimal(Decimal("2.5")),
        "fresh": True,
        "octets": b"\x01",
        "id": IDENTITY,
        "nothing": None,
        "symbol": Symbol("red"),
    },
)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"message-id": 7, "user-id": b"guest"}, True),
        ({"message-id": 8}, False),
        ({"message-id": "7"}, False),
        ({"subject": "&&red apple"}, True),
        ({"subject": "&p:&red", "to": "&s:eue"}, True),
        ({"subject": "&p:red"}, False),
        ({"subject": "&s:pear"}, False),
        ({"subject": "&p:&red apple pie"}, False),
        ({"to": "Queue"}, False),
        ({"reply-to": "x"}, False),
        ({"reply-to": None, "to": None}, True),
        ({"correlation-id": IDENTITY, "content-type": Symbol("text/plain")}, True),
        ({"correlation-id": uuid.UUID(int=4)}, False),
        ({"creation-time": 42, "group-sequence": UInt(9)}, True),
        ({"message-id": "&p:7"}, False),
        ({"to": "queue", "message-id": 8}, False),
        ({"user-id": b"Guest"}, False),
    ],
)
def test_properties_filter_compares_fields(fields: dict[str, Any], expected: bool) -> None:
    passes = properties_filter({Symbol(name): value for name, value in fields.items()})
    assert passes(MESSAGE) is expected
    assert passes(Message.from_payload(MESSAGE.to_payload())) is expected


def test_properties_filter_needs_properties_unless_it_asks_for_nothing() -> None:
    message = Message.from_payload(Message(b"body").to_payload())
    assert not properties_filter({"to": "queue"})(message)
    assert properties_filter({"to": None})(message)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ({"colour": "red", "weight": 5, "price": 0.5}, True),
        ({"weight": 5.0, "exact": 2.5, "fresh": True, "octets": b"\x01", "id": IDENTITY}, True),
        ({"exact": Decimal64.from_decimal(Decimal("2.50"))}, True),
        ({"colour": "&p:re", "symbol": "&s:ed"}, True),
        ({"colour": "Red"}, False),
        ({"weight": "5"}, False),
        ({"fresh": 1}, False),
        ({"weight": True}, False),
        ({"octets": "\x01"}, False),
        ({"id": str(IDENTITY)}, False),
        ({"colour": IDENTITY}, False),
        ({"colour": None, "nothing": None}, True),
        ({"absent": None}, False),
        ({"nothing": "x"}, False),
        ({"nothing": 1}, False),
        ({"colour": "red", "weight": 6}, False),
    ],
)
def test_application_properties_filter_compares_entries(entries: dict[str, Any], expected: bool) -> None:
    passes = application_properties_filter(entries)
    assert passes(MESSAGE) is expected
    assert passes(Message.from_payload(MESSAGE.to_payload())) is expected
    assert not passes(Message.from_payload(Message(b"body").to_payload()))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x", "must be a map"),
        ({}, "0 properties"),
        ({f"k{index}": 1 for index in range(65)}, "65 properties"),
        ({1: 2}, "the name of a property must be a string"),
        ({"to": "&x:a"}, "after &"),
    ],
)
def test_filter_of_properties_raises_when_it_is_malformed(value: Any, words: str) -> None:
    for build in (properties_filter, application_properties_filter):
        with pytest.raises(FilterError, match=words):
            build(value)


def test_filter_of_properties_raises_when_a_field_is_unknown_or_of_another_type() -> None:
    with pytest.raises(FilterError, match="no field 'colour'"):
        properties_filter({"colour": "red"})
    with pytest.raises(FilterError, match="creation-time is milliseconds"):
        properties_filter({"creation-time": "now"})
    with pytest.raises(FilterError, match="simple value"):
        application_properties_filter({"a": [1]})
