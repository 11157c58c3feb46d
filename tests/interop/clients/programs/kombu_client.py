"""kombu, on py-amqp, as a client of the table."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import kombu
from scenarios import Client091, Got, main


class Kombu(Client091):
    def __init__(self, url: str, heartbeat: int = 0) -> None:
        self.connection = kombu.Connection(
            url, heartbeat=heartbeat, transport_options={"confirm_publish": True}, connect_timeout=10
        )
        self.connection.connect()
        self.channel = self.connection.channel()
        self.queues = {}
        self.messages = []

    def declare(self, queue: str) -> None:
        self.queues[queue] = kombu.Queue(queue, durable=True, channel=self.channel)
        self.queues[queue].declare()

    def send(self, queue: str, body: bytes, properties: dict[str, Any]) -> None:
        properties = {name: value for name, value in properties.items() if name != "durable"}
        if "expiration" in properties:
            properties["expiration"] = int(properties["expiration"]) / 1000
        kombu.Producer(self.channel).publish(
            body,
            routing_key=queue,
            **{"content_type": "application/data", "content_encoding": "binary", **properties},
        )

    def get(self, queue: str) -> Got:
        deadline = time.monotonic() + 10
        while (message := self.queues[queue].get()) is None:
            assert time.monotonic() < deadline, "no message came in 10 s"
            time.sleep(0.05)
        found = dict(message.properties)
        for name in ("content_type", "content_encoding", "headers"):
            found[name] = getattr(message, name)
        body = message.body if isinstance(message.body, bytes) else message.body.encode()
        return Got(body, found, message.ack, message.requeue, message.delivery_info["redelivered"])

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                self.connection.drain_events(timeout=min(left, 0.4))
            if self.connection.heartbeat:
                self.connection.heartbeat_check()

    def close(self) -> None:
        self.connection.close()


if __name__ == "__main__":
    main(Kombu)
