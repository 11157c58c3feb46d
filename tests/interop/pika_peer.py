"""pika's blocking connection, one scenario at a time: ``pika_peer.py URL SCENARIO``; it fails where an assertion does.

Runs in the environment of the clients, without this project.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pika
import pika.exceptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from pika.adapters.blocking_connection import BlockingChannel


def connect(url: str, **options: Any) -> pika.BlockingConnection:
    parameters = pika.URLParameters(url)
    for name, value in options.items():
        setattr(parameters, name, value)
    return pika.BlockingConnection(parameters)


def refusal(call: Callable[[], object], kind: type[Exception]) -> Exception:
    try:
        call()
    except kind as refused:
        return refused
    raise AssertionError(f"{kind.__name__} was expected")


def own_queue(channel: BlockingChannel, **options: Any) -> str:
    name: str = channel.queue_declare("", exclusive=True, **options).method.queue
    return name


def wait_for_count(channel: BlockingChannel, queue: str, count: int) -> None:
    """RabbitMQ counts what was given back a little later."""
    deadline = time.monotonic() + 10
    while channel.queue_declare(queue, passive=True).method.message_count != count:
        assert time.monotonic() < deadline, f"the queue does not come to hold {count} messages"
        time.sleep(0.05)


def wrong_password(url: str) -> None:
    credentials = pika.PlainCredentials("guest", "wrong")
    refusal(lambda: connect(url, credentials=credentials), pika.exceptions.ProbableAuthenticationError)


def unknown_virtual_host(url: str) -> None:
    refusal(lambda: connect(url, virtual_host="odd"), pika.exceptions.ProbableAccessDeniedError)


def passive_miss(url: str) -> None:
    with connect(url) as connection:
        channel = connection.channel()
        refused = refusal(
            lambda: channel.queue_declare("nobody", passive=True), pika.exceptions.ChannelClosedByBroker
        )
        assert refused.args[0] == 404
        assert own_queue(connection.channel())


def publish_and_get(url: str) -> None:
    with connect(url) as connection:
        channel = connection.channel()
        queue = own_queue(channel)
        properties = pika.BasicProperties(
            content_type="text/plain", headers={"n": 1, "deep": {"list": [1, "x", None]}}, priority=2
        )
        for body in (b"", b"one"):
            channel.basic_publish("", queue, body, properties)
            method, got, found = channel.basic_get(queue)
            assert (found, got.headers, got.priority) == (body, properties.headers, 2)
            channel.basic_ack(method.delivery_tag)
        assert channel.basic_get(queue) == (None, None, None)


def consume_by_callback(url: str) -> None:
    with connect(url) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=2)
        queue = own_queue(channel)
        found: list[bytes] = []

        def take(_channel: Any, method: Any, _properties: Any, body: bytes) -> None:
            found.append(body)
            channel.basic_ack(method.delivery_tag)
            if len(found) == 10:
                channel.stop_consuming()

        channel.basic_consume(queue, take)
        for number in range(10):
            channel.basic_publish("", queue, b"%d" % number)
        channel.start_consuming()
        assert found == [b"%d" % number for number in range(10)]


def consume_by_generator(url: str) -> None:
    with connect(url) as connection:
        channel = connection.channel()
        queue = own_queue(channel)
        for number in range(5):
            channel.basic_publish("", queue, b"%d" % number)
        found: list[bytes] = []
        for method, _, body in channel.consume(queue, inactivity_timeout=0.3):
            if method is None:
                break
            found.append(body)
            channel.basic_ack(method.delivery_tag)
        assert found == [b"%d" % number for number in range(5)]
        assert channel.cancel() == 0


def acknowledge_many(url: str) -> None:
    with connect(url) as connection:
        channel = connection.channel()
        queue = own_queue(channel)
        for _ in range(5):
            channel.basic_publish("", queue, b"x")
        tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(5)]
        channel.basic_ack(tags[2], multiple=True)
        channel.basic_nack(tags[4], multiple=True, requeue=True)
        wait_for_count(channel, queue, 2)
        assert channel.basic_get(queue)[0].redelivered


def confirms(url: str) -> None:
    with connect(url) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = own_queue(channel, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        channel.basic_publish("", queue, b"1", mandatory=True)
        refusal(lambda: channel.basic_publish("", queue, b"2"), pika.exceptions.NackError)
        lost = refusal(
            lambda: channel.basic_publish("", "nobody", b"3", mandatory=True), pika.exceptions.UnroutableError
        )
        assert lost.messages[0].body == b"3"  # type: ignore[attr-defined]


def callback_from_a_thread(url: str) -> None:
    with connect(url) as connection:
        channel = connection.channel()
        queue = own_queue(channel)
        channel.basic_publish("", queue, b"x")
        method, _, _ = channel.basic_get(queue)
        done = threading.Event()

        def acknowledge() -> None:
            channel.basic_ack(method.delivery_tag)
            done.set()

        threading.Thread(target=lambda: connection.add_callback_threadsafe(acknowledge)).start()
        while not done.is_set():
            connection.process_data_events(0.1)
        wait_for_count(channel, queue, 0)


def heartbeats(url: str) -> None:
    with connect(url, heartbeat=1) as connection:
        channel = connection.channel()
        connection.process_data_events(3.5)
        assert own_queue(channel)


def exclusive_queue_goes(url: str) -> None:
    with connect(url) as other:
        with connect(url) as connection:
            queue = own_queue(connection.channel())
            refused = refusal(
                lambda: other.channel().queue_declare(queue, passive=True),
                pika.exceptions.ChannelClosedByBroker,
            )
            assert refused.args[0] == 405
        refused = refusal(
            lambda: other.channel().queue_declare(queue, passive=True), pika.exceptions.ChannelClosedByBroker
        )
        assert refused.args[0] == 404


def new_secret(url: str) -> None:
    with connect(url) as connection:
        connection.update_secret("new", "because")
        assert own_queue(connection.channel())


def small_frames(url: str) -> None:
    with connect(url, frame_max=8192) as connection:
        channel = connection.channel()
        queue = own_queue(channel)
        body = bytes(range(256)) * 4096
        channel.basic_publish("", queue, body)
        assert channel.basic_get(queue, auto_ack=True)[2] == body


def five_channels(url: str) -> None:
    with connect(url) as connection:
        channels = [connection.channel() for _ in range(5)]
        queues = [own_queue(channel) for channel in channels]
        for number, (channel, queue) in enumerate(zip(reversed(channels), queues, strict=True)):
            channel.basic_publish("", queue, b"%d" % number)
        assert [channels[0].basic_get(queue)[2] for queue in queues] == [b"%d" % n for n in range(5)]


def transaction(url: str) -> None:
    with connect(url) as connection:
        channel = connection.channel()
        queue = own_queue(channel)
        channel.tx_select()
        channel.basic_publish("", queue, b"x")
        channel.tx_rollback()
        channel.basic_publish("", queue, b"y")
        channel.tx_commit()
        assert channel.basic_get(queue)[2] == b"y"


def cancelled_by_the_server(url: str) -> None:
    with connect(url) as connection:
        channel = connection.channel()
        queue = own_queue(channel)
        cancelled: list[Any] = []
        channel.add_on_cancel_callback(cancelled.append)
        channel.basic_consume(queue, lambda *_: None)
        connection.channel().queue_delete(queue)
        connection.process_data_events(1)
        assert len(cancelled) == 1


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
