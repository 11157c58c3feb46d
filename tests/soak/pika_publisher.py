"""Publish persistent messages by pika, each confirmed: ``pika_publisher.py URL QUEUE``; until standard input ends.

Says ``+name`` before each publish, and ``=name`` once it is confirmed; dials again when the connection is lost. Runs in the
environment of the clients, without this project.
"""

from __future__ import annotations

import itertools
import select
import sys
import time

import pika
import pika.exceptions

PERSISTENT = 2


def body_of(name: str) -> bytes:
    """As in ``kills``."""
    return name.encode() * (1 + sum(name.encode()) % 500)


def ended() -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(readable) and not sys.stdin.read(1)


def publish(url: str, queue: str, names: itertools.count[int]) -> None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_delivery()
        while not ended():
            name = f"pika-{next(names)}"
            print(f"+{name}", flush=True)
            properties = pika.BasicProperties(message_id=name, delivery_mode=PERSISTENT)
            channel.basic_publish("", queue, body_of(name), properties, mandatory=True)
            print(f"={name}", flush=True)


def main(url: str, queue: str) -> None:
    names = itertools.count()
    while not ended():
        try:
            publish(url, queue, names)
        except (pika.exceptions.AMQPError, OSError):
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
