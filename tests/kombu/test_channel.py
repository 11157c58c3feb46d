"""What a channel does alike with both kinds of peers."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import kombu
import pytest
from amqp import exceptions as kinds

from trio_amqp10 import Container, blocking
from trio_amqp10.testing import running_container

from .peers import SECONDS, container_url, drained, emulator_url, task_queue

if TYPE_CHECKING:
    from collections.abc import Generator

PEERS = {"container": container_url, "rabbitmq": emulator_url}


@pytest.fixture(params=PEERS)
def url(request: pytest.FixtureRequest) -> Generator[str]:
    with PEERS[request.param]() as made:
        yield made


@pytest.fixture
def connection(url: str) -> Generator[kombu.Connection]:
    with kombu.Connection(url) as made:
        yield made


def publish(
    connection: kombu.Connection, *bodies: Any, to: kombu.Queue | None = None, **options: Any
) -> None:
    target = to or task_queue()
    producer = connection.Producer(serializer="json")
    for body in bodies:
        producer.publish(
            body,
            exchange=target.exchange,
            routing_key=target.routing_key,
            declare=[target],
            **options,
        )


class Collecting:
    """A consumer that keeps its messages."""

    def __init__(self, connection: Any, *queues: kombu.Queue, ack: bool = True, **options: Any) -> None:
        self.messages: list[Any] = []
        self._ack = ack
        self.consumer = connection.Consumer(
            queues or [task_queue()], on_message=self._take, accept=["json"], **options
        )

    def _take(self, message: Any) -> None:
        self.messages.append(message)
        if self._ack:
            message.ack()

    @property
    def bodies(self) -> list[Any]:
        return [message.payload for message in self.messages]


def nothing_more(connection: Any, seconds: float = 0.2) -> None:
    with pytest.raises(TimeoutError):
        connection.drain_events(timeout=seconds)


def test_messages_come_in_order_with_headers(connection: kombu.Connection) -> None:
    publish(connection, *range(20), headers={"a": [1], "b": None})
    found = Collecting(connection)
    with found.consumer:
        drained(connection, lambda: len(found.messages) == 20)
    assert found.bodies == list(range(20))
    assert found.messages[0].headers == {"a": [1], "b": None}
    assert found.messages[0].delivery_info["redelivered"] is False


def test_prefetch_bounds_the_messages_of_all_queues_together(connection: kombu.Connection) -> None:
    one, two = task_queue("one"), task_queue("two")
    publish(connection, *range(5), to=one)
    publish(connection, *range(5), to=two)
    found = Collecting(connection, one, two, ack=False, prefetch_count=3)
    with found.consumer:
        drained(connection, lambda: len(found.messages) == 3)
        nothing_more(connection)
        found.messages[0].ack()
        drained(connection, lambda: len(found.messages) == 4)
        found.consumer.qos(prefetch_count=10)
        for message in found.messages[1:]:
            message.ack()
        drained(connection, lambda: len(found.messages) == 10)


def test_message_without_an_outcome_returns_when_the_channel_closes(
    connection: kombu.Connection, url: str
) -> None:
    publish(connection, *range(5))
    with kombu.Connection(url) as other:
        found = Collecting(other, ack=False, prefetch_count=3)
        with found.consumer:
            drained(other, lambda: len(found.messages) == 2)
            found.messages[0].ack()
    rest = Collecting(connection)
    with rest.consumer:
        drained(connection, lambda: len(rest.messages) == 4)
        nothing_more(connection)
    assert sorted(rest.bodies) == [1, 2, 3, 4]
    assert next(one for one in rest.messages if one.payload == 1).delivery_info["redelivered"] is True


def test_message_that_was_not_handed_over_has_not_failed_when_the_channel_closes() -> None:
    with container_url() as url:
        with kombu.Connection(url) as connection:
            publish(connection, *range(4))
            found = Collecting(connection, ack=False)
            with found.consumer:
                drained(connection, lambda: found.messages)
        with blocking.connect(url.replace("amqp10", "amqp")) as conn, conn.open_receiver("tasks") as receiver:
            counts = [receiver.receive(timeout=SECONDS).message.delivery_count for _ in range(4)]
        assert sorted(counts) == [0, 0, 0, 1]


def test_requeued_message_comes_again_as_redelivered(connection: kombu.Connection) -> None:
    publish(connection, "tea")
    found = Collecting(connection, ack=False)
    with found.consumer:
        drained(connection, lambda: found.messages)
        found.messages[0].requeue()
        drained(connection, lambda: len(found.messages) == 2)
        found.messages[1].ack()
    assert [one.delivery_info["redelivered"] for one in found.messages] == [False, True]


def test_rejected_message_does_not_come_again(connection: kombu.Connection) -> None:
    publish(connection, "tea")
    found = Collecting(connection, ack=False)
    with found.consumer:
        drained(connection, lambda: found.messages)
        found.messages[0].reject()
        nothing_more(connection)


def test_messages_are_settled_up_to_one(connection: kombu.Connection, url: str) -> None:
    publish(connection, *range(4))
    with kombu.Connection(url) as other:
        found = Collecting(other, ack=False)
        with found.consumer:
            drained(other, lambda: len(found.messages) == 4)
            found.messages[2].ack(multiple=True)
    rest = Collecting(connection)
    with rest.consumer:
        drained(connection, lambda: rest.messages)
        nothing_more(connection)
    assert rest.bodies == [3]


def test_recover_brings_messages_again(connection: kombu.Connection) -> None:
    publish(connection, *range(2))
    found = Collecting(connection, ack=False)
    with found.consumer:
        drained(connection, lambda: len(found.messages) == 2)
        found.consumer.recover(requeue=True)
        drained(connection, lambda: len(found.messages) == 4)


def test_message_can_be_settled_after_its_consumer_has_ended(connection: kombu.Connection) -> None:
    publish(connection, "tea")
    found = Collecting(connection, ack=False)
    with found.consumer:
        drained(connection, lambda: found.messages)
    found.messages[0].ack()
    assert task_queue()(connection.default_channel).get() is None


def test_consumer_without_acknowledgements_takes_messages_for_good(
    connection: kombu.Connection, url: str
) -> None:
    publish(connection, "tea")
    with kombu.Connection(url) as other:
        found = Collecting(other, ack=False, no_ack=True)
        with found.consumer:
            drained(other, lambda: found.messages)
    assert task_queue()(connection.default_channel).get() is None


def test_get_returns_messages_one_by_one(connection: kombu.Connection) -> None:
    publish(connection, 1, 2)
    bound = task_queue()(connection.default_channel)
    first = bound.get()
    first.ack()
    assert (first.payload, bound.get(no_ack=True).payload, bound.get()) == (1, 2, None)


def test_purge_counts_what_it_drops(connection: kombu.Connection) -> None:
    publish(connection, *range(7))
    bound = task_queue()(connection.default_channel)
    assert bound.purge() == 7
    assert bound.get() is None


def test_simple_queue(connection: kombu.Connection) -> None:
    simple = connection.SimpleQueue("simple")
    simple.put({"n": 1})
    message = simple.get(timeout=SECONDS)
    message.ack()
    assert message.payload == {"n": 1}
    with pytest.raises(queue.Empty):
        simple.get(timeout=0.05)
    simple.close()


def test_large_message(connection: kombu.Connection) -> None:
    publish(connection, large := "x" * 3_000_000)
    found = Collecting(connection)
    with found.consumer:
        drained(connection, lambda: found.messages)
    assert found.bodies == [large]


def test_message_expires(connection: kombu.Connection) -> None:
    publish(connection, "old", expiration=0.05)
    time.sleep(0.2)  # by the clock of the peer
    publish(connection, "new")
    found = Collecting(connection)
    with found.consumer:
        drained(connection, lambda: found.messages)
        nothing_more(connection)
    assert found.bodies == ["new"]


def test_broadcast_reaches_each_queue_that_is_bound(connection: kombu.Connection, url: str) -> None:
    exchange = kombu.Exchange("news", "fanout", durable=False)
    with kombu.Connection(url) as other:
        found = [
            Collecting(
                conn,
                kombu.Queue(f"news-{number}", exchange, durable=False, auto_delete=True),
                no_ack=True,
                ack=False,
            )
            for number, conn in enumerate((connection, other))
        ]
        with found[0].consumer, found[1].consumer:
            connection.Producer(serializer="json").publish("tea", exchange="news", declare=[exchange])
            drained(connection, lambda: found[0].messages)
            drained(other, lambda: found[1].messages)
    assert [one.bodies for one in found] == [["tea"], ["tea"]]


def test_topic_exchange_selects_by_key(connection: kombu.Connection) -> None:
    exchange = kombu.Exchange("prices", "topic", durable=False)
    wanted = kombu.Queue("wanted", exchange, routing_key="tea.*", durable=False, auto_delete=True)
    found = Collecting(connection, wanted, no_ack=True, ack=False)
    with found.consumer:
        producer = connection.Producer(serializer="json")
        for key in ("tea.green", "milk", "tea.black"):
            producer.publish(key, exchange="prices", routing_key=key, declare=[exchange])
        drained(connection, lambda: len(found.messages) == 2)
        nothing_more(connection)
    assert found.bodies == ["tea.green", "tea.black"]


def test_message_that_no_binding_wants_does_not_end_the_wait(connection: kombu.Connection) -> None:
    exchange = kombu.Exchange("prices", "topic", durable=False)
    wanted = kombu.Queue("wanted", exchange, routing_key="tea", durable=False, auto_delete=True)
    with Collecting(connection, wanted, no_ack=True, ack=False).consumer:
        connection.Producer(serializer="json").publish("x", exchange="prices", routing_key="milk")
        began = time.monotonic()
        nothing_more(connection, 0.5)
        assert time.monotonic() - began >= 0.5


def test_mandatory_message_that_no_queue_takes_is_refused(connection: kombu.Connection) -> None:
    exchange = kombu.Exchange("empty", "direct")
    bound = kombu.Queue("bound", exchange, routing_key="a")
    bound(connection.default_channel).declare()
    producer = connection.Producer(serializer="json")
    producer.publish("dropped", exchange="empty", routing_key="b")
    with pytest.raises(kinds.NotFound):
        producer.publish("returned", exchange="empty", routing_key="b", mandatory=True)


def test_threads_settle_messages(connection: kombu.Connection) -> None:
    publish(connection, *range(50))
    found = Collecting(connection, ack=False, prefetch_count=10)
    threads: list[threading.Thread] = []
    with found.consumer:
        while len(found.messages) < 50:
            connection.drain_events(timeout=SECONDS)
            threads.append(threading.Thread(target=found.messages[-1].ack))
            threads[-1].start()
        for thread in threads:
            thread.join()
    assert task_queue()(connection.default_channel).get() is None


@contextmanager
def channels(connection: kombu.Connection, count: int) -> Generator[list[Any]]:
    made = [connection.channel() for _ in range(count)]
    yield made
    for channel in made:
        channel.close()


def test_channels_have_windows_of_their_own(connection: kombu.Connection) -> None:
    publish(connection, *range(4))
    with channels(connection, 2) as (one, two):
        found = [
            Collecting(connection, channel=channel, ack=False, prefetch_count=1) for channel in (one, two)
        ]
        with found[0].consumer, found[1].consumer:
            drained(connection, lambda: all(each.messages for each in found))
            nothing_more(connection)
        assert sorted(found[0].bodies + found[1].bodies) == [0, 1]


@pytest.mark.parametrize("no_ack", [True, False])
def test_consumers_one_after_the_other_share_a_link(no_ack: bool) -> None:
    container = Container("peer")
    with (
        running_container(container=container) as url,
        kombu.Connection(url.replace("amqp://", "amqp10://")) as connection,
    ):
        consumers = [Collecting(connection, ack=not no_ack, no_ack=no_ack) for _ in range(5)]
        for number, found in enumerate(consumers):
            publish(connection, number)
            with found.consumer:
                drained(connection, lambda found=found: found.messages)  # type: ignore[misc]
        node = container.find("tasks")
        assert len(node.outlets) == 1
        with consumers[0].consumer, consumers[1].consumer, Collecting(connection, no_ack=not no_ack).consumer:
            assert len(node.outlets) == 3
    assert [found.bodies for found in consumers] == [[0], [1], [2], [3], [4]]


def test_message_can_be_settled_while_another_consumer_has_its_link(connection: kombu.Connection) -> None:
    publish(connection, 0, 1)
    found = [Collecting(connection, ack=False, prefetch_count=1) for _ in range(2)]
    with found[0].consumer:
        drained(connection, lambda: found[0].messages)
    with found[1].consumer:
        nothing_more(connection)
        found[0].messages[0].ack()
        drained(connection, lambda: found[1].messages)
        found[1].messages[0].ack()
    assert [one.bodies for one in found] == [[0], [1]]
    assert task_queue()(connection.default_channel).get() is None


@pytest.mark.parametrize("here", [True, False])
def test_queue_that_was_deleted_meanwhile_is_consumed_from_by_another_link(here: bool) -> None:
    with emulator_url() as url, kombu.Connection(url) as connection, kombu.Connection(url) as other:
        with Collecting(connection).consumer:
            pass
        channel = connection.default_channel
        (inflow,) = channel._inflows.values()
        if here:
            channel.queue_delete("tasks")
        else:
            other.default_channel.queue_delete("tasks")
            while inflow.link.source.failure is None:
                channel.queue_declare("other")
        publish(connection, "tea")
        found = Collecting(connection)
        with found.consumer:
            drained(connection, lambda: found.messages)
    assert found.bodies == ["tea"]
