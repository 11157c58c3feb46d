"""Messages of AMQP/Fast as those of other protocols, and back."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp091.server.native_message import to_published
from trio_amqp10.amqp10.wire.values import Timestamp
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.conversion.translate import SECTIONS, to_fast, to_standard
from trio_amqp10.amqp_fast.engine.message import Message
from trio_amqp10.broker.nodes.form_registry import content_of

OPENED = spec.HandleOpen(mime_type="text/plain", encoding="gzip")
HEAD = spec.MessageHead(
    persistent=True,
    priority=7,
    expiration=4_000_000_000,
    mime_type="text/xml",
    encoding="utf-8",
    identifier="id-1",
    headers={"text": "a", "number": -5, "time": datetime(2005, 3, 30, tzinfo=UTC), "REPLY_TO": "back"},
)


def content(message: amqp.Message) -> Any:
    return content_of(0, message.to_payload())


def test_message_is_that_of_amqp_1_0_and_comes_back_as_it_was() -> None:
    standard = to_standard(Message(HEAD, b"body"), OPENED)
    assert (standard.durable, standard.priority, standard.body) == (True, 7, b"body")
    assert standard.absolute_expiry_time == Timestamp(4_000_000_000_000)
    assert (standard.content_type, standard.content_encoding) == ("text/xml", "utf-8")
    assert (standard.message_id, standard.reply_to) == ("id-1", "back")
    assert standard.application_properties["time"] == Timestamp(1_112_140_800_000)
    assert to_fast(content(standard)) == Message(HEAD, b"body")


def test_message_without_a_type_has_that_of_its_handle_or_the_default() -> None:
    plain = to_standard(Message(spec.MessageHead(), b""), OPENED)
    assert (plain.content_type, plain.content_encoding) == ("text/plain", "gzip")
    plain = to_standard(Message(spec.MessageHead(), b""), spec.HandleOpen())
    assert (plain.content_type, plain.content_encoding) == ("application/octet-stream", "binary")


def test_reply_goes_to_the_handle_unless_the_message_says_otherwise() -> None:
    assert to_standard(Message(HEAD), OPENED, reply_to="handle").reply_to == "back"
    assert to_standard(Message(spec.MessageHead()), OPENED, reply_to="handle").reply_to == "handle"


def test_values_that_amqp_1_0_has_not_are_text_there() -> None:
    head = spec.MessageHead(headers={"price": Decimal("1.50"), "bad": "\udcff"})
    assert to_standard(Message(head), OPENED).application_properties == {"price": "1.50", "bad": "\ufffd"}


@pytest.mark.parametrize(
    ("body", "octets", "mime_type"),
    [(b"x", b"x", ""), ("text", b"text", "text/plain"), ({"a": 1}, None, SECTIONS)],
)
def test_body_of_amqp_1_0_is_octets(body: Any, octets: bytes | None, mime_type: str) -> None:
    made = to_fast(content(amqp.Message(body)))
    assert made.head.mime_type == mime_type
    assert made.body == (octets if octets is not None else amqp.Message(body).to_payload())


def test_fields_that_amqp_fast_has_not_are_left_out() -> None:
    message = amqp.Message(
        b"",
        priority=200,
        message_id="x" * 300,
        subject="lost",
        application_properties={"with-dash": 1, "yes": True, "long": 2**40, "share": 0.5},
    )
    made = to_fast(content(message))
    assert made.head.priority == 9
    assert made.head.identifier == ""
    assert made.head.headers == {"yes": "true", "share": "0.5"}


@pytest.mark.parametrize(
    ("ahead", "least", "most"), [(60, 58_000, 60_000), (-1, 0, 0), (50 * 86_400, None, None)]
)
def test_expiration_is_a_ttl_too_where_it_fits(ahead: int, least: int | None, most: int | None) -> None:
    head = spec.MessageHead(expiration=int(time.time()) + ahead)
    ttl = to_standard(Message(head, b""), spec.HandleOpen()).ttl
    assert ttl is least is None or (ttl is not None and least <= ttl <= most)  # type: ignore[operator]


def test_ttl_is_an_expiration() -> None:
    before = int(time.time())
    expiration = to_fast(content(amqp.Message(b"", ttl=60_000))).head.expiration
    assert before + 60 <= expiration <= time.time() + 61


def test_correlation_is_the_identifier_of_a_reply() -> None:
    assert to_fast(content(amqp.Message(b"", correlation_id="r1"))).head.identifier == "r1"


def test_content_that_cannot_be_read_is_a_body_of_its_octets() -> None:
    assert to_fast(content_of(0, b"\xff\xff")).body == b"\xff\xff"


def test_message_reaches_clients_of_0_9_1() -> None:
    published = to_published(content(to_standard(Message(HEAD, b"body"), OPENED)), "q")
    properties = published.properties
    assert published.body == b"body"
    assert (properties.delivery_mode, properties.priority, properties.message_id) == (2, 7, "id-1")
    assert (properties.content_type, properties.reply_to) == ("text/xml", "back")
    assert published.headers["text"] == "a"
    assert to_fast(published).head.headers["text"] == "a"
