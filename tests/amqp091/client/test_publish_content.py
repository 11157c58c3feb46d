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
    ],
    ids=["both", "unknown"],
)
def test_properties_that_cannot_be_are_refused(properties: Any, fields: Any, why: str) -> None:
    with pytest.raises(LocalProtocolError, match=why):
        content_of(b"", properties, fields)
