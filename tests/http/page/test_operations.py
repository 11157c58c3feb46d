"""One queue and its messages, one connection, and what is changed by the page."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.http.served import served
from trio_amqp10.container import Container, Rules

from .asked import fault, post


def boxed(**rules: Any) -> Container:
    container = Container("box")
    container.add_queue("dead")
    container.add_queue("q", dead_letter="dead", **rules)
    return container


async def test_queue_has_rules_consumers_and_depths() -> None:
    container = boxed(max_length=7)
    async with served(container) as client, container.connect() as conn, conn.open_receiver("q", credit=5):
        await container.send("q", b"x")
        found = await post(client, "queue", address="q")
        assert found["rules"] == {"dead-letter": "dead", "max-length": 7}
        [consumer] = found["consumer_list"]
        assert (consumer["role"], consumer["address"], consumer["unsettled"]) == ("sender", "q", 1)
        assert (found["unacked"], found["dead_letters"]["rejected"], found["growth"]) == (1, 0, 0.0)
        assert await fault(client, "queue", address="nope") == (404, "no queue 'nope'")


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "x" * 10_000, "ü" * 5000, "a/b?c#d%2F", "\u202e"]
)
async def test_queue_of_any_name_is_found(name: str) -> None:
    container = Container("box")
    container.add_queue(name)
    async with served(container) as client:
        await post(client, "publish", address=name, body="tea")
        assert (await post(client, "queue", address=name))["ready"] == 1
        assert len(await post(client, "browse", address=name)) == 1
        assert await post(client, "purge", address=name) == {"purged": 1}
        assert [each["address"] for each in await client.get("amqp10/queues")] == [name]


async def test_messages_are_looked_at_and_stay() -> None:
    container = boxed()
    message = amqp.Message(
        b"tea", message_id="m", subject="s", annotations={"x-a": 1}, application_properties={"n": 2**60}
    )
    async with served(container) as client:
        await container.send("q", message)
        await container.send("q", {"a": [1, b"\x00"]})
        first, second = await post(client, "browse", address="q")
        assert (base64.b64decode(first["body"]), first["body_octets"]) == (b"tea", 3)
        assert first["properties"]["message_id"] == "m"
        assert first["annotations"] == {"x-a": 1}
        assert first["application_properties"] == {"n": str(2**60)}
        assert second["value"] == {"a": [1, "0x00"]}
        [again] = await post(client, "browse", address="q", offset=1, count=1)
        assert again["place"] == second["place"]
        assert (await container.management.queue("q")).ready == 2
        assert (await fault(client, "browse", address="q", count=101))[0] == 400
        assert (await fault(client, "browse", address="q", offset=-1))[0] == 400


async def test_long_body_is_cut() -> None:
    container = boxed()
    async with served(container) as client:
        await container.send("q", b"x" * 100_000)
        [found] = await post(client, "browse", address="q")
        assert (len(base64.b64decode(found["body"])), found["body_octets"]) == (65536, 100_000)


async def test_message_that_cannot_be_read_is_shown_as_octets(monkeypatch: pytest.MonkeyPatch) -> None:
    container = boxed()
    async with served(container) as client:
        await container.send("q", b"tea")

        def unreadable(_self: amqp.Message) -> Any:
            raise amqp.RemoteProtocolError("section 0x99 is unknown")

        monkeypatch.setattr(amqp.Message, "body", property(unreadable))
        [found] = await post(client, "browse", address="q")
        assert "section 0x99 is unknown" in found["fault"]
        assert b"tea" in base64.b64decode(found["body"])


async def test_dead_letter_has_its_history_and_is_redriven() -> None:
    container = Container("box")
    broker = container.add_broker()
    broker.declare_queue("dead")
    broker.declare_queue("work", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    model = container.management
    work, dead = model.queue_address("work"), model.queue_address("dead")
    broker.declare_queue("end")
    dead_end = model.queue_address("end")
    async with served(container) as client:
        await post(client, "publish", address=work, body="tea")
        await model.get(work, outcome="reject")
        [found] = await post(client, "browse", address=dead)
        [death] = found["deaths"]
        assert (death["queue"], death["reason"], death["count"]) == ("work", "rejected", 1)
        assert found["died_in"] == "work"
        assert await post(client, "redrive", address=dead, died_in=dead_end) == {"moved": {}, "left": 1}
        assert (await fault(client, "redrive", address=dead, died_in="nope"))[0] == 404
        assert await post(client, "redrive", address=dead, died_in="work") == {"moved": {work: 1}, "left": 0}
        assert await post(client, "redrive", address=dead, count=3) == {"moved": {}, "left": 0}


async def test_published_message_has_its_properties() -> None:
    container = boxed()
    async with served(container) as client:
        properties = {
            "message_id": "m",
            "content_type": "text/plain",
            "durable": True,
            "priority": 7,
            "ttl": 9000,
        }
        asked = {"address": "q", "body": "AAE=", "encoding": "base64", "properties": properties}
        assert await post(client, "publish", **asked, application_properties={"n": 1}) == {"routed": True}
        [found] = await container.management.browse("q")
        assert (found.message.body, found.message.message_id, found.message.priority) == (b"\x00\x01", "m", 7)
        assert found.message.application_properties == {"n": 1}
        assert (found.message.durable, found.expires is not None) == (True, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"body": 1},
        {"encoding": "hex"},
        {"encoding": "base64", "body": "?"},
        {"properties": {"nope": 1}},
        {"properties": {"priority": 256}},
        {"properties": {"ttl": "soon"}},
        {"application_properties": {"n": [1]}},
        {"application_properties": []},
    ],
)
async def test_message_that_is_not_valid_is_refused(wrong: dict[str, Any]) -> None:
    container = boxed()
    async with served(container) as client:
        if wrong == {"application_properties": []}:
            assert await post(client, "publish", address="q", body="x", **wrong)
            return
        assert (await fault(client, "publish", **{"address": "q", "body": "x", **wrong}))[0] == 400
        assert (await container.management.queue("q")).ready == 0


async def test_queue_is_moved_purged_and_deleted() -> None:
    container = boxed()
    async with served(container) as client:
        for _ in range(5):
            await container.send("q", b"x")
        assert await post(client, "move", source="q", target="dead", count=2) == {"moved": 2}
        assert await post(client, "move", source="q", target="dead") == {"moved": 3}
        assert (await fault(client, "move", source="q", target="nope"))[0] == 404
        assert await post(client, "purge", address="dead") == {"purged": 5}
        await container.send("q", b"x")
        assert (await fault(client, "delete", address="q", if_empty=True))[0] == 400
        assert await post(client, "delete", address="q") == {"deleted": 1}
        assert (await fault(client, "delete", address="q"))[0] == 404


async def test_route_is_tried_without_a_message() -> None:
    container = Container("box")
    broker = container.add_broker()
    for name in ("a", "b"):
        broker.declare_queue(name)
    model = container.management
    await model.bind("amq.topic", "a", "order.*")
    await model.bind("amq.topic", "b", "order.#")
    await model.bind("amq.headers", "a", "", {"x-match": "all", "k": 1})
    async with served(container) as client:
        both = await post(client, "route", exchange="amq.topic", key="order.paid")
        assert {each["name"] for each in both} == {"a", "b"}
        assert [each["name"] for each in await post(client, "route", exchange="", key="a")] == ["a"]
        assert await post(client, "route", exchange="amq.topic", key="nope") == []
        [found] = await post(client, "route", exchange="amq.headers", key="", headers={"k": 1})
        assert found == {"name": "a", "address": model.queue_address("a")}
        assert (await fault(client, "route", exchange="nope", key=""))[0] == 404
        assert (await model.queue(model.queue_address("a"))).arrived == 0


async def test_connection_has_channels_and_links_and_is_closed_with_a_reason() -> None:
    container = boxed()
    async with served(container) as client:
        with pytest.raises(amqp.ConnectionClosedError, match="for the night"):
            async with container.connect(container_id="till") as conn, conn.open_receiver("q") as receiver:
                found = await post(client, "connection", connection=1)
                assert (found["container_id"], len(found["channel_list"])) == ("till", 1)
                [link] = found["link_list"]
                assert (link["address"], link["credit"] > 0) == ("q", True)
                await post(client, "close-connection", connection=1, reason="for the night")
                await receiver.receive()
        assert (await fault(client, "connection", connection=1))[0] == 404
        assert (await fault(client, "close-connection", connection=1, reason="x" * 256))[0] == 400


async def test_link_ends_with_a_reason() -> None:
    container = boxed()
    async with served(container) as client, container.connect() as conn:
        with pytest.raises(amqp.LinkDetachedError, match="closed by an operator"):
            async with conn.open_receiver("q") as receiver:
                [link] = (await post(client, "connection", connection=1))["link_list"]
                await post(client, "close-link", link=link["identity"])
                await receiver.receive()


RIGHTS = Rules(("bob", "monitor", "q"))


async def test_user_who_may_only_see_a_queue_changes_nothing() -> None:
    container = Container("box", authorise=RIGHTS)
    container.add_queue("q")
    await container.send("q", b"x")
    async with served(container, users={"bob": "x"}) as client:
        assert (await post(client, "queue", address="q"))["consumer_list"] == []
        for operation, body in (
            ("purge", {"address": "q"}),
            ("delete", {"address": "q"}),
            ("browse", {"address": "q"}),
            ("redrive", {"address": "q"}),
            ("publish", {"address": "q", "body": "x"}),
            ("move", {"source": "q", "target": "q"}),
            ("route", {"exchange": "", "key": "q"}),
            ("connection", {"connection": 1}),
            ("close-connection", {"connection": 1}),
            ("close-link", {"link": "1/sender/x"}),
            ("queue", {"address": "hidden"}),
        ):
            assert (await fault(client, operation, **body))[0] == 403, operation
        assert (await container.management.queue("q")).ready == 1
    await trio.lowlevel.checkpoint()


async def test_change_needs_the_content_type_of_json() -> None:
    container = boxed()
    async with served(container) as client:
        headers = {"Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin"}
        answer = await client.http.post("/api/amqp10/purge", content=b'{"address": "q"}', headers=headers)
        assert answer.status_code == 415
