"""Processor time for each message of the 0-9-1 client, beside pika, against a RabbitMQ that is running.

``python -m bench.amqp091 amqp://guest:guest@127.0.0.1:5672`` runs both clients in turn, each run in a process of its own, at two
lengths: the difference is what the messages cost, without the start. Wall time is not counted: on shared cores it moves by
half. Needs ``pip install pika``.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import subprocess
import sys
import time
from typing import Any

import trio

BODY = b"x" * 100
QUEUE = "bench-091"
SHORT, LONG = 2_000, 22_000
ACKS = 100


async def ours_publish(url: str, count: int) -> None:
    from trio_amqp10 import amqp091

    async with amqp091.open_connection(url) as connection, connection.open_channel() as channel:
        for _ in range(count):
            await channel.publish("", QUEUE, BODY)


async def ours_confirm(url: str, count: int) -> None:
    from trio_amqp10 import amqp091

    async with amqp091.open_connection(url) as connection, connection.open_publisher() as out:
        for _ in range(count):
            await out.publish("", QUEUE, BODY)


async def ours_window(url: str, count: int) -> None:
    from trio_amqp10 import amqp091

    async with amqp091.open_connection(url) as connection, connection.open_publisher(window=1000) as out:
        for _ in range(count):
            await out.transmit("", QUEUE, BODY)


async def ours_consume(url: str, count: int) -> None:
    from trio_amqp10 import amqp091

    async with (
        amqp091.open_connection(url) as connection,
        connection.open_channel(prefetch=1000) as channel,
        channel.queue(QUEUE).consume() as consumer,
    ):
        for _ in range(count):
            (await consumer.receive()).ack()


def _pika(url: str) -> Any:
    import pika

    return pika.BlockingConnection(pika.URLParameters(url))


def pika_publish(url: str, count: int) -> None:
    connection = _pika(url)
    channel = connection.channel()
    for _ in range(count):
        channel.basic_publish("", QUEUE, BODY)
    connection.close()


def pika_confirm(url: str, count: int) -> None:
    connection = _pika(url)
    channel = connection.channel()
    channel.confirm_delivery()
    for _ in range(count):
        channel.basic_publish("", QUEUE, BODY)
    connection.close()


def pika_window(url: str, count: int) -> None:
    import pika

    state = {"sent": 0, "done": 0}

    def on_open(connection: Any) -> None:
        connection.channel(on_open_callback=on_channel)

    def on_channel(channel: Any) -> None:
        channel.confirm_delivery(
            ack_nack_callback=lambda frame: on_ack(channel, frame), callback=lambda _: fill(channel)
        )

    def fill(channel: Any) -> None:
        while state["sent"] < count and state["sent"] - state["done"] < 1000:
            channel.basic_publish("", QUEUE, BODY)
            state["sent"] += 1

    def on_ack(channel: Any, frame: Any) -> None:
        state["done"] = frame.method.delivery_tag if frame.method.multiple else state["done"] + 1
        if state["done"] >= count:
            channel.connection.close()
        else:
            fill(channel)

    connection = pika.SelectConnection(
        pika.URLParameters(url), on_open_callback=on_open, on_close_callback=lambda c, _: c.ioloop.stop()
    )
    connection.ioloop.start()


def pika_consume(url: str, count: int) -> None:
    connection = _pika(url)
    channel = connection.channel()
    channel.basic_qos(prefetch_count=1000)
    got = 0

    def on_message(channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal got
        got += 1
        if got % ACKS == 0:
            channel.basic_ack(method.delivery_tag, multiple=True)
        if got == count:
            channel.stop_consuming()

    channel.basic_consume(QUEUE, on_message)
    channel.start_consuming()
    connection.close()


ROWS = {
    "publish": (ours_publish, pika_publish),
    "publish, confirm each": (ours_confirm, pika_confirm),
    "publish, window 1000": (ours_window, pika_window),
    "consume, acks merged": (ours_consume, pika_consume),
}


def prepare(url: str, ready: int) -> None:
    """An empty queue, or one with messages."""
    connection = _pika(url)
    channel = connection.channel()
    channel.queue_declare(QUEUE, durable=True)
    channel.queue_purge(QUEUE)
    for _ in range(ready):
        channel.basic_publish("", QUEUE, BODY)
    connection.close()


def run(url: str, row: str, which: int, count: int) -> float:
    """Processor seconds of one run in this process."""
    call = ROWS[row][which]
    importlib.import_module(
        "pika" if which else "trio_amqp10.amqp091.client"
    )  # what an import costs varies by more
    began = time.process_time()
    if which == 0:
        trio.run(call, url, count)
    else:
        call(url, count)
    return time.process_time() - began


def measured(url: str, row: str, which: int, count: int) -> float:
    """The same in a process of its own."""
    if row.startswith("consume"):
        prepare(url, count)
        time.sleep(0.5)
    else:
        prepare(url, 0)
    command = [
        sys.executable,
        "-m",
        "bench.amqp091",
        url,
        "--row",
        row,
        "--which",
        str(which),
        "--count",
        str(count),
    ]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)


def main() -> None:
    """Print microseconds a message of both clients, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--row")
    parser.add_argument("--which", type=int)
    parser.add_argument("--count", type=int, default=LONG)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.which is not None:
        sys.stdout.write(str(run(given.url, given.row, given.which, given.count)))
        return
    for row in ROWS if given.row is None else [given.row]:
        costs: tuple[list[float], list[float]] = ([], [])
        for _ in range(given.rounds):
            for which in (0, 1):
                short, long = (measured(given.url, row, which, count) for count in (SHORT, LONG))
                costs[which].append((long - short) / (LONG - SHORT) * 1e6)
        ours, theirs = (statistics.median(each) for each in costs)
        sys.stdout.write(
            f"{row:24} ours {ours:6.1f} us   pika {theirs:6.1f} us   ratio {ours / theirs:.2f}\n"
        )


if __name__ == "__main__":
    main()
