"""Definitions that are exported and imported, and those of RabbitMQ."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.scaled import scaled
from trio_amqp10.container import Container
from trio_amqp10.container.management import ManagementError
from trio_amqp10.sasl import Identity

names = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=8).filter(
    lambda name: not name.startswith(("$", "amq.", "temporary/", "/exchanges/"))
)
rules = st.fixed_dictionaries(
    {},
    optional={
        "max_length": st.integers(1, 9),
        "overflow": st.sampled_from(["wait", "reject", "drop-oldest"]),
        "ttl": st.integers(0, 9),
        "dead_letter": st.just("dead"),
        "single_active": st.booleans(),
        "redelivery_delay": st.floats(0.1, 9),
    },
)
arguments = st.fixed_dictionaries(
    {}, optional={"x-message-ttl": st.integers(0, 9), "x-expires": st.integers(1000, 9000)}
)
kinds = st.sampled_from(["direct", "fanout", "topic", "headers"])


@settings(max_examples=scaled(60), deadline=None)
@given(
    queues=st.dictionaries(names, rules, max_size=4),
    declared=st.dictionaries(names, arguments, max_size=3),
    exchanges=st.dictionaries(names, kinds, max_size=3),
    keys=st.lists(st.text(st.characters(codec="ascii"), max_size=5), max_size=3),
)
def test_export_of_an_import_is_the_same(
    queues: dict[str, Any], declared: dict[str, Any], exchanges: dict[str, str], keys: list[str]
) -> None:
    async def main() -> None:
        one, other = Container().management, Container().management
        for name, chosen in queues.items():
            await one.create_queue(name, **chosen)
        for name in set(declared) - set(queues):
            await one.declare_queue(name, declared[name])
        for name, kind in exchanges.items():
            await one.declare_exchange(name, kind)
            for key in keys:
                for queue in {*declared, *queues}:
                    await one.bind(name, queue, key)
        await one.create_topic("the topic", max_backlog=5) if "the topic" not in {
            *queues,
            *declared,
        } else None
        exported = json.loads(json.dumps(await one.export_definitions()))
        for _ in range(2):  # the second time, everything is there
            imported = await other.import_definitions(exported)
            assert imported.left_out == ()
            lists: list[Any] = [each for name, each in exported.items() if name != "trio-amqp10"]
            assert sum(imported.made.values()) == sum(map(len, lists))
            assert await other.export_definitions() == exported

    trio.run(main)


RABBITMQ: dict[str, Any] = {
    "rabbit_version": "4.0.5",
    "users": [{"name": "guest", "password_hash": "x", "tags": ["administrator"]}],
    "vhosts": [{"name": "/"}, {"name": "other"}],
    "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
    "parameters": [],
    "policies": [{"vhost": "/", "name": "ttl", "pattern": "^t", "apply-to": "queues", "definition": {}}],
    "queues": [
        {"name": "tasks", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {"x-max-length": 5}},
        {"name": "log", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {"x-queue-type": "stream"}},
        {"name": "theirs", "vhost": "other", "durable": True, "auto_delete": False, "arguments": {}},
    ],
    "exchanges": [
        {"name": "events", "vhost": "/", "type": "topic", "durable": True, "auto_delete": False, "internal": False, "arguments": {}},
        {"name": "late", "vhost": "/", "type": "x-delayed-message", "durable": True, "auto_delete": False, "internal": False, "arguments": {}},
    ],
    "bindings": [
        {"source": "events", "vhost": "/", "destination": "tasks", "destination_type": "queue", "routing_key": "a.#", "arguments": {}},
        {"source": "events", "vhost": "/", "destination": "log", "destination_type": "queue", "routing_key": "#", "arguments": {}},
    ],
}  # fmt: skip


async def test_definitions_of_rabbitmq_are_read_and_what_is_left_out_is_told() -> None:
    management = Container().management
    imported = await management.import_definitions(RABBITMQ)
    assert dict(imported.made) == {"declared-queues": 1, "exchanges": 1, "bindings": 1}
    assert [(each.kind, each.name) for each in imported.left_out] == [
        ("vhosts", "other"),
        ("users", "guest"),
        ("permissions", "guest"),
        ("policies", "ttl"),
        ("declared-queues", "log"),
        ("exchanges", "late"),
        ("bindings", "events to log"),
    ]
    assert "streams" in imported.left_out[4].reason
    assert (await management.queue("tasks")).rules.max_length == 5
    other = Container().management
    await other.import_definitions(RABBITMQ, virtual_host="other")
    assert [each.name async for each in other.queues()] == ["theirs"]


@pytest.mark.parametrize(
    "wrong",
    [{}, {"trio-amqp10": 2}, {"trio-amqp10": 1, "queues": {}}, {"rabbit_version": "4", "queues": [1]}],
)
async def test_other_json_is_no_definitions(wrong: dict[str, Any]) -> None:
    management = Container().management
    with pytest.raises(ManagementError) as refused:
        await management.import_definitions(wrong)
    assert refused.value.reason == "invalid"
    assert await management.nodes().count() == 0


@pytest.mark.parametrize("arguments", [["decimal", "x"], ["time", 1e99], ["table", 5], 5])
async def test_definition_whose_arguments_are_no_values_is_left_out_alone(arguments: object) -> None:
    management = Container().management
    common = {"durable": True, "auto-delete": False}
    imported = await management.import_definitions(
        {
            "trio-amqp10": 1,
            "declared-queues": [
                {"name": "a", "arguments": {"x": {"$": arguments}}, **common},
                {"name": "b", "arguments": {}, **common},
            ],
        }
    )
    assert (dict(imported.made), [each.name for each in imported.left_out]) == ({"declared-queues": 1}, ["a"])
    assert "a value has the wrong type: " in imported.left_out[0].reason


@pytest.mark.parametrize(
    ("kind", "wrong", "reason"),
    [
        ("queues", {"durable": "false"}, "durable='false': expected true or false"),
        ("queues", {"auto_delete": 1}, "auto-delete=1: expected true or false"),
        ("exchanges", {"internal": None}, "internal=None: expected true or false"),
        ("exchanges", {"type": 5}, "type=5: expected a text"),
        ("queues", {"name": "\ud800"}, "name='\\ud800': expected Unicode"),
        ("queues", {"arguments": {"x-max-length": 2**70}}, "at most 64 bits"),
        ("bindings", {"routing_key": 5}, "key=5: expected a text"),
        ("bindings", {"routing_key": "\ud800"}, "expected Unicode"),
        ("bindings", {"destination_type": "topic"}, "destination-kind='topic': expected queue or exchange"),
    ],
)
async def test_entry_with_a_value_of_another_type_is_left_out(
    kind: str, wrong: dict[str, Any], reason: str
) -> None:
    container = Container(strict=True)
    container.add_broker().declare_queue("there")
    given = {"name": "x", "source": "amq.topic", "destination": "there", **wrong}
    done = await container.management.import_definitions({"rabbitmq_version": "4", kind: [given]})
    assert [reason in each.reason for each in done.left_out] == [True]
    assert not done.made


@pytest.mark.parametrize("kind", ["queues", "topics", "redirects"])
async def test_name_that_is_not_unicode_is_left_out(kind: str) -> None:
    container = Container()
    entry: dict[str, Any] = {"name": "\udcff", "rules": {}, "url": "amqp://b.example:5672/x"}
    done = await container.management.import_definitions({"trio-amqp10": 1, kind: [entry]})
    assert "expected Unicode" in done.left_out[0].reason


async def test_one_imports_and_exports_what_the_rights_permit() -> None:
    container = Container(authorise=amqp.Rules(("ada", "create", "a*"), ("ada", "monitor", "b")))
    for name in ("b", "c"):
        container.add_queue(name)
    ada = container.management.on_behalf_of(Identity(name="ada", mechanism="PLAIN"))
    given: dict[str, Any] = {
        "trio-amqp10": 1,
        "queues": [{"name": "a1", "rules": {"max-length": 1}}, {"name": "x", "rules": {}}, {}],
    }
    imported = await ada.import_definitions(given)
    assert (dict(imported.made), [each.name for each in imported.left_out]) == (
        {"queues": 1},
        ["x", "None to None"],
    )
    exported = await ada.export_definitions()
    assert exported["queues"] == [{"name": "b", "rules": {}}, {"name": "a1", "rules": {"max-length": 1}}]
