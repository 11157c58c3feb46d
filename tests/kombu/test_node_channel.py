from __future__ import annotations

import logging
import select
from typing import TYPE_CHECKING

import kombu
import pytest
from amqp import exceptions as kinds

from trio_amqp10 import Container
from trio_amqp10.testing import running_container

from .peers import SECONDS, container_url, drained, service_bus_url, task_queue

if TYPE_CHECKING:
    from collections.abc import Generator

NEWS = kombu.Exchange("news", "fanout", durable=False)
SUBSCRIBED = kombu.Queue("subscribed", NEWS, durable=False, auto_delete=True)


@pytest.fixture
def connection() -> Generator[kombu.Connection]:
    with container_url() as url, kombu.Connection(url) as made:
        yield made


def test_durable_queues_of_one_exchange_get_what_their_bindings_say(connection: kombu.Connection) -> None:
    exchange = kombu.Exchange("work", "topic")
    queues = [kombu.Queue(name, exchange, routing_key=key) for name, key in (("a", "a.#"), ("all", "#"))]
    producer = connection.Producer(serializer="json")
    for key in ("a.b", "c"):
        producer.publish(key, exchange=exchange, routing_key=key, declare=queues)
    found = []
    for queue in queues:
        bound = queue(connection.default_channel)
        bodies = []
        while (message := bound.get(no_ack=True)) is not None:
            bodies.append(message.payload)
        found.append(bodies)
    assert found == [["a.b"], ["a.b", "c"]]


def test_subscription_keeps_messages_from_the_binding_on(connection: kombu.Connection) -> None:
    queue = SUBSCRIBED(connection.default_channel)
    queue.declare()
    producer = connection.Producer(serializer="json")
    producer.publish("before consuming", exchange=NEWS)
    found: list[str] = []
    with connection.Consumer(queue, callbacks=[lambda body, _: found.append(body)], no_ack=True):
        drained(connection, lambda: found)
    producer.publish("between consumers", exchange=NEWS)
    with connection.Consumer(queue, callbacks=[lambda body, _: found.append(body)], no_ack=True):
        drained(connection, lambda: len(found) == 2)
    assert found == ["before consuming", "between consumers"]


def test_deleted_subscription_gets_nothing_more(connection: kombu.Connection) -> None:
    queue = SUBSCRIBED(connection.default_channel)
    queue.declare()
    queue.delete()
    assert connection.transport.state.exchanges["news"]["table"] == []


@pytest.mark.parametrize("closes", [True, False])
def test_message_that_waits_for_a_deleted_subscription_is_dropped(
    connection: kombu.Connection, closes: bool
) -> None:
    queue = SUBSCRIBED(connection.default_channel)
    with connection.Consumer(queue, no_ack=True):
        connection.Producer(serializer="json").publish("nobody takes it", exchange=NEWS)
        assert select.select([connection.transport.wire.fileno()], [], [], SECONDS)[0]
    queue.delete()
    if closes:
        connection.default_channel.close()
    else:
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=0)


def test_reply_queue_stays_after_a_reply(connection: kombu.Connection) -> None:
    queue = SUBSCRIBED(connection.default_channel)
    queue.declare()
    connection.default_channel.after_reply_message_received(queue.name)
    found: list[str] = []
    connection.Producer(serializer="json").publish("again", exchange=NEWS)
    with connection.Consumer(queue, callbacks=[lambda body, _: found.append(body)], no_ack=True):
        drained(connection, lambda: found)


def test_topic_that_the_program_has_added_needs_no_management() -> None:
    container = Container("peer", strict=True)
    container.add_topic("news")
    with (
        running_container(container=container) as url,
        kombu.Connection(url.replace("amqp", "amqp10")) as made,
    ):
        SUBSCRIBED(made.default_channel).declare()
        with pytest.raises(kinds.NotFound, match="no topic 'other'"):
            made.Producer(serializer="json").publish("x", exchange=kombu.Exchange("other", "fanout"))


@pytest.mark.parametrize("strict", [True, False])
def test_peer_that_makes_no_topics_is_named_when_the_queue_is_bound(strict: bool) -> None:
    with (
        container_url(managed=False, strict=strict) as url,
        kombu.Connection(url) as made,
        pytest.raises(kinds.NotFound, match=r"amqp10 serve --management.*\"topics\": False"),
    ):
        SUBSCRIBED(made.default_channel).declare()


def test_task_needs_no_topics() -> None:
    with container_url(managed=False) as url, kombu.Connection(url) as made:
        queue = task_queue()
        made.Producer(serializer="json").publish(
            "x", exchange=queue.exchange, routing_key="tasks", declare=[queue]
        )
        assert queue(made.default_channel).get(no_ack=True).payload == "x"


def test_service_bus_has_queues_and_names_what_it_lacks(caplog: pytest.LogCaptureFixture) -> None:
    options = {"service_bus": True}
    with (
        service_bus_url("tasks") as url,
        kombu.Connection(url, transport_options=options) as made,
        caplog.at_level(logging.WARNING),
    ):
        queue = task_queue()
        producer = made.Producer(serializer="json")
        producer.publish("x", exchange=queue.exchange, routing_key="tasks", declare=[queue])
        message = queue(made.default_channel).get()
        message.ack()
        assert (message.payload, message.delivery_info["redelivered"]) == ("x", False)
        assert not made.supports_exchange_type("fanout")
        with pytest.raises(kinds.NotFound, match="used without topics"):
            SUBSCRIBED(made.default_channel).declare()
        for _ in range(2):
            producer.publish("event", exchange=NEWS)
        with pytest.raises(kinds.NotFound, match="none"):
            producer.publish("x", routing_key="none")
    assert caplog.text.count("messages for exchange 'news' are dropped") == 1
