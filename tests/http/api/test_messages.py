"""Publish and get."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.http.served import served
from trio_amqp10 import Message
from trio_amqp10.container import Container

GET = {"count": 10, "ackmode": "ack_requeue_false", "encoding": "auto"}
DIRECT = "exchanges/%2F/amq.default/publish"


def message(
    payload: str = "x", key: str = "q", encoding: str = "string", **properties: Any
) -> dict[str, Any]:
    return {"properties": properties, "routing_key": key, "payload": payload, "payload_encoding": encoding}


def queued() -> Container:
    container = Container("box", strict=True)
    container.add_broker().declare_queue("q")
    return container


ALL = {
    "content_type": "text/plain",
    "content_encoding": "x",
    "headers": {"a": 1, "b": {"c": [True, None, "ü"]}},
    "delivery_mode": 2,
    "priority": 3,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "60000",
    "message_id": "m",
    "timestamp": 5,
    "type": "t",
    "app_id": "a",
}


async def test_message_comes_back_as_it_was_published() -> None:
    async with served(queued()) as client:
        assert await client.post(DIRECT, message("hällo", **ALL)) == {"routed": True}
        assert await client.post("queues/%2F/q/get", GET) == [
            {
                "exchange": "",
                "message_count": 0,
                "payload": "hällo",
                "payload_bytes": 6,
                "payload_encoding": "string",
                "properties": ALL,
                "redelivered": False,
                "routing_key": "q",
            }
        ]
        assert await client.post("queues/%2F/q/get", GET) == []


async def test_octets_travel_in_base64() -> None:
    async with served(queued()) as client:
        for octets in (b"\xff\x00", b"text", b""):
            encoded = base64.b64encode(octets).decode()
            await client.post(DIRECT, message(encoded, encoding="base64"))
            [found] = await client.post("queues/%2F/q/get", {**GET, "encoding": "base64"})
            assert (found["payload"], found["payload_encoding"]) == (encoded, "base64")
            assert found["properties"] == []


async def test_message_of_1_0_is_shown_as_one_of_0_9_1() -> None:
    async with served(queued()) as client:
        await client.container.send("q", Message(b"x", message_id="m", application_properties={"a": 1}))
        [found] = await client.post("queues/%2F/q/get", GET)
        assert found["payload"] == "x"
        assert found["properties"]["message_id"] == "m"
        assert found["properties"]["headers"] == {"a": 1}


@pytest.mark.parametrize(
    ("ackmode", "left", "dead"),
    [
        ("ack_requeue_true", 2, 0),
        ("reject_requeue_true", 2, 0),
        ("ack_requeue_false", 0, 0),
        ("reject_requeue_false", 0, 2),
    ],
)
async def test_end_of_the_messages(ackmode: str, left: int, dead: int) -> None:
    container = queued()
    assert container.broker is not None
    container.broker.declare_queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    container.broker.declare_queue("z", arguments)
    async with served(container) as client:
        for text in ("1", "2"):
            await client.post(DIRECT, message(text, key="z"))
        found = await client.post("queues/%2F/z/get", {**GET, "ackmode": ackmode})
        assert [(each["payload"], each["message_count"]) for each in found] == [("1", 1), ("2", 0)]
        assert (await client.get("queues/%2F/z"))["messages"] == left
        assert (await client.get("queues/%2F/dead"))["messages"] == dead
        if left:
            again = await client.post("queues/%2F/z/get", GET)
            assert [each["redelivered"] for each in again] == [True, True]


async def test_payload_is_cut_and_its_size_is_not() -> None:
    async with served(queued()) as client:
        await client.post(DIRECT, message("0123456789"))
        [found] = await client.post("queues/%2F/q/get", {**GET, "truncate": 3})
        assert (found["payload"], found["payload_bytes"]) == ("012", 10)


async def test_answer_has_no_more_octets_than_is_reasonable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.http.api.messages._MOST_OCTETS", 1000)
    async with served(queued()) as client:
        for _ in range(5):
            await client.post(DIRECT, message("x" * 400))
        assert len(await client.post("queues/%2F/q/get", GET)) == 2
        assert (await client.get("queues/%2F/q"))["messages"] == 3


async def test_message_goes_through_an_exchange() -> None:
    container = queued()
    assert container.broker is not None
    container.broker.bind("amq.topic", "queue", "q", "a.*")
    async with served(container) as client:
        assert await client.post("exchanges/%2F/amq.topic/publish", message(key="a.b")) == {"routed": True}
        assert await client.post("exchanges/%2F/amq.topic/publish", message(key="b")) == {"routed": False}
        assert await client.post(DIRECT, message(key="none")) == {"routed": False}
        [found] = await client.post("queues/%2F/q/get", GET)
        assert (found["exchange"], found["routing_key"]) == ("amq.topic", "a.b")
        assert (await client.fault("POST", "exchanges/%2F/none/publish", message()))[0] == 404


async def test_no_client_publishes_to_an_internal_exchange() -> None:
    container = queued()
    assert container.broker is not None
    container.broker.declare_exchange("inner", "fanout", internal=True)
    async with served(container) as client:
        assert (await client.fault("POST", "exchanges/%2F/inner/publish", message()))[0] == 422


async def test_full_queue_refuses() -> None:
    container = queued()
    assert container.broker is not None
    container.broker.declare_queue("full", {"x-max-length": 1, "x-overflow": "reject-publish"})
    async with served(container) as client:
        assert await client.post(DIRECT, message(key="full")) == {"routed": True}
        assert (await client.fault("POST", DIRECT, message(key="full")))[:2] == (422, "refused")


@pytest.mark.parametrize(
    "body",
    [
        {},
        message() | {"properties": "x"},
        message() | {"payload": 1},
        message("///", encoding="base64"),
        message("é", encoding="base64"),
        message(encoding="rot13"),
        message(key="k" * 256),
        message(key="a\0b"),
        message(priority=256),
        message(priority="x"),
        message(delivery_mode=-1),
        message(timestamp=2**62),
        message(expiration="soon"),
        message(expiration="9" * 20),
        message(message_id="m" * 256),
        message(headers=[1]),
        message(headers={"h" * 256: 1}),
        message(headers={"CC": ["other"]}),
        message(headers={"BCC": ["other"]}),
        message(user_id="somebody else"),
    ],
)
async def test_message_that_cannot_be_is_refused(body: dict[str, Any]) -> None:
    async with served(queued()) as client:
        assert (await client.fault("POST", DIRECT, body))[:2] == (400, "bad_request")
        assert (await client.get("queues/%2F/q"))["messages"] == 0


async def test_own_name_is_taken_as_user_id() -> None:
    async with served(queued(), users={"ada": "x"}) as client:
        assert await client.post(DIRECT, message(user_id="ada")) == {"routed": True}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {**GET, "ackmode": "weird"},
        {**GET, "encoding": "weird"},
        {**GET, "count": -1},
        {**GET, "count": 10_001},
        {**GET, "count": 1.5},
        {**GET, "truncate": -1},
        {**GET, "truncate": "x"},
    ],
)
async def test_get_that_cannot_be_takes_nothing(body: dict[str, Any]) -> None:
    async with served(queued()) as client:
        await client.post(DIRECT, message())
        assert (await client.fault("POST", "queues/%2F/q/get", body))[:2] == (400, "bad_request")
        assert (await client.get("queues/%2F/q"))["messages_ready"] == 1
        assert (await client.fault("POST", "queues/%2F/none/get", GET))[:2] == (404, "not_found")


HEADERS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=10).filter(lambda name: name not in ("CC", "BCC")),
    st.recursive(
        st.booleans()
        | st.none()
        | st.integers(-(2**63), 2**63 - 1)
        | st.text(st.characters(codec="utf-8"), max_size=10),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(headers=HEADERS, text=st.text(st.characters(codec="utf-8"), max_size=50))
async def test_any_headers_and_text_come_back(headers: dict[str, Any], text: str) -> None:
    async with served(queued()) as client:
        await client.post(DIRECT, message(text, headers=headers, message_id="m"))
        [found] = await client.post("queues/%2F/q/get", GET)
        assert found["payload"] == text
        assert found["properties"].get("headers", {}) == headers
