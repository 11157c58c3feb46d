"""pika as one side of 0-9-1, by its blocking connection, and by that of callbacks where as many as ``credit`` are not confirmed.

Runs in the peers' own environment. Roles as in ``ours091``; it acknowledges a hundred at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pika
from lines import Span, go, read_job, tell

if TYPE_CHECKING:
    from types import SimpleNamespace

ACKS = 100


def _blocking(job: SimpleNamespace) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(job.url))


def publish(job: SimpleNamespace) -> dict[str, float]:
    body = bytes(job.size)
    connection = _blocking(job)
    channel = connection.channel()
    go()
    span = Span()
    for _ in range(job.count):
        channel.basic_publish("", job.address, body)
    channel.queue_declare(job.address, passive=True)
    result = span.end(job.count)
    connection.close()
    return result


def publish_each(job: SimpleNamespace) -> dict[str, float]:
    body = bytes(job.size)
    connection = _blocking(job)
    channel = connection.channel()
    channel.confirm_delivery()
    go()
    span = Span()
    for _ in range(job.count):
        channel.basic_publish("", job.address, body)
    result = span.end(job.count)
    connection.close()
    return result


def publish_window(job: SimpleNamespace) -> dict[str, float]:
    body = bytes(job.size)
    state: dict[str, Any] = {"sent": 0, "done": 0}

    def on_open(connection: Any) -> None:
        connection.channel(on_open_callback=on_channel)

    def on_channel(channel: Any) -> None:
        channel.confirm_delivery(
            ack_nack_callback=lambda frame: on_ack(channel, frame), callback=lambda _: begin(channel)
        )

    def begin(channel: Any) -> None:
        go()
        state["span"] = Span()
        fill(channel)

    def fill(channel: Any) -> None:
        while state["sent"] < job.count and state["sent"] - state["done"] < job.credit:
            channel.basic_publish("", job.address, body)
            state["sent"] += 1

    def on_ack(channel: Any, frame: Any) -> None:
        state["done"] = frame.method.delivery_tag if frame.method.multiple else state["done"] + 1
        if state["done"] >= job.count:
            state["result"] = state["span"].end(job.count)
            channel.connection.close()
        else:
            fill(channel)

    connection = pika.SelectConnection(
        pika.URLParameters(job.url),
        on_open_callback=on_open,
        on_close_callback=lambda closed, _: closed.ioloop.stop(),
    )
    connection.ioloop.start()
    return state["result"]  # type: ignore[no-any-return]


def consume(job: SimpleNamespace) -> dict[str, float]:
    connection = _blocking(job)
    channel = connection.channel()
    channel.basic_qos(prefetch_count=job.credit)
    state: dict[str, Any] = {"got": 0}

    def on_message(channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        len(body)
        state["got"] += 1
        if state["got"] % ACKS == 0 or state["got"] == job.count:
            channel.basic_ack(method.delivery_tag, multiple=True)
        if state["got"] == job.count:
            state["result"] = state["span"].end(job.count)
            channel.stop_consuming()

    go()
    state["span"] = Span()
    channel.basic_consume(job.address, on_message)
    channel.start_consuming()
    connection.close()
    return state["result"]  # type: ignore[no-any-return]


if __name__ == "__main__":
    job = read_job()
    tell(result=globals()[job.role](job))
