"""Messages of 0-9-1 as content, as messages of AMQP 1.0, and back."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.contents_shortcut import NO_PROPERTIES
from trio_amqp10.amqp091.server.native_message import NUMBER, Published, published, to_published
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.typed_values import (
    Float32,
    Int8,
    Int16,
    Int64,
    LongString,
    UInt8,
    UInt16,
    UInt32,
)
from trio_amqp10.amqp091.wire.typed_values import Timestamp as Timestamp091
from trio_amqp10.amqp10.message import Message, Sequence, Value
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.amqp10.wire.values import Byte, Char, Int, Symbol, Timestamp, UByte, UInt, ULong, UShort
from trio_amqp10.container import Container

from .script import opened

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.content import Content

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def of(body: bytes = b"body", **properties: Any) -> Published:
    made = BasicProperties(**properties)
    return Published("ex", "key", made.encode(USUAL), body, made)


def back(content: Content) -> Published:
    return to_published(content_of_message(content.as_message()), "q")


def from_message(body: Any = b"x", **fields: Any) -> Published:
    return to_published(content_of_message(Message(body, **fields)), "q")


# -- the form -------------------------------------------------------------------------------

short = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)


@given(
    exchange=short,
    key=short,
    body=st.binary(max_size=50),
    message_id=st.none() | short,
    priority=st.none() | st.integers(0, 255),
    mode=st.none() | st.integers(0, 255),
    expiration=st.none() | st.integers(0, 1 << 32).map(str),
    redelivered=st.booleans(),
    failures=st.integers(0, 0xFFFFFFFF),
)
def test_stored_octets_are_read_as_the_same_message(
    exchange: str,
    key: str,
    body: bytes,
    message_id: str | None,
    priority: int | None,
    mode: int | None,
    expiration: str | None,
    redelivered: bool,
    failures: int,
) -> None:
    properties = BasicProperties(
        message_id=message_id, priority=priority, delivery_mode=mode, expiration=expiration
    )
    made = Published(
        exchange, key, properties.encode(USUAL), body, redelivered=redelivered, failures=failures
    )
    again = published(made.octets)
    for name in (
        "exchange",
        "routing_key",
        "body",
        "raw",
        "redelivered",
        "failures",
        "terms",
        "durable",
        "number",
    ):
        assert getattr(again, name) == getattr(made, name)
    assert made.durable == (mode == 2)
    assert made.terms.ttl == (None if expiration is None else int(expiration))


@given(st.binary(max_size=40))
def test_stored_octets_that_are_no_message_are_refused(octets: bytes) -> None:
    try:
        made = published(octets)
    except ValueError:
        return
    assert made.number == NUMBER


def test_ended_lease_leaves_a_mark_and_a_count() -> None:
    once = of().acquired()
    assert isinstance(once, Published)
    assert (once.redelivered, once.failures) == (True, 0)
    assert once.acquired() is once
    failed = once.acquired(failed=True)
    assert isinstance(failed, Published)
    assert failed.failures == 1
    assert failed.as_message().delivery_count == 1
    assert failed.as_message().first_acquirer is False


def test_aged_message_keeps_its_octets_and_is_translated_with_what_is_left() -> None:
    aged = of(expiration="1000").aged(400)
    assert isinstance(aged, Published)
    assert aged.raw == of(expiration="1000").raw
    assert aged.as_message().ttl == 400


def test_mark_on_an_aged_message_leaves_what_it_has_left_to_live() -> None:
    aged = of(expiration="1000").aged(400)
    for marked in (aged.acquired(failed=True), aged.published_to("other", "key")):
        assert marked.terms.ttl == marked.as_message().ttl == 400


def test_deaths_are_counted_by_queue_and_reason() -> None:
    dead = of(expiration="5").dead("q", "expired", 5.0).dead("r", "rejected", 5.0)
    dead = dead.dead("q", "expired", 5.0)
    assert isinstance(dead, Published)
    deaths = dead.headers["x-death"]
    assert [(each["queue"], each["reason"], each["count"]) for each in deaths] == [
        ("q", "expired", 2),
        ("r", "rejected", 1),
    ]
    assert deaths[0]["original-expiration"] == "5"
    assert {each["time"].timestamp() for each in deaths} == {5.0}
    assert dead.headers["x-first-death-queue"] == "q"
    assert dead.properties.expiration is None
    assert dead.terms.ttl is None


def test_header_that_is_no_history_is_replaced_by_one() -> None:
    dead = of(headers={"x-death": [{"queue": "q"}, 7, {}]}).dead("q", "overflow", 5.0)
    assert isinstance(dead, Published)
    assert [each["reason"] for each in dead.headers["x-death"]] == ["maxlen"]


@pytest.mark.parametrize(
    "forged",
    [
        {"count": 2**63 - 1},
        {"count": -1},
        {"count": 1e300},
        {"count": math.inf},
        {"time": 2**62},
        {"time": -(2**62)},
        {"time": Timestamp091(2**63)},
        {"time": math.inf},
        {
            "queue": LongString(b"\xff"),
            "exchange": LongString(b"\xff"),
            "routing-keys": [LongString(b"\xff")],
        },
        {"routing-keys": [1, b"\xff", None, [1]]},
        {"original-expiration": LongString(b"\xff")},
    ],
    ids=repr,
)
@pytest.mark.parametrize("queue", ["q", "r", "\udcff"])
def test_history_that_a_publisher_wrote_keeps_no_message_alive(forged: dict[str, Any], queue: str) -> None:
    entry = {"queue": "q", "reason": "expired", "count": 1, "time": 5, "exchange": "e", "routing-keys": ["k"]}
    message = of(headers={"x-death": [{**entry, **forged}], "x-first-death-queue": LongString(b"\xff")})
    dead = message.dead(queue, "expired", 5.0).dead(queue, "expired", 6.0)
    assert dead.deaths[0].queue == queue
    assert dead.translated()


def test_names_that_are_not_utf_8_stay_in_the_history() -> None:
    message = Published("e\udcff", "k\udcff", NO_PROPERTIES, b"x")
    dead = message.dead("q\udcff", "expired", 5.0).dead("q\udcff", "expired", 5.0).dead("r", "rejected", 5.0)
    assert isinstance(dead, Published)
    _, first = dead.headers["x-death"]
    assert (first["queue"], first["count"], first["routing-keys"]) == (b"q\xff", 2, [b"k\xff"])
    assert (first["exchange"], dead.headers["x-first-death-queue"]) == (b"e\xff", b"q\xff")
    assert [each.queue for each in dead.deaths] == ["r", "q\udcff"]
    deaths = Message.from_payload(dead.translated()).annotations["x-opt-deaths"]
    assert [each["queue"] for each in deaths] == ["r", "q\ufffd"]


# -- to 1.0 ---------------------------------------------------------------------------------


def test_properties_have_their_places_in_1_0() -> None:
    message = of(
        content_type="text/plain",
        content_encoding="gzip",
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="r",
        expiration="99",
        message_id="m",
        timestamp=NOON,
        type="t",
        user_id="u",
        app_id="a",
    ).as_message()
    assert (message.content_type, message.content_encoding) == ("text/plain", "gzip")
    assert (message.durable, message.priority, message.ttl) == (True, 7, 99)
    assert (message.correlation_id, message.reply_to, message.message_id) == ("c", "r", "m")
    assert message.creation_time == int(NOON.timestamp()) * 1000
    assert (message.user_id, message.group_id) == (b"u", "a")
    assert message.annotations == {"x-exchange": "ex", "x-routing-key": "key", "x-basic-type": "t"}
    assert message.body == b"body"


def test_absent_properties_are_defaults_in_1_0() -> None:
    message = of(b"").as_message()
    assert (message.durable, message.priority, message.ttl, message.body) == (False, 4, None, b"")


def test_identifier_of_a_uuid_is_one_in_1_0() -> None:
    number = uuid.uuid4()
    message = of(message_id=f"urn:uuid:{number}", correlation_id="urn:uuid:none").as_message()
    assert (message.message_id, message.correlation_id) == (number, "urn:uuid:none")
    assert back(of(message_id=f"urn:uuid:{number}")).properties.message_id == f"urn:uuid:{number}"


LETTERS = {
    "t": True,
    "b": Int8(-1),
    "B": UInt8(200),
    "s": Int16(-300),
    "u": UInt16(60_000),
    "I": -70_000,
    "i": UInt32(4_000_000_000),
    "l": Int64(1 << 40),
    "f": Float32(1.5),
    "d": 2.5,
    "T": NOON,
    "V": None,
    "x": b"\xff",
    "S": "text",
}


@pytest.mark.parametrize("letter", LETTERS)
def test_header_comes_back_with_its_letter(letter: str) -> None:
    value = LETTERS[letter]
    found = back(of(headers={"h": value, "x-h": value})).headers
    assert set(found) == {"h", "x-h"}
    for each in found.values():
        assert each == value
        assert type(each) is type(value)


def test_headers_without_a_place_in_1_0_are_left_out() -> None:
    headers = {"D": Decimal("1.5"), "A": [1], "F": {"a": 1}, "x-A": [1, Decimal(1)], "x-F": {"a": [2]}}
    found = back(of(headers=headers)).headers
    assert found == {"x-A": [1], "x-F": {"a": [2]}}


def test_text_that_is_none_is_binary_in_1_0() -> None:
    message = of(headers={"h": LongString(b"\xff")}).as_message()
    assert message.application_properties == {"h": b"\xff"}


def test_body_of_sections_is_these_sections_in_1_0() -> None:
    sections = Message(Value([1, "two"])).to_payload()
    message = of(sections, type="amqp-1.0", message_id="m").as_message()
    assert (message.body, message.message_id) == ([1, "two"], "m")
    assert back(of(sections, type="amqp-1.0")).body == sections
    broken = of(b"nonsense", type="amqp-1.0").as_message()
    assert broken.body == b"nonsense"


# -- to 0-9-1 -------------------------------------------------------------------------------


def test_fields_of_1_0_have_their_places() -> None:
    found = from_message(
        durable=True,
        priority=6,
        ttl=50,
        message_id=UInt(7),
        correlation_id=b"\x01\x02",
        user_id=b"u",
        to="elsewhere",
        subject="left out",
        reply_to="/queues/answers",
        content_type="a/b",
        group_id="g",
        creation_time=Timestamp(1_500),
        annotations={"x-basic-type": "t", "x-mine": Byte(1), "other": 1, "x-cc": ["k"]},
        application_properties={"n": UShort(5)},
    )
    own = found.properties
    assert (own.delivery_mode, own.priority, own.expiration) == (2, 6, "50")
    assert (own.message_id, own.correlation_id) == ("7", None)
    assert found.headers == {"x-correlation-id": b"\x01\x02", "x-mine": 1, "n": 5, "CC": ["k"]}
    assert (own.user_id, own.reply_to, own.content_type, own.app_id, own.type) == (
        "u",
        "answers",
        "a/b",
        "g",
        "t",
    )
    assert own.timestamp == datetime.fromtimestamp(1, UTC)
    assert (found.exchange, found.routing_key) == ("", "q")


def test_long_identifier_of_1_0_is_a_header() -> None:
    found = from_message(message_id="m" * 256)
    assert found.properties.message_id is None
    assert found.headers == {"x-message-id": "m" * 256}


def test_values_of_1_0_without_a_place_are_left_out() -> None:
    found = from_message(
        application_properties={
            "uuid": uuid.uuid4(),
            "char": Char("x"),
            "ulong": ULong((1 << 64) - 1),
            "ubyte": UByte(1),
            "int": Int(2),
            "long": 3,
            "symbol": Symbol("s"),
            "k" * 300: 1,
        }
    )
    assert found.headers == {"ulong": str((1 << 64) - 1), "ubyte": 1, "int": 2, "long": 3, "symbol": "s"}
    assert published(found.octets).headers == found.headers


def test_text_of_1_0_is_the_body_that_every_client_can_read() -> None:
    found = from_message(Value("t\u00e9a"), annotations={"x-basic-type": "drink"})
    assert found.body == b"t\xc3\xa9a"
    assert (found.properties.content_type, found.properties.type) == ("text/plain; charset=utf-8", "drink")
    assert from_message("{}", content_type="application/json").properties.content_type == "application/json"
    binary = from_message(Value(b"\xff"))
    assert (binary.body, binary.properties.content_type, binary.properties.type) == (b"\xff", None, None)


def test_message_of_1_0_is_translated_as_by_rabbitmq_where_clients_expect_it() -> None:
    found = to_published(content_of_message(Message("text")), "q", like_rabbitmq=True)
    assert (found.properties.type, found.properties.content_type) == ("amqp-1.0", None)
    assert found.body == Message("text").to_payload()
    assert found.properties.delivery_mode == 2
    assert from_message("text").properties.delivery_mode == 1


def test_bodies_of_1_0_that_are_no_data_go_as_sections() -> None:
    for body in (Value(5), Sequence([1, 2]), Value(None), Value(Symbol("text"))):
        found = from_message(body)
        assert found.properties.type == "amqp-1.0"
        assert found.body == Message(body).to_payload()
    assert from_message(b"data").properties.type is None


def test_octets_that_are_no_message_go_as_a_body() -> None:
    broken = b"\x00\x53\x70\xff"
    found = to_published(content_of_message(Message.from_payload(broken, 7)), "q")
    assert (found.routing_key, found.exchange) == ("q", "")


# -- across ---------------------------------------------------------------------------------


async def test_message_of_0_9_1_reaches_a_receiver_of_1_0_with_all_it_has() -> None:
    container = Container()
    async with opened(container) as client, container.connect() as conn:
        await client.ask(spec.QueueDeclare(queue="q"))
        await client.publish(
            "",
            "q",
            b"tea",
            delivery_mode=2,
            priority=3,
            expiration="60000",
            message_id="m",
            correlation_id="c",
            reply_to="r",
            headers={"h": "v"},
        )
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            message = delivery.message
            assert (message.body, message.durable, message.priority) == (b"tea", True, 3)
            assert message.ttl is not None
            assert 50_000 < message.ttl <= 60_000
            assert (message.message_id, message.correlation_id, message.reply_to) == ("m", "c", "r")
            assert message.application_properties == {"h": "v"}
            assert message.first_acquirer
            delivery.release()
            again = await receiver.receive()
            assert not again.message.first_acquirer
            again.accept()


async def test_message_of_1_0_reaches_a_consumer_of_0_9_1_with_all_it_has() -> None:
    container = Container()
    container.add_queue("q")
    async with opened(container) as client, container.connect() as conn:
        message = amqp.Message(
            b"tea",
            durable=True,
            priority=3,
            ttl=60_000,
            message_id="m",
            correlation_id="c",
            reply_to="r",
            application_properties={"h": "v"},
        )
        async with conn.open_sender("q") as sender:
            await sender.send(message)
        got = await client.ask(spec.BasicGet(queue="q"))
        assert (got.body, got["routing_key"], got["redelivered"]) == (b"tea", b"q", False)
        assert (got.properties[3], got.properties[4]) == (2, 3)
        assert (got.properties[8], got.properties[5], got.properties[6]) == (b"m", b"c", b"r")
        assert 50_000 < int(got.properties[7]) <= 60_000
        assert got.properties[2] == [(b"h", ("S", b"v"))]
        await client.say(spec.BasicNack(delivery_tag=1, requeue=True))
        assert (await client.ask(spec.BasicGet(queue="q")))["redelivered"]


async def test_sender_of_1_0_publishes_to_an_exchange_that_0_9_1_has_bound() -> None:
    container = Container()
    async with opened(container) as client, container.connect() as conn:
        await client.ask(spec.QueueDeclare(queue="q"))
        await client.ask(spec.QueueBind(queue="q", exchange="amq.topic", routing_key="a.*"))
        async with conn.open_sender("/exchanges/amq.topic/a.b") as sender:
            await sender.send(b"x")
        got = await client.ask(spec.BasicGet(queue="q"))
        assert (got.body, got["exchange"], got["routing_key"]) == (b"x", b"amq.topic", b"a.b")
        await trio.lowlevel.checkpoint()
