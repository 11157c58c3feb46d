"""Messages that are read less strictly, by the rules of their connection (1.6.23, 3.2)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import pytest

from tests.naive.performatives import sections
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.tolerant import message_class
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.peer_rules import Strict

STRICT, TOLERANT = Strict.all(True), Strict.all(False)
PROPERTIES = bytes.fromhex("005374c10904a1016b41a1016b42")
VALUE = bytes.fromhex("005377c10904a1016b41a1016b42")


def test_row_29_map_with_a_key_twice_in_a_message_is_refused_when_strict_only() -> None:
    strict = message_class(STRICT).from_payload(PROPERTIES + VALUE)
    for name in ("application_properties", "body"):
        with pytest.raises(RemoteProtocolError, match=r"appears twice .*\[duplicate-map-keys\]"):
            getattr(strict, name)
    tolerant = message_class(TOLERANT).from_payload(PROPERTIES + VALUE)
    assert tolerant.application_properties == tolerant.body == {"k": False}
    assert tolerant.to_payload() == PROPERTIES + VALUE


JUMBLED = sections(("data", b"x"), ("properties", {"subject": "s"}), ("header", {"durable": True}))


def test_sections_out_of_order_are_refused_when_strict_only() -> None:
    with pytest.raises(RemoteProtocolError, match=r"\[section-order\]"):
        _ = message_class(STRICT).from_payload(JUMBLED).subject
    message = message_class(TOLERANT).from_payload(JUMBLED)
    assert (message.subject, message.durable, message.body) == ("s", True, b"x")
    assert message.to_payload() == JUMBLED
    message.subject = "other"
    read = Message.from_payload(message.to_payload())  # what is written anew is in order
    assert (read.subject, read.durable, read.body) == ("other", True, b"x")


@pytest.mark.parametrize(
    "parts",
    [
        (("header", {"durable": True}), ("header", {"durable": True})),
        (("data", b"x"), ("header", {"durable": True}), ("data", b"y")),
        (("data", b"x"), ("amqp-value", "y")),
    ],
)
def test_sections_that_come_twice_are_refused_when_tolerant_too(parts: Any) -> None:
    with pytest.raises(RemoteProtocolError, match=r"\[section-order\]"):
        _ = message_class(TOLERANT).from_payload(sections(*parts)).subject


@pytest.mark.parametrize("duplicates", [True, False])
@pytest.mark.parametrize("order", [True, False])
def test_message_class_is_plain_by_default(duplicates: bool, order: bool) -> None:
    made = message_class(Strict(duplicate_map_keys=duplicates, section_order=order))
    assert issubclass(made, Message)
    assert (made is Message) is (duplicates and not order)
    assert message_class(Strict()) is Message
