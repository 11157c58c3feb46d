from __future__ import annotations

from typing import TYPE_CHECKING

import kombu
import pytest
from amqp import exceptions as kinds

from .peers import emulator_url, task_queue

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture
def connection() -> Generator[kombu.Connection]:
    with emulator_url() as url, kombu.Connection(url) as made:
        yield made


def test_queue_is_declared_with_its_arguments(connection: kombu.Connection) -> None:
    queue = kombu.Queue("ranked", max_priority=5, message_ttl=60)
    queue(connection.default_channel).declare()
    with pytest.raises(kinds.PreconditionFailed, match="with other properties"):
        kombu.Queue("ranked", max_priority=4)(connection.channel()).declare()


def test_passive_declaration_counts_messages_and_finds_no_other(connection: kombu.Connection) -> None:
    channel = connection.default_channel
    queue = task_queue()
    connection.Producer(serializer="json").publish(
        1, exchange=queue.exchange, routing_key="tasks", declare=[queue]
    )
    assert channel.queue_declare("tasks", passive=True).message_count == 1
    with pytest.raises(kinds.NotFound):
        channel.queue_declare("none", passive=True)


def test_queue_without_a_name_gets_one(connection: kombu.Connection) -> None:
    name = connection.default_channel.queue_declare(exclusive=True).queue
    assert name.startswith("kombu-")


def test_unbound_queue_gets_nothing(connection: kombu.Connection) -> None:
    channel = connection.default_channel
    queue = task_queue()(channel)
    queue.declare()
    queue.unbind_from(queue.exchange, "tasks")
    producer = connection.Producer(serializer="json")
    producer.publish("dropped", exchange="tasks", routing_key="tasks")
    assert queue.get() is None


def test_exchange_is_bound_to_another(connection: kombu.Connection) -> None:
    channel = connection.default_channel
    queue = task_queue()(channel)
    queue.declare()
    channel.exchange_declare("source", "fanout")
    channel.exchange_bind("tasks", "source", "tasks")
    producer = connection.Producer(serializer="json")
    producer.publish("tea", exchange="source", routing_key="tasks")
    assert queue.get(no_ack=True).payload == "tea"
    channel.exchange_unbind("tasks", "source", "tasks")
    producer.publish("tea", exchange="source", routing_key="tasks")
    assert queue.get() is None


def test_queue_is_deleted_unless_it_is_used(connection: kombu.Connection) -> None:
    channel = connection.default_channel
    queue = task_queue()(channel)
    queue.declare()
    connection.Producer(serializer="json").publish("tea", exchange="tasks", routing_key="tasks")
    assert queue.delete(if_empty=True) == 0
    assert queue.delete() == 1
    with pytest.raises(kinds.NotFound):
        channel.queue_declare("tasks", passive=True)


def test_deleted_exchange_is_gone(connection: kombu.Connection) -> None:
    channel = connection.default_channel
    channel.exchange_declare("x", "direct", passive=True)  # shows nothing, and makes nothing
    channel.exchange_declare("x", "direct")
    channel.exchange_delete("x")
    with pytest.raises(kinds.NotFound):
        connection.Producer(serializer="json").publish("tea", exchange="x", routing_key="k")


def test_message_to_a_queue_that_does_not_exist_is_refused_if_it_is_persistent(
    connection: kombu.Connection,
) -> None:
    producer = connection.Producer(serializer="json")
    producer.publish("reply", routing_key="none", delivery_mode=1)
    with pytest.raises(kinds.NotFound):
        producer.publish("task", routing_key="none")
    queue = task_queue()(connection.default_channel)
    queue.declare()
    producer.publish("task", routing_key="tasks")
    assert queue.get(no_ack=True).payload == "task"
