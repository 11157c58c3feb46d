"""What identifiers mean."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from trio_amqp10.amqp10.filters import Dialect, Selector
from trio_amqp10.amqp10.filters.fields import OTHER, plain, reader, resolve
from trio_amqp10.amqp10.message import Message

FULL = Message(
    b"body",
    durable=True,
    priority=7,
    ttl=1000,
    delivery_count=2,
    message_id="ID:1",
    user_id=b"guest",
    to="queue",
    subject="news",
    reply_to="answers",
    correlation_id=5,
    content_type="text/plain",
    absolute_expiry_time=99,
    creation_time=42,
    group_id="g",
    group_sequence=3,
    application_properties={"priority": "mine", "amqp.subject": "theirs", "p.subject": "dotted"},
    annotations={"x-opt-y": 1},
    delivery_annotations={"x": 2},
    footer={"x": 3},
)
EMPTY = Message.from_payload(Message(b"body").to_payload())


def read(name: str, message: Message, dialect: Dialect = "jms") -> Any:
    return reader(resolve(name, dialect))(message)


@pytest.mark.parametrize(
    ("name", "full", "empty"),
    [
        ("JMSMessageID", "ID:1", None),
        ("JMSCorrelationID", "ID:AMQP_ULONG:5", None),
        ("JMSDeliveryMode", "PERSISTENT", "NON_PERSISTENT"),
        ("JMSPriority", 7, 4),
        ("JMSTimestamp", 42, None),
        ("JMSExpiration", 99, 0),
        ("JMSRedelivered", True, False),
        ("JMSType", "news", None),
        ("JMSDestination", "queue", None),
        ("JMSReplyTo", "answers", None),
        ("JMSXGroupID", "g", None),
        ("JMSXGroupSeq", 3, None),
        ("JMSXUserID", "guest", None),
        ("JMSXDeliveryCount", 3, 1),
        ("JMSXAppID", None, None),
        ("amqp.delivery_mode", "PERSISTENT", "NON_PERSISTENT"),
        ("amqp.redelivered", True, False),
        ("amqp.durable", True, False),
        ("amqp.ttl", 1000, None),
        ("amqp.correlation-id", 5, None),
        ("amqp.user_id", b"guest", None),
        ("amqp.content_type", "text/plain", None),
        ("amqp.annotation.x-opt-y", 1, None),
        ("header.delivery-count", 2, 0),
        ("properties.group-sequence", 3, None),
        ("message-annotations.x-opt-y", 1, None),
        ("delivery_annotations.x", 2, None),
        ("footer.x", 3, None),
        ("application-properties.priority", "mine", None),
        ("priority", "mine", None),
        ("p.subject", "dotted", None),
    ],
)
def test_name_of_jms_is_read_from_its_place(name: str, full: Any, empty: Any) -> None:
    assert read(name, FULL) == full
    assert read(name, Message.from_payload(FULL.to_payload())) == full
    assert read(name, EMPTY) == empty


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p.subject", "news"),
        ("h.priority", 7),
        ("m.x-opt-y", 1),
        ("d.x", 2),
        ("f.x", 3),
        ("a.priority", "mine"),
    ],
)
def test_name_of_sql_is_read_from_its_place(name: str, value: Any) -> None:
    assert read(name, FULL, "sql") == value


def test_name_in_brackets_is_always_an_application_property() -> None:
    assert Selector("[amqp.subject] = 'theirs' AND \"amqp.subject\" = 'news'").matches(FULL)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (b"\x01\xab", "ID:AMQP_BINARY:01AB"),
        (uuid.UUID(int=1), "ID:AMQP_UUID:00000000-0000-0000-0000-000000000001"),
        (7, "ID:AMQP_ULONG:7"),
    ],
)
def test_id_is_the_text_that_jms_clients_see(value: Any, text: str) -> None:
    assert read("JMSMessageID", Message(message_id=value)) == text


def test_values_are_plain_or_other() -> None:
    class Text(str):
        __slots__ = ()

    assert plain(Text("x")) == "x"
    assert plain(uuid.UUID(int=1)) == "00000000-0000-0000-0000-000000000001"
    assert plain([1]) is OTHER


def test_reading_leaves_the_octets_of_the_message_alone() -> None:
    payload = FULL.to_payload()
    message = Message.from_payload(payload)
    assert Selector("priority = 'mine' AND amqp.subject = 'news'").matches(message)
    assert not message._lent
    assert message.to_payload() is payload
