"""What a program passes to a publish becomes a content, or is refused before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp091.client.publish_content import content_of
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.core.errors import LocalProtocolError


def test_properties_are_one_object_or_single_ones_or_none() -> None:
    whole = BasicProperties(message_id="7", priority=3)
    assert content_of(b"x", whole, {}) == Content(whole, b"x")
    assert content_of(b"x", None, {"message_id": "7", "priority": 3}) == Content(whole, b"x")
    bare = content_of(b"x", None, {})
    assert (bare.properties, bare.body) == (BasicProperties(), b"x")


@pytest.mark.parametrize(
    ("properties", "fields", "why"),
    [
        (BasicProperties(), {"type": "t", "app_id": "a"}, r"single properties \(type, app_id\), not both"),
        (None, {"colour": "red"}, "unknown property: .*colour"),
        ({"priority": 3}, {}, r"properties=.*: expected a BasicProperties"),
        (None, {"delivery_mode": 7}, "delivery_mode=7: expected 1"),
        (BasicProperties(delivery_mode=0), {}, "delivery_mode=0: expected 1"),
    ],
    ids=["both", "unknown", "other type", "delivery mode", "delivery mode of the object"],
)
def test_properties_that_cannot_be_are_refused(properties: Any, fields: Any, why: str) -> None:
    with pytest.raises(LocalProtocolError, match=why):
        content_of(b"", properties, fields)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("text", r"body='text': expected bytes, not str; encode it first, as body\.encode\(\)"),
        ({"a": 1}, r"body=\{'a': 1\}: expected bytes, not dict; encode it first, as json\.dumps"),
        (None, "body=None: expected bytes, not NoneType"),
    ],
)
def test_body_that_is_no_bytes_is_refused_with_the_way_to_encode_it(body: Any, why: str) -> None:
    with pytest.raises(LocalProtocolError, match=why):
        content_of(body, None, {})


def test_body_that_may_change_is_copied() -> None:
    body = bytearray(b"body")
    made: Any = content_of(body, None, {})
    body[:] = b"gone"
    assert (made.body, type(made.body)) == (b"body", bytes)
    assert content_of(memoryview(b"seen"), None, {}).body == b"seen"
