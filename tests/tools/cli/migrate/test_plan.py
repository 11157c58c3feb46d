"""Plans: what is chosen, what is translated, and what is listed as a difference."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.rabbitmq import QueueInfo
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.migrate.plan import (
    QueueCopy,
    plan_for_container,
    plan_for_rabbitmq,
    plan_from_rabbitmq,
)

DEFINITIONS: dict[str, list[dict[str, Any]]] = {
    "queues": [
        {"name": "orders", "rules": {"max-priority": 0, "dead-letter": "dead"}},
        {"name": "dead", "rules": {}},
    ],
    "topics": [{"name": "news", "rules": {"overflow": "wait"}}],
    "declared-queues": [
        {"name": "jobs", "durable": True, "auto-delete": False, "arguments": {"x-max-length": 5}}
    ],
    "exchanges": [
        {
            "name": name,
            "type": kind,
            "durable": True,
            "auto-delete": False,
            "internal": False,
            "arguments": {},
        }
        for name, kind in (("shop", "topic"), ("odd", "x-odd"))
    ],
    "bindings": [
        {"source": source, "destination-kind": "queue", "destination": "jobs", "key": "#", "arguments": {}}
        for source in ("", "shop", "odd")
    ],
}
QUEUES = [
    {"name": "orders", "depth": 3, "ready": 2},
    {"name": "dead", "depth": 0, "ready": 0},
    {"name": "jobs", "depth": 1, "ready": 1},
    {"name": "own", "depth": 9, "ready": 9},
    {"name": "temporary/1", "depth": 9, "ready": 9},
]
TOPICS = [
    {"name": "news", "subscriptions": 2, "messages": 7},
    {"name": "none", "subscriptions": 0, "messages": 0},
]


def info(name: str, **changes: Any) -> QueueInfo:
    given: dict[str, Any] = {
        "type": "classic",
        "durable": True,
        "exclusive": False,
        "auto_delete": False,
        "arguments": {"x-queue-type": "classic"},
        "message_count": 4,
        "consumer_count": 0,
    }
    return QueueInfo(name=name, **{**given, **changes})


def test_rabbitmq_gets_arguments_and_no_topics() -> None:
    plan = plan_for_rabbitmq(DEFINITIONS, QUEUES, ())
    assert plan.lines() == [
        "difference: queue own: 9 messages: it is not migrated, because it is deleted together with its connection or consumers",
        "difference: queue dead: max-priority=any: priorities are ignored, as with max-priority=0",
        "difference: topic news: it is not migrated: bind queues to a fanout exchange instead",
        "difference: exchange odd: type=x-odd: it is not migrated, nor its bindings",
        (
            "queue orders: 2 messages, 1 with consumers or delayed; x-queue-type=classic, x-dead-letter-exchange=, "
            "x-dead-letter-routing-key=dead"
        ),
        "queue dead: 0 messages; x-queue-type=classic",
        "queue jobs: 1 messages; x-max-length=5",
        "exchange shop: topic",
        "binding shop to queue jobs: key '#'",
    ]


def test_container_gets_the_definitions_as_they_are() -> None:
    plan = plan_for_container(DEFINITIONS, QUEUES, TOPICS, ())
    assert plan.definitions["queues"] == DEFINITIONS["queues"]
    assert plan.definitions["bindings"] == DEFINITIONS["bindings"][1:]
    assert [str(each) for each in plan.differences] == [
        "queue own: 9 messages: it is not migrated, because it is deleted together with its connection or consumers",
        "topic news: 7 messages of 2 subscriptions: they are not migrated",
    ]
    assert "topic news; overflow=wait" in plan.lines()


def test_named_queue_goes_with_the_exchanges_that_lead_to_it() -> None:
    plan = plan_for_rabbitmq(DEFINITIONS, QUEUES, ("jobs",))
    assert plan.queues == (QueueCopy(name="jobs", ready=1),)
    assert [each["name"] for each in plan.definitions["declared-queues"]] == ["jobs"]
    assert [each["name"] for each in plan.definitions["exchanges"]] == ["shop"]
    assert [str(each) for each in plan.differences] == [
        "exchange odd: type=x-odd: it is not migrated, nor its bindings"
    ]
    orders = plan_for_container(DEFINITIONS, QUEUES, TOPICS, ("orders",))
    assert (orders.definitions["topics"], orders.definitions["exchanges"], orders.differences) == ([], [], ())
    with pytest.raises(CommandError, match="no queue 'nothing' at the source"):
        plan_for_rabbitmq(DEFINITIONS, QUEUES, ("nothing",))


def test_queue_of_rabbitmq_is_declared() -> None:
    quorum = info("q", type="quorum", arguments={"x-queue-type": "quorum", "x-delivery-limit": 2})
    stream = info("s", type="stream", arguments={"x-queue-type": "stream"})
    plan = plan_from_rabbitmq([quorum, stream], None, None)
    assert plan.lines() == [
        "difference: queue s: x-queue-type=stream: a stream is not migrated",
        "queue q: 4 messages; x-queue-type=quorum, x-delivery-limit=2",
    ]
    with pytest.raises(CommandError, match="'e' belongs to one connection"):
        plan_from_rabbitmq([info("e", exclusive=True)], None, None)


def test_file_of_rabbitmq_has_exchanges_and_bindings_too() -> None:
    file = {
        "vhosts": [{"name": "/"}],
        "users": [{"name": "guest"}],
        "queues": [{"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}],
        "exchanges": [{"name": "shop", "vhost": "/", "type": "topic", "durable": True, "auto_delete": False}],
        "bindings": [
            {
                "source": "shop",
                "vhost": "/",
                "destination": "q",
                "destination_type": "queue",
                "routing_key": "#",
            }
        ],
    }
    plan = plan_from_rabbitmq([info("q")], file, None)
    assert plan.lines() == [
        "difference: users guest: left out: users are given to serve, not defined",
        "queue q: 4 messages; x-queue-type=classic",
        "exchange shop: topic",
        "binding shop to queue q: key '#'",
    ]
