"""Messages of 0-9-1 as messages of 1.0 and back: what is kept, and what each row says is lost."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from trio_amqp10.amqp091.conversion.translate import to_publication, to_sections
from trio_amqp10.amqp091.conversion.value_translation import to_standard
from trio_amqp10.amqp091.wire import typed_values as classic
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire import values as wire

URN = "urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
SHORT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50)
ASCII = st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=20)
SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(classic.Int64),
    st.integers(-128, 127).map(classic.Int8),
    st.integers(0, 255).map(classic.UInt8),
    st.integers(-(2**15), 2**15 - 1).map(classic.Int16),
    st.integers(0, 2**16 - 1).map(classic.UInt16),
    st.integers(0, 2**32 - 1).map(classic.UInt32),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(classic.Float32),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=20),
    st.integers(0, 2**37).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
)
NESTED = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ASCII, inner, max_size=3)),
    max_leaves=8,
)
HEADERS = st.dictionaries(
    ASCII.filter(lambda name: name != "CC" and not name.startswith("x-")), SIMPLE, max_size=4
)
ANNOTATIONS = st.dictionaries(ASCII.map("x-a{}".format), NESTED, max_size=3)
PROPERTIES = st.builds(
    lambda headers, notes, copies, **rest: BasicProperties(
        headers={**headers, **notes, **({"CC": copies} if copies else {})} or None, **rest
    ),
    HEADERS,
    ANNOTATIONS,
    st.lists(SHORT, max_size=2),
    content_type=st.one_of(st.none(), ASCII),
    content_encoding=st.one_of(st.none(), ASCII),
    delivery_mode=st.sampled_from([1, 2]),
    priority=st.one_of(st.none(), st.integers(0, 255)),
    correlation_id=st.one_of(st.none(), SHORT, st.uuids().map(lambda each: each.urn)),
    reply_to=st.one_of(st.none(), SHORT),
    expiration=st.one_of(st.none(), st.integers(0, 2**32 - 1).map(str)),
    message_id=st.one_of(st.none(), SHORT),
    timestamp=st.one_of(
        st.none(), st.integers(0, 2**37).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
    ),
    type=st.one_of(st.none(), SHORT.filter(lambda text: text != "amqp-1.0")),
    user_id=st.one_of(st.none(), SHORT),
    app_id=st.one_of(st.none(), SHORT),
)


def there(properties: BasicProperties, body: bytes = b"", **options: Any) -> Message:
    return Message.from_payload(
        to_sections(properties, body, **{"exchange": "e", "routing_key": "k", **options})
    )


@given(PROPERTIES, st.binary(max_size=50), SHORT, SHORT)
@example(BasicProperties(delivery_mode=1, priority=4), b"", "", "")
def test_message_comes_back_as_it_was(
    properties: BasicProperties, body: bytes, exchange: str, key: str
) -> None:
    back = to_publication(
        Message.from_payload(to_sections(properties, body, exchange=exchange, routing_key=key))
    )
    assert (back.body, back.exchange, back.routing_key) == (body, exchange, key)
    ours, theirs = properties.headers or {}, back.properties.headers or {}
    assert theirs == ours
    assert {name: type(value) for name, value in theirs.items()} == {
        name: type(value) for name, value in ours.items()
    }
    back.properties.headers = properties.headers
    assert back.properties.encode(USUAL) == properties.encode(USUAL)


def built(properties: BasicProperties, body: bytes, exchange: str, key: str) -> bytes:
    """The payload by way of a message that is built field by field."""
    notes: dict[Any, Any] = {}
    others: dict[str, Any] = {}
    for name, value in (properties.headers or {}).items():
        now = to_standard(value)
        if name == "CC" or name.startswith("x-"):
            notes[name.replace("CC", "x-cc")] = now
        elif not isinstance(now, (list, dict)):
            others[name] = now
    notes |= {"x-exchange": exchange, "x-routing-key": key}
    if properties.type is not None:
        notes["x-basic-type"] = properties.type
    content_type, encoding = properties.content_type, properties.content_encoding
    uuids = {
        "message_id": properties.message_id,
        "correlation_id": properties.correlation_id,
    }
    ids: dict[str, Any] = {
        name: uuid.UUID(text) if text is not None and re.fullmatch(URN, text) else text
        for name, text in uuids.items()
    }
    seconds: Any = properties.timestamp
    return Message(
        body,
        durable=properties.delivery_mode == 2,
        priority=properties.priority,
        ttl=None if properties.expiration is None else int(properties.expiration),
        first_acquirer=True,
        user_id=None if properties.user_id is None else properties.user_id.encode(),
        reply_to=properties.reply_to,
        content_type=content_type,
        content_encoding=encoding,
        creation_time=seconds,
        group_id=properties.app_id,
        application_properties=others,
        annotations=notes,
        **ids,
    ).to_payload()


@given(PROPERTIES, HEADERS, st.binary(max_size=300), SHORT, SHORT)
def test_sections_are_those_of_a_message_that_is_built_field_by_field(
    properties: BasicProperties, headers: dict[str, Any], body: bytes, exchange: str, key: str
) -> None:
    assume(properties.priority != 4)  # a message leaves its default out, which 0-9-1 does not have
    for tried in (properties.headers, headers, {"a" * 200: "x" * 200, "n": 1}, {}, None):
        properties.headers = tried
        assert to_sections(properties, body, exchange=exchange, routing_key=key) == built(
            properties, body, exchange, key
        )


@pytest.mark.parametrize("priority", [256, -1, "5"])
def test_priority_that_no_header_has_is_refused(priority: Any) -> None:
    with pytest.raises(amqp.LocalProtocolError, match="priority"):
        there(BasicProperties(priority=priority))


@pytest.mark.parametrize(
    ("properties", "field", "value"),
    [
        (BasicProperties(delivery_mode=2), "durable", True),
        (BasicProperties(delivery_mode=1), "durable", False),
        (BasicProperties(), "durable", False),
        (BasicProperties(), "priority", 4),
        (BasicProperties(priority=7), "priority", 7),
        (BasicProperties(expiration="1500"), "ttl", 1500),
        (BasicProperties(expiration="9" * 99), "ttl", 2**32 - 1),
        (BasicProperties(expiration="soon"), "ttl", None),
        (BasicProperties(message_id="urn:uuid:" + "a" * 8), "message_id", "urn:uuid:aaaaaaaa"),
        (
            BasicProperties(correlation_id=uuid.UUID(int=1).urn),
            "correlation_id",
            uuid.UUID(int=1),
        ),
        (BasicProperties(message_id=f"urn:uuid:{'A' * 32}"), "message_id", f"urn:uuid:{'A' * 32}"),
        (BasicProperties(user_id="\udcff"), "user_id", b"\xff"),
        (BasicProperties(reply_to="q"), "reply_to", "q"),
        (BasicProperties(content_type="text/\u00e9"), "content_type", None),
        (BasicProperties(timestamp=datetime.fromtimestamp(7, UTC)), "creation_time", 7000),
        (BasicProperties(timestamp=classic.Timestamp(2**63)), "creation_time", None),
        (BasicProperties(app_id="a\udcff"), "group_id", "a\ufffd"),
    ],
)
def test_property_has_its_place_in_the_standard(properties: BasicProperties, field: str, value: Any) -> None:
    found = getattr(there(properties), field)
    assert found == value
    assert isinstance(found, type(value))


def test_redelivery_and_failures_are_in_the_header() -> None:
    fresh = there(BasicProperties())
    again = there(BasicProperties(), redelivered=True, failures=3)
    assert (fresh.first_acquirer, fresh.delivery_count) == (True, 0)
    assert (again.first_acquirer, again.delivery_count) == (False, 3)


def test_headers_become_annotations_or_application_properties_and_some_are_left_out() -> None:
    message = there(
        BasicProperties(
            type="order",
            cluster_id="c",
            headers={
                "a": 1,
                "table": {"b": 1},
                "array": [1],
                "decimal": Decimal(1),
                "x-note": {"b": [classic.UInt8(1), Decimal(1)], "\u00e9": 1},
                "x-\u00e9": 1,
                "CC": ["k2"],
                "text": classic.LongString(b"\xff"),
                "large": 2**63,
            },
        )
    )
    assert message.application_properties == {"a": 1, "text": b"\xff"}
    assert type(message.application_properties["a"]) is wire.Int
    assert message.annotations == {
        "x-note": {"b": [1]},
        "x-cc": ["k2"],
        "x-basic-type": "order",
        "x-exchange": "e",
        "x-routing-key": "k",
    }
    assert message.sections == (amqp.Data(b""),)


def test_reply_addresses_are_written_as_the_container_does() -> None:
    message = there(BasicProperties(reply_to="q"), reply_to="/queues/{}".format)
    assert message.reply_to == "/queues/q"
    back = to_publication(message, reply_to=lambda address: address.removeprefix("/queues/"))
    assert back.properties.reply_to == "q"


@pytest.mark.parametrize(
    ("message", "body", "content_type"),
    [
        (Message(amqp.Value("t\u00e9a")), b"t\xc3\xa9a", "text/plain; charset=utf-8"),
        (Message("{}", content_type="application/json"), b"{}", "application/json"),
        (Message("x", content_type=""), b"x", ""),
        (Message(amqp.Value(b"\xff")), b"\xff", None),
        (Message(b"data"), b"data", None),
    ],
)
def test_text_is_the_body_itself_where_that_is_asked_for(
    message: Message, body: bytes, content_type: str | None
) -> None:
    message.annotations = {wire.Symbol("x-basic-type"): "drink"}
    found = to_publication(message, plain_text=True)
    assert (found.body, found.properties.content_type, found.properties.type) == (body, content_type, "drink")


@pytest.mark.parametrize("body", [amqp.Value(5), amqp.Value(wire.Symbol("s")), amqp.Sequence([1])])
def test_other_values_are_sections_where_a_text_is_the_body_itself(body: Any) -> None:
    found = to_publication(Message(body), plain_text=True)
    assert (found.body, found.properties.type) == (Message(body).to_payload(), "amqp-1.0")
    assert found.properties.content_type is None


@pytest.mark.parametrize("body", [amqp.Value({"a": [1]}), amqp.Sequence([1, 2], ["x"]), amqp.Value(None)])
def test_body_that_is_no_data_travels_as_sections(body: Any) -> None:
    back = to_publication(Message(body, subject="x", annotations={"x-basic-type": "mine"}, footer={"x-f": 1}))
    assert back.properties.type == "amqp-1.0"
    again = there(back.properties, back.body)
    assert again.sections == Message.from_payload(Message(body).to_payload()).sections
    assert "x-basic-type" not in again.annotations


@pytest.mark.parametrize(
    "octets",
    [b"", b"odd", Message("x", subject="s").to_payload(), Message(amqp.Value("x")).to_payload()[:-1]],
)
def test_octets_that_are_no_sections_of_a_body_are_data(octets: bytes) -> None:
    message = there(BasicProperties(type="amqp-1.0"), octets)
    assert message.body == octets
    assert message.annotations["x-basic-type"] == "amqp-1.0"


def test_several_data_sections_are_joined_and_none_is_empty() -> None:
    assert to_publication(Message(amqp.Data(b"a", b"b"))).body == b"ab"
    assert to_publication(Message.from_payload(b"")).body == b""


def test_durability_that_a_message_does_not_say_is_the_callers_to_know() -> None:
    for message in (Message(b"x"), Message(b"x", priority=5)):
        assert to_publication(message).properties.delivery_mode == 1
        assert to_publication(message, durable=True).properties.delivery_mode == 2
    says_no = Message.from_payload(b"\x00\x53\x70\xc0\x02\x01\x42" + Message(b"x").to_payload())
    assert to_publication(says_no, durable=True).properties.delivery_mode == 1


def test_ids_that_are_no_short_strings_become_headers() -> None:
    long = "x" * 256
    back = to_publication(Message(b"", message_id=long, correlation_id=b"\1"))
    assert (back.properties.message_id, back.properties.correlation_id) == (None, None)
    assert back.properties.headers == {"x-message-id": long, "x-correlation-id": b"\1"}
    back = to_publication(Message(b"", message_id=7, correlation_id=uuid.UUID(int=1)))
    assert (back.properties.message_id, back.properties.correlation_id) == ("7", uuid.UUID(int=1).urn)


def test_annotations_become_headers_under_their_names() -> None:
    message = Message(
        b"",
        annotations={
            "x-cc": ["k2"],
            "x-opt-rabbitmq-received-time": wire.Timestamp(1500),
            "x-opt-deaths": [{"queue": "q"}],
            "x-death": "not copied",
            "x-basic-odd": "not copied",
            "x-opt-other": 2,
            "x-mine": 1,
            "other": "not copied",
            7: "not copied",
        },
    )
    headers = to_publication(message).properties.headers
    assert headers == {
        "CC": ["k2"],
        "timestamp_in_ms": 1500,
        "x-death": [{"queue": "q"}],
        "x-opt-other": 2,
        "x-mine": 1,
    }
    assert to_publication(message).exchange is None


def test_long_names_and_texts_of_the_standard_are_left_out() -> None:
    long = "x" * 256
    back = to_publication(
        Message(b"", group_id=long, reply_to=long, user_id=b"\0", application_properties={long: 1, "a": 2})
    ).properties
    assert (back.app_id, back.reply_to, back.user_id, back.headers) == (None, None, None, {"a": 2})
