from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trio_amqp10.amqp10.message import Message
from trio_amqp10.kombu.messages import from_kombu, is_persistent, to_kombu

SIMPLE = (
    some.none()
    | some.booleans()
    | some.integers(-(2**63), 2**63 - 1)
    | some.floats(allow_nan=False)
    | some.text()
)
HEADERS = some.dictionaries(
    some.text(max_size=10),
    SIMPLE | some.lists(some.integers(), max_size=3) | some.dictionaries(some.text(max_size=3), SIMPLE),
    max_size=5,
)


def raw(body: Any = b"body", **properties: Any) -> dict[str, Any]:
    return {
        "body": body,
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": properties.pop("headers", {}),
        "properties": {"delivery_info": {"exchange": "x"}, "delivery_tag": "1", **properties},
    }


def there_and_back(message: dict[str, Any], **options: Any) -> Any:
    octets = from_kombu(message, "tasks", "key").to_payload()
    return to_kombu(Message.from_payload(octets), None, 7, "consumer", "queue", **options)


@given(HEADERS, some.binary())
def test_headers_and_body_come_as_they_were_sent(headers: dict[str, Any], body: bytes) -> None:
    found = there_and_back(raw(body, headers=headers))
    assert found.headers == headers
    assert found.body == body


def test_integer_of_more_than_64_bits_comes_as_it_was_sent() -> None:
    assert there_and_back(raw(headers={"large": 2**70})).headers == {"large": 2**70}


def test_properties_come_as_they_were_sent() -> None:
    given = {"correlation_id": "c", "reply_to": "r", "message_id": "m", "type": "t", "app_id": "a"}
    found = there_and_back(raw(priority=3, delivery_mode=1, **given))
    assert found.properties == {"priority": 3, "delivery_mode": 1, **given}
    assert (found.content_type, found.content_encoding) == ("application/json", "utf-8")


def test_delivery_info_has_the_route_and_the_consumer() -> None:
    assert there_and_back(raw(priority=3)).delivery_info == {
        "exchange": "tasks",
        "routing_key": "key",
        "priority": 3,
        "redelivered": False,
        "consumer_tag": "consumer",
    }


def test_text_is_sent_as_octets() -> None:
    assert there_and_back(raw("grün")).body == "grün".encode()


def test_simple_headers_are_application_properties_that_filters_can_see() -> None:
    message = from_kombu(raw(headers={"task": "add", "retries": 0, "stamps": {}}), "tasks", "key")
    assert message.application_properties == {"task": "add", "retries": 0}


def test_message_of_another_client_is_readable() -> None:
    found = to_kombu(Message("text", application_properties={"a": 1}), None, 1, None, "queue")
    assert (found.body, found.headers, found.delivery_info["routing_key"]) == (b"text", {"a": 1}, "queue")
    assert "consumer_tag" not in found.delivery_info


@pytest.mark.parametrize(
    ("fields", "marks_first", "redelivered"),
    [
        ({"first_acquirer": True}, True, False),
        ({"first_acquirer": False}, True, True),
        ({"first_acquirer": False}, False, False),
        ({"first_acquirer": True, "delivery_count": 1}, True, True),
    ],
)
def test_redelivery_is_seen_in_the_header(
    fields: dict[str, Any], marks_first: bool, redelivered: bool
) -> None:
    found = to_kombu(Message(b"", **fields), None, 1, None, "queue", marks_first=marks_first)
    assert found.delivery_info["redelivered"] is redelivered


def test_expiration_is_a_ttl_in_milliseconds() -> None:
    assert from_kombu(raw(expiration="1500"), "", "q").ttl == 1500
    assert from_kombu(raw(expiration=str(2**40)), "", "q").ttl == 2**32 - 1


@pytest.mark.parametrize("wrong", ["soon", -1])
def test_expiration_that_is_no_time_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="expected milliseconds"):
        from_kombu(raw(expiration=wrong), "", "q")


def test_persistent_is_the_default() -> None:
    assert is_persistent(raw())
    assert not is_persistent(raw(delivery_mode=1))
