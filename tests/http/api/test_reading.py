"""Lists and single things, read while clients of both protocols are connected."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.http.served import Client, quoted, served
from trio_amqp10 import amqp091
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.container import Container, Rules
from trio_amqp10.container.management import status_builders
from trio_amqp10.http.api.shapes import FIELDS_OF_QUEUES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.net.listener import Listener


@asynccontextmanager
async def busy() -> AsyncGenerator[Client]:
    """A container with a consumer of 0-9-1 and one of 1.0, each with a message unacknowledged."""
    container = Container("box", strict=True)
    broker = container.add_broker()
    for name in ("one", "ten"):
        broker.declare_queue(name, {"x-max-length": 10})
    broker.declare_exchange("e", "topic")
    broker.bind("e", "queue", "one", "a.#", {"n": 1})
    broker.declare_exchange("f", "fanout")
    broker.bind("e", "exchange", "f", "k")
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=("0-9-1",))
        listeners: list[Listener] = await nursery.start(serve)
        url = listeners[0].url
        async with (
            served(container) as client,
            amqp091.open_connection(url.replace("amqp:", "amqp091:")) as old,
            old.open_channel() as channel,
            amqp.open_connection(url) as new,
            new.open_receiver("ten", credit=5) as receiver,
        ):
            await container.send("one", "x")
            await container.send("ten", "y")
            async with channel.queue("one").consume(prefetch=7) as consumer:
                await consumer.receive()
                await receiver.receive()
                yield client
        nursery.cancel_scope.cancel()


async def test_queues_have_their_messages_and_consumers() -> None:
    async with busy() as client:
        for name in ("one", "ten"):
            found = await client.get(f"queues/%2F/{name}")
            assert (found["messages"], found["messages_unacknowledged"], found["consumers"]) == (1, 1, 1)
            assert found["arguments"] == {"x-max-length": 10}
            assert len(found["consumer_details"]) == 1
            assert found["consumer_details"][0]["queue"] == {"name": name, "vhost": "/"}
        assert {each["name"] for each in await client.get("queues/detailed")} == {"one", "ten"}
        assert (await client.fault("GET", "queues/%2F/none"))[:2] == (404, "Object Not Found")


async def test_connections_channels_and_consumers_belong_together() -> None:
    async with busy() as client:
        connections = {each["protocol"]: each for each in await client.get("connections")}
        assert set(connections) == {"AMQP 0-9-1", "AMQP 1.0"}
        assert await client.get("vhosts/%2F/connections") == await client.get("connections")
        for each in connections.values():
            name = quoted(each["name"])
            assert (await client.get(f"connections/{name}"))["name"] == each["name"]
            channels = await client.get(f"connections/{name}/channels")
            assert channels
            assert {one["connection_details"]["name"] for one in channels} == {each["name"]}
            for one in channels:
                assert (await client.get(f"channels/{quoted(one['name'])}"))["number"] == one["number"]
        names = {each["name"] for each in await client.get("channels")}
        consumers = await client.get("consumers")
        assert {each["queue"]["name"] for each in consumers} == {"one", "ten"}
        old = next(each for each in consumers if each["queue"]["name"] == "one")
        assert old["channel_details"]["name"] in names
        assert await client.get("consumers/%2F") == consumers
        assert len(await client.get("connections/username/none")) == 2
        assert await client.get("connections/username/ada") == []
        for path in ("connections/nope", "connections/x%20%2399", "channels/nope"):
            assert (await client.fault("GET", path))[0] == 404


async def test_bindings_are_found_by_each_end() -> None:
    async with busy() as client:
        bound = next(
            each
            for each in await client.get("bindings")
            if each["source"] == "e" and each["destination"] == "one"
        )
        assert (bound["routing_key"], bound["arguments"]) == ("a.#", {"n": 1})
        key = bound["properties_key"]
        assert await client.get(f"bindings/%2F/e/e/q/one/{key}") == bound
        assert await client.get("bindings/%2F/e/e/q/one") == [bound]
        assert bound in await client.get("exchanges/%2F/e/bindings/source")
        assert bound in await client.get("queues/%2F/one/bindings")
        to_exchange = await client.get("exchanges/%2F/f/bindings/destination")
        assert [(each["source"], each["destination_type"]) for each in to_exchange] == [("e", "exchange")]
        assert await client.get("bindings/%2F/e/e/e/f") == to_exchange
        usual = [each for each in await client.get("bindings/%2F") if each["source"] == ""]
        assert {each["routing_key"] for each in usual} == {"one", "ten"}
        assert await client.get("exchanges/%2F/amq.default/bindings/source") == usual
        (one,) = (each for each in usual if each["routing_key"] == "one")
        assert one in await client.get("queues/%2F/one/bindings")
        assert await client.get("bindings/%2F/e/amq.default/q/one") == [one]
        assert await client.get("bindings/%2F/e/amq.default/q/one/one") == one
        assert await client.get("bindings/%2F/e/amq.default/e/f") == []
        assert await client.get("exchanges/%2F/amq.default/bindings/destination") == []
        for path in ("e/e/q/none", "e/none/q/one", "e/e/x/one", "e/e/q/one/zzz"):
            assert (await client.fault("GET", f"bindings/%2F/{path}"))[0] == 404


async def test_exchanges_count_what_they_forward() -> None:
    async with busy() as client:
        body = {"properties": {}, "routing_key": "nobody", "payload": "", "payload_encoding": "string"}
        assert await client.post("exchanges/%2F/f/publish", body) == {"routed": False}
        assert (await client.get("exchanges/%2F/f"))["message_stats"] == {"publish_in": 1, "publish_out": 0}
        names = {each["name"] for each in await client.get("exchanges")}
        assert {"", "amq.direct", "e", "f"} <= names
        assert (await client.get("exchanges/%2F/amq.default"))["name"] == ""


async def test_users_and_permissions() -> None:
    async with served(users={"ada": "x", "bob": "y"}) as client:
        users = await client.get("users")
        assert [(each["name"], each["password_hash"]) for each in users] == [("ada", ""), ("bob", "")]
        assert await client.get("users/ada") == users[0]
        assert (await client.fault("GET", "users/eve"))[0] == 404
        all_of_them = await client.get("permissions")
        assert [each["user"] for each in all_of_them] == ["ada", "bob"]
        assert await client.get("vhosts/%2F/permissions") == all_of_them
        assert await client.get("users/ada/permissions") == [all_of_them[0]]
        assert await client.get("permissions/%2F/ada") == all_of_them[0]


async def test_rules_of_a_program_are_not_shown_as_patterns() -> None:
    rules = Rules(("ada", "monitor", "*"), ("ada", "monitor", "$management/*"))
    async with served(Container("box", authorise=rules), users={"ada": "x"}) as client:
        assert await client.get("permissions") == []
        assert (await client.fault("GET", "permissions/%2F/ada"))[0] == 404
        assert (await client.get("users/ada"))["tags"] == ["management"]


async def test_lists_of_what_is_not_here_are_empty() -> None:
    async with served() as client:
        for path in (
            "policies",
            "policies/%2F",
            "operator-policies",
            "parameters",
            "vhost-limits",
            "topic-permissions",
        ):
            assert await client.get(path) == []


@given(
    depths=st.lists(st.integers(0, 3), max_size=12),
    column=st.sampled_from([*FIELDS_OF_QUEUES, "type", "message_stats.publish", "no_column", ""]),
    reverse=st.booleans(),
    name=st.sampled_from([None, "1", "Q0"]),
    path=st.sampled_from(["queues", "queues/detailed", "amqp10/queues"]),
)
@settings(max_examples=30)
def test_page_of_queues_in_an_order_is_that_of_the_whole_list(
    depths: list[int], column: str, reverse: bool, name: str | None, path: str
) -> None:
    async def run() -> None:
        container = Container("box", strict=True, wall_clock=lambda: 1000.0)
        for number, depth in enumerate(depths):
            container.add_queue(f"q{number:02}")
            for _ in range(depth):
                await container.send(f"q{number:02}", "x")
        async with served(container) as client:
            order = f"sort={column}&sort_reverse={str(reverse).lower()}"
            whole = await client.get(f"{path}?{order}")
            if name is not None:
                whole = [each for each in whole if name.lower() in each["name"]]
            wanted = "" if name is None else f"&name={name}"
            found = await client.get(f"{path}?page=1&page_size=5&{order}{wanted}")
            for each in whole + found["items"]:
                each.pop("depths", None)  # A sample may be taken between the two answers.
            assert found["items"] == whole[:5]
            assert (found["filtered_count"], found["total_count"]) == (len(whole), len(depths))

    trio.run(run)


@pytest.mark.parametrize(
    ("path", "wish"),
    [
        ("queues", "sort=messages"),
        ("queues", "name=q1"),
        ("queues/detailed", "sort=name&sort_reverse=true"),
        ("amqp10/queues", "sort=oldest"),
        ("amqp10/queues", "sort=depth&name=q"),
    ],
)
async def test_only_the_queues_of_a_page_are_described(
    path: str, wish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[str] = []
    plain = Queue.statistics

    def counted(queue: Queue) -> dict[str, int]:
        described.append(queue.address)
        return plain(queue)

    container = Container("box", strict=True)
    for number in range(1000):
        container.add_queue(f"q{number}")
    monkeypatch.setattr(Queue, "statistics", counted)
    async with served(container) as client:
        found = await client.get(f"{path}?page=2&page_size=10&{wish}")
    assert len(described) == len(found["items"]) == 10


@pytest.mark.parametrize(
    "path", ["bindings", "exchanges/%2F/amq.default/bindings/source", "consumers", "channels"]
)
async def test_no_queue_and_no_connection_is_described_for_its_name(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe(*_: object) -> NoReturn:
        raise AssertionError("one field is enough")

    async with busy() as client:
        before = await client.get(path)
        for name in ("_of_queue", "connection_status"):
            monkeypatch.setattr(status_builders, name, describe)
        assert await client.get(path) == before
        assert len(before) >= 2
