"""Publish by one protocol, receive by the other: each row of how 0-9-1 and 1.0 are translated, over a whole container.

What becomes of a field is asked of the octets that the other client got, as the second codec reads those of 0-9-1.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.amqp091.naive import carry
from tests.scaled import scaled
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp10.wire.values import Symbol, Timestamp, UByte
from trio_amqp10.container import Container

from .script import Heard, opened

NAMES = (
    *(
        "content_type",
        "content_encoding",
        "headers",
        "delivery_mode",
        "priority",
        "correlation_id",
        "reply_to",
    ),
    *("expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id"),
)
PLACES = {name: place for place, name in enumerate(NAMES)}
SOME_UUID = uuid.UUID(int=7)
TIME = 1_700_000_000


async def to_standard(found: dict[str, Any], body: bytes = b"tea", key: str = "q") -> amqp.Message:
    """What a receiver of 1.0 gets of a publish with these properties; tables have letters."""
    places = {PLACES[name]: value for name, value in found.items()}
    async with opened(container := Container()) as client, container.connect() as conn:
        await client.ask(spec.QueueDeclare(queue="q"))
        await client.ask(spec.QueueBind(queue="q", exchange="amq.fanout"))
        exchange = "" if key == "q" else "amq.fanout"
        octets = carry("basic.publish", body, places, exchange=exchange, routing_key=key)
        await client.stream.send_all(octets)
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            delivery.accept()
            return delivery.message


async def from_standard(message: amqp.Message) -> Heard:
    """What a client of 0-9-1 gets of a message that a sender of 1.0 sent."""
    container = Container()
    container.add_queue("q")
    async with opened(container) as client, container.connect() as conn:
        async with conn.open_sender("q") as sender:
            await sender.send(message)
        return await client.ask(spec.BasicGet(queue="q", no_ack=True))


@pytest.mark.parametrize(
    ("found", "field", "expected"),
    [
        ({"delivery_mode": 2}, "durable", True),
        ({"delivery_mode": 1}, "durable", False),
        ({"priority": 7}, "priority", 7),
        ({}, "priority", 4),
        ({"message_id": "m"}, "message_id", "m"),
        ({"message_id": f"urn:uuid:{SOME_UUID}"}, "message_id", SOME_UUID),
        ({"correlation_id": "c"}, "correlation_id", "c"),
        ({"correlation_id": f"urn:uuid:{SOME_UUID}"}, "correlation_id", SOME_UUID),
        ({"user_id": "guest"}, "user_id", b"guest"),
        ({"reply_to": "replies"}, "reply_to", "replies"),
        ({"content_type": "text/plain"}, "content_type", Symbol("text/plain")),
        ({"content_encoding": "gzip"}, "content_encoding", Symbol("gzip")),
        ({"timestamp": TIME}, "creation_time", Timestamp(TIME * 1000)),
        ({"app_id": "app"}, "group_id", "app"),
        ({"headers": [("h", ("I", -7))]}, "application_properties", {"h": -7}),
        ({"headers": [("h", ("A", [("I", 1)])), ("t", ("F", []))]}, "application_properties", {}),
        ({"cluster_id": "c"}, "application_properties", {}),
    ],
)
async def test_property_of_0_9_1_reaches_a_receiver_of_1_0(
    found: dict[str, Any], field: str, expected: Any
) -> None:
    value = getattr(await to_standard(found), field)
    assert (value or {} if expected == {} else value) == expected


@pytest.mark.parametrize(
    ("found", "name", "expected"),
    [
        ({"type": "kind"}, "x-basic-type", "kind"),
        ({}, "x-exchange", "amq.fanout"),
        ({}, "x-routing-key", "a.b"),
        ({"headers": [("x-h", ("A", [("I", 1), ("S", b"two")]))]}, "x-h", [1, "two"]),
        ({"headers": [("x-h", ("F", [("k", ("t", True))]))]}, "x-h", {Symbol("k"): True}),
        ({"headers": [("CC", ("A", [("S", b"other")]))]}, "x-cc", ["other"]),
    ],
)
async def test_what_has_no_field_reaches_a_receiver_of_1_0_as_an_annotation(
    found: dict[str, Any], name: str, expected: Any
) -> None:
    message = await to_standard(found, key="a.b")
    assert (message.annotations or {})[Symbol(name)] == expected


async def test_expiration_of_0_9_1_is_what_is_left_of_it_in_1_0() -> None:
    ttl = (await to_standard({"expiration": "60000"})).ttl
    assert ttl is not None
    assert 50_000 < ttl <= 60_000


@pytest.mark.parametrize("body", [b"", b"tea"])
async def test_body_of_0_9_1_is_one_data_section_in_1_0(body: bytes) -> None:
    assert (await to_standard({}, body)).body == body


async def test_body_of_sections_is_these_in_1_0() -> None:
    payload = amqp.Message({"a": [1, "two"]}).to_payload()
    assert (await to_standard({"type": "amqp-1.0"}, payload)).body == {"a": [1, "two"]}


@pytest.mark.parametrize(
    ("message", "name", "expected"),
    [
        (amqp.Message(b"", durable=True), "delivery_mode", 2),
        (amqp.Message(b""), "delivery_mode", 1),
        (amqp.Message(b"", priority=7), "priority", 7),
        (amqp.Message(b"", message_id="m"), "message_id", b"m"),
        (amqp.Message(b"", message_id=SOME_UUID), "message_id", f"urn:uuid:{SOME_UUID}".encode()),
        (amqp.Message(b"", message_id=7), "message_id", b"7"),
        (amqp.Message(b"", correlation_id="c"), "correlation_id", b"c"),
        (amqp.Message(b"", correlation_id=SOME_UUID), "correlation_id", f"urn:uuid:{SOME_UUID}".encode()),
        (amqp.Message(b"", user_id=b"ada"), "user_id", b"ada"),
        (amqp.Message(b"", reply_to="replies"), "reply_to", b"replies"),
        (amqp.Message(b"", reply_to="/queues/replies"), "reply_to", b"replies"),
        (amqp.Message(b"", content_type="text/plain"), "content_type", b"text/plain"),
        (amqp.Message(b"", content_encoding="gzip"), "content_encoding", b"gzip"),
        (amqp.Message(b"", group_id="app"), "app_id", b"app"),
        (amqp.Message(b"", creation_time=datetime.fromtimestamp(TIME, UTC)), "timestamp", TIME),
        (amqp.Message(b"", annotations={"x-basic-type": "kind"}), "type", b"kind"),
        (amqp.Message({"a": 1}), "type", b"amqp-1.0"),
        (amqp.Message(b"", subject="s", to="q", group_sequence=1, reply_to_group_id="g"), "type", None),
    ],
)
async def test_field_of_1_0_reaches_a_client_of_0_9_1(
    message: amqp.Message, name: str, expected: Any
) -> None:
    assert (await from_standard(message)).properties[PLACES[name]] == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", ("S", b"text")),
        (Symbol("symbol"), ("S", b"symbol")),
        (True, ("t", True)),
        (UByte(7), ("B", 7)),
        (-7, ("l", -7)),
        (2.5, ("d", 2.5)),
        (b"\0\xff", ("x", b"\0\xff")),
        (None, ("V", None)),
        (Timestamp(TIME * 1000), ("T", TIME)),
    ],
)
async def test_application_property_of_1_0_is_a_header_of_0_9_1_with_its_letter(
    value: Any, expected: Any
) -> None:
    got = await from_standard(amqp.Message(b"", application_properties={"h": value}))
    assert got.properties[PLACES["headers"]] == [(b"h", expected)]


@pytest.mark.parametrize("name", ["message_id", "correlation_id"])
@pytest.mark.parametrize("value", ["x" * 256, b"\0\xff"])
async def test_id_of_1_0_that_is_no_short_string_is_a_header_of_0_9_1(name: str, value: Any) -> None:
    got = await from_standard(amqp.Message(b"", **{name: value}))
    letter, octets = ("S", value.encode()) if isinstance(value, str) else ("x", value)
    assert got.properties[PLACES[name]] is None
    assert got.properties[PLACES["headers"]] == [(f"x-{name.replace('_', '-')}".encode(), (letter, octets))]


async def test_place_of_a_message_of_1_0_is_the_queue_in_0_9_1() -> None:
    got = await from_standard(amqp.Message(b"tea"))
    assert (got["exchange"], got["routing_key"], got.body) == (b"", b"q", b"tea")


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"x-h": "v"}, [(b"x-h", ("S", b"v"))]),
        ({"x-cc": ["other"]}, [(b"CC", ("A", [("S", b"other")]))]),
        (
            {"x-opt-rabbitmq-received-time": Timestamp(TIME * 1000)},
            [(b"timestamp_in_ms", ("l", TIME * 1000))],
        ),
        ({"x-basic-odd": "v"}, None),
    ],
)
async def test_annotation_of_1_0_is_a_header_of_0_9_1_where_it_has_a_place(
    annotations: dict[str, Any], expected: Any
) -> None:
    assert (await from_standard(amqp.Message(b"", annotations=annotations))).properties[2] in (
        expected,
        expected or [],
    )


async def test_body_of_1_0_that_is_no_data_reaches_a_client_of_0_9_1_as_sections() -> None:
    got = await from_standard(amqp.Message({"a": [1, "two"]}))
    assert amqp.Message.from_payload(got.body).body == {"a": [1, "two"]}


SHORT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20).map(str.encode)
HEADER = st.one_of(
    st.tuples(st.just("t"), st.booleans()),
    st.tuples(st.just("I"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("l"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("S"), SHORT),
    st.tuples(st.just("T"), st.integers(0, 2**31)),
    st.just(("V", None)),
)
KEPT = {
    **{name: SHORT for name in ("content_type", "content_encoding", "type") if name == "type"},
    **{name: st.from_regex(r"[a-z/]{1,20}", fullmatch=True).map(str.encode) for name in NAMES[:2]},
    "headers": st.dictionaries(st.from_regex(r"[a-w][a-z]{0,8}", fullmatch=True), HEADER, max_size=4),
    "delivery_mode": st.sampled_from([1, 2]),
    "priority": st.integers(0, 9),
    "correlation_id": SHORT,
    "reply_to": SHORT,
    "message_id": SHORT,
    "timestamp": st.integers(0, 2**33),
    "user_id": st.just(b"guest"),
    "app_id": SHORT,
}
"""What comes back as it was; of the rest the rows say what becomes."""


@given(st.fixed_dictionaries({}, optional=KEPT), st.binary(max_size=50))
@example({"priority": 4}, b"")
@settings(max_examples=scaled(60))
def test_message_of_0_9_1_comes_back_through_1_0_as_it_was(found: dict[str, Any], body: bytes) -> None:
    found = {name: value for name, value in found.items() if value != b"amqp-1.0" and value != b""}
    table = [(name.encode(), value) for name, value in found.pop("headers", {}).items()]

    async def main() -> Heard:
        return await from_standard(
            await to_standard({**found, **({"headers": table} if table else {})}, body)
        )

    got = trio.run(main)
    assert got.body == body
    expected = {PLACES[name]: value for name, value in found.items()}
    expected.setdefault(PLACES["delivery_mode"], 1)
    again = {place: value for place, value in enumerate(got.properties) if value is not None and place != 2}
    again = {
        place: value for place, value in again.items() if place in expected or place != PLACES["priority"]
    }
    assert again == expected
    assert sorted(got.properties[2] or [], key=repr) == sorted(table, key=repr)
