"""Messages as text: octets, UTF-8 and JSON, and never a repr."""

from __future__ import annotations

import json
from typing import Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.tools.cli.message_text import body_octets, message_json


@pytest.mark.parametrize(
    ("body", "octets"),
    [
        (b"\x00\xff", b"\x00\xff"),
        ("gr\u00fc\u00df", "gr\u00fc\u00df".encode()),
        (amqp.Value(b"bin"), b"bin"),
        (amqp.Data(b"a", b"b"), b"ab"),
        (None, b"null"),
        (7, b"7"),
        (1.5, b"1.5"),
        (True, b"true"),
        ([1, "two", None], b'[1, "two", null]'),
        ({"k": {"n": [1]}}, b'{"k": {"n": [1]}}'),
        (amqp.Sequence([1], [2]), b"[1, 2]"),
    ],
)
def test_body_is_shown_as_what_it_is(body: Any, octets: bytes) -> None:
    assert body_octets(amqp.Message(body)) == octets


def test_message_shows_every_field_that_is_set_and_no_other() -> None:
    message = amqp.Message(
        b"text",
        message_id=7,
        subject="s",
        durable=True,
        priority=5,
        ttl=10,
        annotations={"x-opt": b"\x01"},
        application_properties={"a": 1},
    )
    assert json.loads(message_json(message)) == {
        "body": "text",
        "body_type": "data",
        "message_id": 7,
        "subject": "s",
        "ttl": 10,
        "durable": True,
        "priority": 5,
        "application_properties": {"a": 1},
        "annotations": {"x-opt": {"base64": "AQ=="}},
    }


def test_message_shows_data_that_is_no_text_as_base64() -> None:
    assert json.loads(message_json(amqp.Message(b"\xff"))) == {
        "body": {"base64": "/w=="},
        "body_type": "data",
    }


def test_message_shows_a_sequence_as_a_list() -> None:
    shown = json.loads(message_json(amqp.Message(amqp.Sequence([1], ["two"]))))
    assert shown == {"body": [1, "two"], "body_type": "sequence"}


def test_message_that_cannot_be_decoded_is_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        body_octets(amqp.Message.from_payload(b"\x00\x53\x77\xc1"))


def test_json_escapes_all_control_characters() -> None:
    text = "a\x1b[2J\x7f\x9b31m\x85b"
    shown = message_json(amqp.Message(text, subject=text))
    assert not [octet for octet in shown.decode() if ord(octet) < 32 or 127 <= ord(octet) < 160]
    assert json.loads(shown)["body"] == json.loads(shown)["subject"] == text
