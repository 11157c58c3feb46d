"""The attributes of a message are kept as they were given, checked, and sent (3.2)."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pytest

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Symbol, Timestamp, UByte, UInt, ULong
from trio_amqp10.core.errors import LocalProtocolError

from .parts import DATA, DEFAULTS, ID, MAPS, UTC, received

FIELDS: dict[str, tuple[Any, Any]] = {  # given, kept
    "message_id": ("m", "m"),
    "user_id": (bytearray(b"u"), b"u"),
    "to": ("t", "t"),
    "subject": ("s", "s"),
    "reply_to": ("r", "r"),
    "correlation_id": (ID, ID),
    "content_type": ("text/plain", Symbol("text/plain")),
    "content_encoding": ("gzip", Symbol("gzip")),
    "absolute_expiry_time": (1_700_000_000_000, Timestamp(1_700_000_000_000)),
    "creation_time": (datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), Timestamp(1000)),
    "group_id": ("g", "g"),
    "group_sequence": (2**32 - 1, 2**32 - 1),
    "reply_to_group_id": ("rg", "rg"),
    "durable": (True, True),
    "priority": (9, 9),
    "ttl": (60_000, 60_000),
    "first_acquirer": (True, True),
    "delivery_count": (2, 2),
}


@pytest.mark.parametrize("name", FIELDS)
def test_field_is_kept_sent_and_read(name: str) -> None:
    given_value, kept = FIELDS[name]
    made, changed = Message("x", **{name: given_value}), Message("x")
    assert getattr(changed, name) == DEFAULTS.get(name)
    setattr(changed, name, given_value)
    back = received(made.to_payload())
    for message in (made, changed, back):
        assert getattr(message, name) == kept
        assert type(getattr(message, name)) in (type(kept), UByte, UInt)
        assert message == made
    assert changed.to_payload() == made.to_payload()
    setattr(back, name, None)
    assert back.to_payload() == Message("x").to_payload()
    assert getattr(back, name) == DEFAULTS.get(name)


def test_fields_travel_all_together() -> None:
    made = Message("x", **{name: value for name, (value, _) in FIELDS.items()})
    back = received(made.to_payload())
    assert {name: getattr(back, name) for name in FIELDS} == {
        name: kept for name, (_, kept) in FIELDS.items()
    }
    assert back == made
    assert back.creation_time is not None
    assert back.creation_time.to_datetime() == FIELDS["creation_time"][0]


@pytest.mark.parametrize(
    ("given_id", "octets"),
    [("i", "a1 01 69"), (b"i", "a0 01 69"), (5, "53 05"), (ULong(5), "53 05"), (ID, f"98 {ID.hex}")],
)
@pytest.mark.parametrize("name", ["message_id", "correlation_id"])
def test_id_travels_as_one_of_its_four_types(name: str, given_id: Any, octets: str) -> None:
    message = Message(None, **{name: given_id})
    assert bytes.fromhex(octets) in message.to_payload()
    back = getattr(received(message.to_payload()), name)
    assert back == given_id
    assert type(back) in (str, bytes, ULong, uuid.UUID)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message_id", True),
        ("message_id", 1.5),
        ("message_id", -1),
        ("message_id", 2**64),
        ("correlation_id", Symbol("s")),
        ("user_id", "joe"),
        ("to", b"t"),
        ("subject", 5),
        ("reply_to", ["r"]),
        ("group_id", b"g"),
        ("content_type", "tëxt"),
        ("creation_time", datetime.datetime(2024, 1, 1)),  # noqa: DTZ001 - naive, that is the point
        ("creation_time", "now"),
        ("absolute_expiry_time", True),
        ("absolute_expiry_time", 2**63),
        ("group_sequence", -1),
        ("group_sequence", 2**32),
        ("durable", 1),
        ("priority", 256),
        ("priority", True),
        ("ttl", 1.5),
        ("delivery_count", -1),
    ],
)
def test_field_refuses_what_it_may_not_be(name: str, value: Any) -> None:
    with pytest.raises(LocalProtocolError):
        Message("x", **{name: value})
    message = Message("x", subject="s")
    with pytest.raises(LocalProtocolError):
        setattr(message, name, value)
    assert message == Message("x", subject="s")


@pytest.mark.parametrize("name", ["to", "subject", "reply_to", "group_id", "reply_to_group_id"])
def test_text_of_a_subclass_is_kept_as_text(name: str) -> None:
    """So that a symbol, which is equal to a string, does not travel as one where a string must be."""
    for message in (Message("x", **{name: Symbol("s")}), Message("x")):
        setattr(message, name, getattr(message, name) or Symbol("s"))
        assert type(getattr(message, name)) is str
        assert getattr(received(message.to_payload()), name) == "s"


def test_class_gives_the_attributes_themselves() -> None:
    assert Message.priority.default == 4
    assert Message.footer.place == 6


@pytest.mark.parametrize("name", MAPS)
def test_map_is_kept_sent_and_read(name: str) -> None:
    octets, key_type = MAPS[name]
    made, changed, filled = Message(b"hi", **{name: {"a": 1}}), Message(b"hi"), Message(b"hi")
    assert getattr(changed, name) == {}
    setattr(changed, name, {"a": 1})
    getattr(filled, name)["a"] = 1
    for message in (made, changed, filled):
        assert bytes.fromhex(octets) in message.to_payload()
        assert len(message.to_payload()) == len(bytes.fromhex(octets) + DATA)
        assert message == made
    back = received(made.to_payload())
    assert getattr(back, name) == {"a": 1}
    assert type(next(iter(getattr(back, name)))) is key_type
    assert back == made
    setattr(back, name, None)
    assert back.to_payload() == DATA


@pytest.mark.parametrize("name", MAPS)
def test_map_is_copied_when_given_and_not_when_read(name: str) -> None:
    mine = {"a": 1}
    message = Message(b"hi", **{name: mine})
    mine["b"] = 2
    assert getattr(message, name) == {"a": 1}
    assert getattr(message, name) is getattr(message, name)
