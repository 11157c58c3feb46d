"""What a PUT, a POST and a DELETE change; and that a refused one changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

import trio_amqp10 as amqp
from tests.http.served import quoted, served
from trio_amqp10.container import Container


async def test_queue_is_declared_once_and_deleted() -> None:
    async with served() as client:
        body = {"durable": True, "arguments": {"x-max-length": 3}}
        assert await client.put("queues/%2F/q", body) == 201
        assert await client.put("queues/%2F/q", body) == 204
        assert (await client.fault("PUT", "queues/%2F/q", {"durable": True}))[:2] == (400, "bad_request")
        assert await client.delete("queues/%2F/q") == 204
        assert (await client.fault("DELETE", "queues/%2F/q"))[0] == 404


async def test_queue_is_transient_unless_it_is_asked_for_as_at_rabbitmq() -> None:
    async with served() as client:
        await client.put("queues/%2F/q")
        assert (await client.get("queues/%2F/q"))["durable"] is False


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("queues/%2F/n", {"durable": "maybe"}),
        ("queues/%2F/n", {"arguments": "x"}),
        ("queues/%2F/n", {"arguments": {"x-max-length": -1}}),
        ("queues/%2F/n", {"arguments": {"x-max-length": "9"}}),
        ("queues/%2F/n", {"arguments": {"x" * 300: 1}}),
        ("queues/%2F/n", {"arguments": {"x-queue-type": "stream"}}),
        ("queues/%2F/" + "n" * 256, {}),
        ("queues/%2F/amq.n", {}),
        ("queues/%2F/%24management", {}),
        ("exchanges/%2F/n", {"type": "weird"}),
        ("exchanges/%2F/n", {"internal": 1}),
        ("exchanges/%2F/amq.n", {}),
        ("exchanges/%2F/amq.default", {}),
    ],
)
async def test_refused_declaration_makes_nothing(path: str, body: dict[str, Any]) -> None:
    async with served() as client:
        before = await client.get("queues"), await client.get("exchanges")
        assert (await client.fault("PUT", path, body))[0] in (400, 401)
        assert (await client.get("queues"), await client.get("exchanges")) == before


async def test_queue_in_use_or_with_messages_stays_if_that_is_asked_for() -> None:
    container = Container("box", strict=True)
    container.add_queue("q")
    async with served(container) as client, container.connect() as conn:
        await container.send("q", "x")
        assert (await client.fault("DELETE", "queues/%2F/q?if-empty=true"))[0] == 400
        async with conn.open_receiver("q", credit=0):
            assert (await client.fault("DELETE", "queues/%2F/q?if-unused=true"))[0] == 400
        assert await client.delete("queues/%2F/q/contents") == 204
        assert await client.delete("queues/%2F/q?if-empty=true&if-unused=true") == 204


async def test_exchange_is_declared_and_deleted() -> None:
    async with served() as client:
        assert await client.put("exchanges/%2F/e", {"type": "topic"}) == 201
        assert await client.put("exchanges/%2F/e", {"type": "topic"}) == 204
        assert (await client.fault("PUT", "exchanges/%2F/e", {"type": "fanout"}))[0] == 400
        await client.put("queues/%2F/q")
        await client.ask("POST", "bindings/%2F/e/e/q/q", {})
        assert (await client.fault("DELETE", "exchanges/%2F/e?if-unused=true"))[0] == 400
        assert await client.delete("exchanges/%2F/e") == 204
        assert (await client.fault("DELETE", "exchanges/%2F/e"))[0] == 404
        for name in ("amq.direct", "amq.default"):
            assert (await client.fault("DELETE", f"exchanges/%2F/{name}"))[0] == 401


@pytest.mark.parametrize("kind", ["q", "e"])
@pytest.mark.parametrize(
    "body", [{}, {"routing_key": "k"}, {"routing_key": "a/b %~", "arguments": {"x": [1, {"y": "z"}]}}]
)
async def test_binding_is_made_found_at_its_location_and_removed(kind: str, body: dict[str, Any]) -> None:
    async with served() as client:
        await client.put("queues/%2F/a%2Fb")
        await client.put("exchanges/%2F/a%2Fb")
        await client.put("exchanges/%2F/s")
        path = f"bindings/%2F/e/s/{kind}/a%2Fb"
        answer = await client.ask("POST", path, body)
        assert answer.status_code == 201
        assert answer.headers["location"].startswith("a%2Fb/")
        place = f"{path.rpartition('/')[0]}/{answer.headers['location']}"
        found = await client.get(place)
        assert found["routing_key"] == body.get("routing_key", "")
        assert found["arguments"] == body.get("arguments", {})
        assert await client.delete(place) == 204
        assert (await client.fault("DELETE", place))[0] == 404
        assert await client.get(path) == []


async def test_binding_needs_both_ends() -> None:
    async with served() as client:
        await client.put("queues/%2F/q")
        for path in ("none/q/q", "amq.direct/q/none", "amq.direct/e/none"):
            assert (await client.fault("POST", f"bindings/%2F/e/{path}", {}))[0] == 404
        assert (await client.fault("POST", "bindings/%2F/e/amq.direct/q/q", {"routing_key": "k" * 256}))[
            0
        ] == 400
        assert (await client.fault("DELETE", "bindings/%2F/e/amq.default/q/q/q"))[0] == 401


async def test_connection_is_closed_with_the_reason() -> None:
    container = Container("box", strict=True)
    async with served(container) as client:
        conn = container.connect()
        with pytest.raises(amqp.ConnectionClosedError, match="get out") as caught:
            async with conn as connection:
                name = quoted((await client.get("connections"))[0]["name"])
                headers = {"X-Reason": "get out"}
                answer = await client.ask("DELETE", f"connections/{name}", headers=headers)
                assert answer.status_code == 204
                await connection.wait_closed()
                assert await client.get("connections") == []
        assert caught.value.error is not None
