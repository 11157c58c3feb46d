"""What was made through management, in a container that starts again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from tests.container.helpers import fill, queue_of
from trio_amqp10.broker.stores.node_settings import NodeSetting
from trio_amqp10.container import Container, Topic

if TYPE_CHECKING:
    from pathlib import Path


async def ask(container: Container, operation: str, name: str, body: Any = None, kind: str = "queue") -> int:
    async with container.connect() as conn, conn.open_requester("$management") as requester:
        asked = {"operation": operation, "type": kind, "name": name}
        reply = await requester.request(amqp.Message(body, application_properties=asked))
        return int(reply.application_properties["statusCode"])


def begin(store: amqp.Store, **options: Any) -> Container:
    container = Container(store=store, **options)
    container.add_management()
    return container


async def test_created_nodes_are_there_again_with_their_rules(tmp_path: Path) -> None:
    path = tmp_path / "store"
    rules = {"max-length": 7, "overflow": "reject", "dead-letter": "dead", "durable": True}
    with amqp.SqliteStore(path) as store:
        container = begin(store, strict=True)
        assert await ask(container, "CREATE", "q", rules) == 201
        assert await ask(container, "CREATE", "t", {"max-backlog": 3}, "topic") == 201
        assert await ask(container, "UPDATE", "q", {"max-length": 9}) == 200
        assert await ask(container, "UPDATE", "t", {"max-backlog": 5}, "topic") == 200
        async with container.connect() as conn:
            await fill(conn, "q", "kept, for the queue is durable")
    with amqp.SqliteStore(path) as store:
        container = begin(store, strict=True)
        async with container.connect():
            queue, topic = queue_of(container), container.nodes["t"]
            assert queue.policy == amqp.QueuePolicy(max_length=9, overflow="reject", dead_letter="dead")
            assert (queue.durable, len(queue)) == (True, 1)
            assert isinstance(topic, Topic)
            assert topic.max_backlog == 5
        assert await ask(container, "UPDATE", "q", {"max-octets": 100}) == 200
    with amqp.SqliteStore(path) as store:
        container = begin(store)
        async with container.connect():
            assert (queue_of(container).policy.max_length, queue_of(container).policy.max_octets) == (9, 100)


@pytest.mark.parametrize("by_program", [False, True])
async def test_deleted_node_stays_away(by_program: bool) -> None:
    store = amqp.MemoryStore()
    container = begin(store)
    assert await ask(container, "CREATE", "q", {"durable": True}) == 201
    await container.send("q", "x")
    if by_program:
        container.remove_node("q")
        await container.flush()
    else:
        assert await ask(container, "DELETE", "q") == 204
    after = begin(store)
    async with after.connect():
        assert "q" not in after.nodes


async def test_what_the_program_adds_goes_before(caplog: pytest.LogCaptureFixture) -> None:
    store = amqp.MemoryStore()
    assert await ask(begin(store), "CREATE", "q", {"max-length": 7}) == 201
    for expected in (1, 0):
        caplog.clear()
        container = begin(store)
        container.add_queue("q", max_length=3)
        async with container.connect():
            assert queue_of(container).policy.max_length == 3
        assert len([each for each in caplog.records if each.levelno == logging.WARNING]) == expected
    container = begin(store)
    async with container.connect():
        assert "q" not in container.nodes, "it was the program's, which adds it no more"


async def test_change_of_what_the_program_adds_lasts_as_long_as_the_process() -> None:
    store = amqp.MemoryStore()
    for _ in range(2):
        container = begin(store)
        queue = container.add_queue("q", max_length=3)
        async with container.connect():
            assert queue.policy.max_length == 3
        assert await ask(container, "UPDATE", "q", {"max-length": 5}) == 200
        assert queue.policy.max_length == 5


@pytest.mark.logs_errors
async def test_node_that_cannot_be_stored_is_not_made() -> None:
    store = amqp.MemoryStore()
    container = begin(store)
    assert await ask(container, "CREATE", "kept", {"max-length": 7}) == 201
    store.failure = amqp.StoreError("no room")
    assert await ask(container, "CREATE", "q") == 500
    assert "q" not in container.nodes
    assert await ask(container, "UPDATE", "kept", {"max-length": 8}) == 500
    assert queue_of(container, "kept").policy.max_length == 7
    store.failure = None
    assert await ask(container, "CREATE", "t", {"max-backlog": 3}, "topic") == 201
    store.failure = amqp.StoreError("no room")
    assert await ask(container, "UPDATE", "t", {"max-backlog": 4}, "topic") == 500
    topic = container.nodes["t"]
    assert isinstance(topic, Topic)
    assert topic.max_backlog == 3
    store.failure = None
    assert await ask(container, "CREATE", "q") == 201
    after = begin(store)
    async with after.connect():
        assert queue_of(after, "kept").policy.max_length == 7
        assert "q" in after.nodes


async def test_whether_a_queue_is_durable_cannot_be_changed() -> None:
    container = begin(amqp.MemoryStore())
    assert await ask(container, "CREATE", "q", {"durable": True}) == 201
    assert await ask(container, "UPDATE", "q", {"durable": False}) == 400
    assert await ask(container, "UPDATE", "q", {"durable": True}) == 200
    without = Container()
    without.add_management()
    assert await ask(without, "CREATE", "q", {"durable": True}) == 400


@pytest.mark.logs_errors
async def test_rules_of_another_version_are_left_where_they_are(caplog: pytest.LogCaptureFixture) -> None:
    store = amqp.MemoryStore()
    container = begin(store)
    assert container.settings is not None
    async with container.connect():
        await container.settings.keep("q", NodeSetting("queue", {"colour": "red"}))
    for _ in range(2):
        caplog.clear()
        after = begin(store)
        async with after.connect():
            assert "q" not in after.nodes
        assert "cannot be made again" in caplog.text
