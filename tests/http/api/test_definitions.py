"""Definitions go out and come in again."""

from __future__ import annotations

from tests.http.served import served

GIVEN = {
    "queues": [
        {"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {"x-max-length": 3}}
    ],
    "exchanges": [
        {
            "name": "e",
            "vhost": "/",
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "arguments": {},
        }
    ],
    "bindings": [
        {
            "source": "e",
            "vhost": "/",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "a.#",
            "arguments": {},
        }
    ],
}


async def test_what_is_exported_can_be_imported_elsewhere() -> None:
    async with served() as client:
        assert (await client.ask("POST", "definitions", GIVEN)).status_code == 204
        out = await client.get("definitions")
        assert {name: out[name] for name in GIVEN} == GIVEN
        async with served() as other:
            assert (await other.ask("POST", "definitions", out)).status_code == 204
            assert {name: (await other.get("definitions"))[name] for name in GIVEN} == GIVEN


async def test_definitions_of_a_virtual_host_do_not_name_it() -> None:
    async with served() as client:
        out = await client.get("definitions/%2F")
        assert out["rabbitmq_definition_format"] == "single_virtual_host"
        bare = {"queues": [{"name": "q", "durable": True, "auto_delete": False, "arguments": {}}]}
        assert (await client.ask("POST", "definitions/%2F", bare)).status_code == 204
        assert [each["name"] for each in (await client.get("definitions/%2F"))["queues"]] == ["q"]
        assert (await client.fault("POST", "definitions/none", bare))[0] == 404


async def test_what_cannot_be_made_is_named() -> None:
    async with served() as client:
        bad = {"name": "bad", "vhost": "/", "arguments": {"x-max-length": "much"}}
        found = await client.post("definitions", {**GIVEN, "queues": [*GIVEN["queues"], bad]})
        assert [(each["kind"], each["name"]) for each in found["left_out"]] == [("declared-queues", "bad")]
        assert [each["name"] for each in await client.get("queues")] == ["q"]


async def test_lists_that_are_none_are_refused() -> None:
    async with served() as client:
        assert (await client.fault("POST", "definitions", {"queues": 5}))[0] == 400
        assert (await client.ask("POST", "definitions", {})).status_code == 204
        assert await client.get("queues") == []
