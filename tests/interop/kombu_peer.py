"""kombu and py-amqp against a broker, one scenario at a time: ``kombu_peer.py URL SCENARIO``; it fails where an assertion does.

A scenario that takes ``restart`` has the broker restarted by whoever started this: it prints ``restart``, and goes on
after a line of the standard input. Runs in the environment of the clients, without this project.
"""

from __future__ import annotations

import socket
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import amqp
import amqp.exceptions
import kombu
from kombu.exceptions import ContentDisallowed

if TYPE_CHECKING:
    from collections.abc import Callable

    Restart = Callable[[], None]

SECONDS = 20


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def refusal(call: Callable[[], object], kind: type[Exception]) -> Exception:
    try:
        call()
    except kind as refused:
        return refused
    raise AssertionError(f"{kind.__name__} was expected")


def drain(connection: Any, condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        try:
            connection.drain_events(timeout=0.5)
        except socket.timeout:  # noqa: UP041 - what they document
            continue


def py_amqp(url: str, **options: Any) -> amqp.Connection:
    connection = amqp.Connection(host=urlsplit(url).netloc.rpartition("@")[2], **options)
    connection.connect()
    return connection


# -- py-amqp ----------------------------------------------------------------------------------------


def py_amqp_publishes_and_consumes(url: str) -> None:
    with py_amqp(url, confirm_publish=True) as connection:
        channel = connection.channel()
        queue = channel.queue_declare(exclusive=True).queue
        found: list[bytes] = []

        def take(message: amqp.Message) -> None:
            found.append(message.body)
            channel.basic_ack(message.delivery_tag)

        channel.basic_qos(0, 2, False)
        channel.basic_consume(queue, callback=take)
        for number in range(10):
            channel.basic_publish(amqp.Message(b"%d" % number, priority=1), routing_key=queue)
        drain(connection, lambda: len(found) == 10)
        assert found == [b"%d" % number for number in range(10)]


def py_amqp_beats(url: str) -> None:
    with py_amqp(url, heartbeat=1) as connection:
        for _ in range(7):
            time.sleep(0.5)
            connection.heartbeat_tick(rate=2)
            try:
                connection.drain_events(timeout=0.01)
            except socket.timeout:  # noqa: UP041
                continue
        assert connection.channel().queue_declare(exclusive=True).queue


def py_amqp_reports_what_is_refused(url: str) -> None:
    with py_amqp(url) as connection:
        channel = connection.channel()
        refusal(lambda: channel.queue_declare(fresh("none"), passive=True), amqp.exceptions.NotFound)
        channel = connection.channel()
        channel.exchange_declare(exchange := fresh("x"), "direct", auto_delete=False)
        again = connection.channel()
        refusal(lambda: again.exchange_declare(exchange, "fanout"), amqp.exceptions.PreconditionFailed)
        channel.exchange_delete(exchange)


def py_amqp_hears_returns(url: str) -> None:
    with py_amqp(url) as connection:
        channel = connection.channel()
        found: list[Any] = []
        channel.events["basic_return"].add(lambda fault, *_: found.append(fault))
        channel.basic_publish(amqp.Message(b"x"), routing_key=fresh("nobody"), mandatory=True)
        drain(connection, lambda: found)
        assert found[0].reply_code == 312


# -- kombu ------------------------------------------------------------------------------------------


def producer_and_consumer(url: str) -> None:
    with kombu.Connection(url) as connection:
        exchange = kombu.Exchange("tasks", "direct", durable=True)
        queue = kombu.Queue("tasks", exchange, routing_key="t", durable=True)
        producer = connection.Producer(serializer="json")
        producer.publish({"n": 1}, exchange=exchange, routing_key="t", declare=[queue], retry=True)
        found: list[Any] = []

        def take(body: Any, message: Any) -> None:
            found.append(body)
            message.ack()

        with connection.Consumer(queue, callbacks=[take], accept=["json"]):
            drain(connection, lambda: found)
        assert found == [{"n": 1}]


def consumer_that_accepts_json_alone(url: str) -> None:
    with kombu.Connection(url) as connection:
        queue = kombu.Queue(fresh("pickled"), exclusive=True)
        channel = connection.channel()
        queue(channel).declare()
        connection.Producer(channel, serializer="pickle").publish({"n": 1}, routing_key=queue.name)
        refused: list[Any] = []

        def on_error(message: Any, error: Exception) -> None:
            refused.append(error)
            message.reject()

        with kombu.Consumer(channel, queue, callbacks=[print], accept=["json"], on_decode_error=on_error):
            drain(connection, lambda: refused)
        assert isinstance(refused[0], ContentDisallowed)


def simple_queue(url: str) -> None:
    with kombu.Connection(url) as connection:
        queue = connection.SimpleQueue("simple")
        queue.put("hello")
        message = queue.get(timeout=SECONDS)
        assert message.payload == "hello"
        message.ack()
        refusal(lambda: queue.get(timeout=0.3), queue.Empty)
        queue.close()


def topic_with_wildcards(url: str) -> None:
    with kombu.Connection(url) as connection:
        channel = connection.channel()
        exchange = kombu.Exchange(fresh("news"), "topic", durable=False, auto_delete=True)
        queues = [
            kombu.Queue(fresh("q"), exchange, routing_key=key, exclusive=True)
            for key in ("eu.*", "#.tea", "#", "us.#")
        ]
        for queue in queues:
            queue(channel).declare()
        producer = connection.Producer(channel)
        for key in ("eu.tea", "eu.tea.green", "us"):
            producer.publish(key, exchange=exchange, routing_key=key)
        found = []
        for queue in queues:
            bodies = []
            while (message := queue(channel).get(no_ack=True)) is not None:
                bodies.append(message.payload)
            found.append(bodies)
        assert found == [["eu.tea"], ["eu.tea"], ["eu.tea", "eu.tea.green", "us"], ["us"]], found


def dead_letters(url: str) -> None:
    with kombu.Connection(url) as connection:
        channel = connection.channel()
        dead = kombu.Queue(fresh("dead"), exclusive=True)
        dead(channel).declare()
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
        queue = kombu.Queue(fresh("q"), exclusive=True, message_ttl=0.2, queue_arguments=arguments)
        queue(channel).declare()
        producer = connection.Producer(channel)
        producer.publish("rejected", routing_key=queue.name)
        message = queue(channel).get()
        message.reject()
        producer.publish("late", routing_key=queue.name)
        time.sleep(0.5)
        found = []
        while (message := dead(channel).get(no_ack=True)) is not None:
            death = message.headers["x-death"][0]
            found.append((message.payload, death["reason"], death["queue"], death["count"]))
        assert found == [("rejected", "rejected", queue.name, 1), ("late", "expired", queue.name, 1)], found


def virtual_host(url: str) -> None:
    with kombu.Connection(url, virtual_host="/") as connection:
        connection.connect()
    unknown = kombu.Connection(url, virtual_host="odd")
    refusal(unknown.connect, amqp.exceptions.NotAllowed)


def pool_of_connections(url: str) -> None:
    pool = kombu.Connection(url).Pool(limit=2)
    with pool.acquire() as one, pool.acquire() as two:
        assert one.connected is not None
        assert one is not two
        for connection in (one, two):
            connection.default_channel.queue_declare(exclusive=True)
        refusal(lambda: pool.acquire(block=False), pool.LimitExceeded)
    pool.force_close_all()


def ensured_through_a_restart(url: str, restart: Restart) -> None:
    # Without confirms nobody knows whether "1" was read before the broker was killed.
    with kombu.Connection(url, heartbeat=5, transport_options={"confirm_publish": True}) as connection:
        queue = kombu.Queue(fresh("kept"), durable=True)
        producer = connection.Producer(auto_declare=True)
        policy = {"interval_start": 0.2, "interval_max": 0.5, "max_retries": 60}
        publish = connection.ensure(producer, producer.publish, errback=print, **policy)
        publish("1", routing_key=queue.name, declare=[queue], retry=False, delivery_mode=2)
        restart()
        publish("2", routing_key=queue.name, declare=[queue], retry=False, delivery_mode=2)
        found = []
        deadline = time.monotonic() + SECONDS
        while len(found) < 2 and time.monotonic() < deadline:
            message = queue(connection.default_channel).get(no_ack=True)
            if message is not None:
                found.append(message.payload)
        assert found == ["1", "2"], found
        queue(connection.default_channel).delete()


def _restart() -> None:
    print("restart", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    scenario = globals()[sys.argv[2]]
    scenario(sys.argv[1], *((_restart,) if "restart" in scenario.__annotations__ else ()))
