"""What the page reads: the overview, histories, lists; and that a user sees no more than the rights permit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.http.served import served
from trio_amqp10.container import Container, Rules
from trio_amqp10.http.page.history import FIGURES, History

if TYPE_CHECKING:
    import pytest


async def test_overview_has_what_the_page_shows() -> None:
    container = Container("box")
    container.add_queue("q")
    container.add_topic("t")
    async with served(container) as client, container.connect() as conn, conn.open_receiver("t"):
        await container.send("q", b"x")
        found = await client.get("amqp10/overview")
    assert found["container"]["name"] == "box"
    assert (found["queues"]["queues"], found["queues"]["ready"], found["messages"]["arrived"]) == (1, 1, 1)
    assert (found["topics"], found["subscriptions"]) == (1, 1)
    assert found["protocols"]["AMQP 1.0"]["connections"] == 1
    assert found["sampled"] == {"step": 1.0, "queues": 1, "most_queues": 10_000}
    assert (found["growing"], found["full"], found["container"]["store"]) == ([], [], None)


async def test_history_has_one_of_the_spans() -> None:
    async with served() as client:
        for span in (60, 600, 3600):
            found = await client.get(f"amqp10/history?span={span}")
            assert set(found) == {"span", "age", *FIGURES}
            assert len(found["age"]) == len(found["depth"]) >= 1
        assert (await client.fault("GET", "amqp10/history?span=7"))[0] == 400


async def test_queues_come_in_pages_with_their_depths() -> None:
    container = Container("box")
    for number in range(30):
        container.add_queue(f"q{number:02}")
    async with served(container) as client:
        await container.send("q07", b"x")
        page = await client.get("amqp10/queues?page=1&page_size=10&sort=ready&sort_reverse=true")
        assert (page["total_count"], page["page_count"], len(page["items"])) == (30, 3, 10)
        assert (page["items"][0]["name"], page["items"][0]["ready"]) == ("q07", 1)
        assert page["items"][0]["depths"] == [0]
        found = await client.get("amqp10/queues?page=1&name=q1")
        assert found["filtered_count"] == 10
        assert (await client.fault("GET", "amqp10/queues?page=0"))[0] == 400


async def test_connections_are_found_by_the_name_of_their_peer() -> None:
    container = Container("box")
    async with served(container) as client, container.connect(container_id="till-7"), container.connect():
        found = await client.get("amqp10/connections?page=1&name=TILL")
        assert [each["container_id"] for each in found["items"]] == ["till-7"]
        assert found["items"][0]["protocol"] == "AMQP 1.0"


async def test_topology_is_whole_or_says_that_there_is_more() -> None:
    container = Container("box")
    container.add_topic("t")
    broker = container.add_broker()
    broker.declare_queue("q")
    model = container.management
    await model.bind("amq.topic", "q", "a.#")
    async with served(container) as client, container.connect() as conn, conn.open_receiver("t"):
        found = await client.get("amqp10/topology")
        assert (found["bindings"][0]["key"], found["more"], found["most_nodes"]) == ("a.#", False, 200)
        assert [each["topic"] for each in found["subscriptions"]] == ["t"]
        page = await client.get("amqp10/bindings?page=1&name=a.%23")
        assert page["items"][0]["destination"] == "q"
        for number in range(200):
            container.add_topic(f"more{number}")
        found = await client.get("amqp10/topology")
        assert (found["more"], len(found["topics"])) == (True, 200)


RIGHTS = Rules(("ada", "manage", "* $management/*"), ("bob", "monitor", "seen $management/container"))


async def test_user_sees_what_the_rights_permit_and_a_refusal_is_403() -> None:
    container = Container("box", authorise=RIGHTS)
    for name in ("seen", "hidden"):
        container.add_queue(name, max_length=1)
        await container.send(name, b"x")
    users = {"ada": "x", "bob": "x", "eve": "x"}
    async with served(container, users=users, login=("bob", "x")) as client:
        assert [each["name"] for each in await client.get("amqp10/queues")] == ["seen"]
        found = await client.get("amqp10/overview")
        assert found["full"] == ["seen"]
        assert (await client.ask("GET", "amqp10/connections")).status_code == 403
        client.http.auth = ("eve", "x")
        assert await client.get("amqp10/queues") == []
        for path in ("overview", "history", "connections"):
            assert (await client.fault("GET", f"amqp10/{path}"))[:2] == (403, "forbidden"), path
        client.http.auth = ("ada", "x")
        assert (await client.get("amqp10/overview"))["full"] == ["seen", "hidden"]


async def test_growing_queue_is_shown_and_a_deleted_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(History, "growing", lambda _self, most: ["gone", "q"][:most])
    monkeypatch.setattr(History, "growth", lambda _self, _address: 0.1)
    container = Container("box")
    container.add_queue("q")
    async with served(container) as client:
        [found] = (await client.get("amqp10/overview"))["growing"]
        assert (found["name"], found["growth"], found["depths"]) == ("q", 0.1, [0])
