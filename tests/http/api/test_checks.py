"""Overview, node, health, aliveness, and who the client is."""

from __future__ import annotations

import pytest

from tests.http.served import served
from trio_amqp10.container import Container
from trio_amqp10.http.api.shapes import VERSION


async def test_overview_counts_what_is_there() -> None:
    container = Container("box", strict=True)
    container.add_broker().declare_queue("q")
    async with served(container) as client, container.connect() as conn, conn.open_receiver("q", credit=1):
        await container.send("q", "x")
        await container.send("q", "y")
        found = await client.get("overview")
        totals = found["object_totals"]
        assert (totals["queues"], totals["connections"], totals["consumers"]) == (1, 1, 1)
        assert found["queue_totals"]["messages"] == 2
        assert found["message_stats"]["publish"] == 2
        assert await client.get("overview?columns=node") == {"node": "box"}


async def test_node_is_the_container() -> None:
    async with served() as client:
        [node] = await client.get("nodes")
        assert (node["name"], node["running"]) == ("box", True)
        assert await client.get("nodes/box") == node
        assert await client.get("nodes/box/memory") == {"memory": "not_available"}
        assert (await client.fault("GET", "nodes/other"))[0] == 404
        assert await client.get("cluster-name") == {"name": "box"}
        assert await client.get("version") == VERSION
        assert await client.get("auth") == {"oauth_enabled": False}
        assert (await client.get("global-parameters"))[0]["value"] == "box"


@pytest.mark.parametrize("check", ["alarms", "local-alarms", "virtual-hosts", "node-is-quorum-critical"])
async def test_healthy_container_passes(check: str) -> None:
    async with served() as client:
        assert (await client.get(f"health/checks/{check}"))["status"] == "ok"


async def test_full_memory_is_an_alarm() -> None:
    container = Container("box", strict=True, memory_limit=1)
    container.add_queue("q")
    async with served(container) as client:
        await container.send("q", "x")
        answer = await client.ask("GET", "health/checks/alarms")
        assert (answer.status_code, answer.json()["status"]) == (503, "failed")


async def test_listeners_are_checked_by_port_and_protocol() -> None:
    async with served() as client:
        assert (await client.get(f"health/checks/port-listener/{client.port}"))["status"] == "ok"
        assert (await client.get("health/checks/protocol-listener/http"))["status"] == "ok"
        for path in ("port-listener/1", "protocol-listener/amqp091"):
            answer = await client.ask("GET", f"health/checks/{path}")
            assert (answer.status_code, answer.json()["status"]) == (503, "failed")
        assert (await client.fault("GET", "health/checks/port-listener/x"))[0] == 400


async def test_message_comes_back_in_the_test_of_aliveness() -> None:
    async with served() as client:
        for _ in range(2):
            assert await client.get("aliveness-test/%2F") == {"status": "ok"}
        assert (await client.get("queues/%2F/aliveness-test"))["messages"] == 0


async def test_client_without_a_name_is_none() -> None:
    async with served() as client:
        assert await client.get("whoami") == {
            "is_internal_user": True,
            "name": "none",
            "tags": ["administrator"],
        }
