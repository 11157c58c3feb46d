"""AMQPStorm as a client of the table."""

from __future__ import annotations

import time
from typing import Any

import amqpstorm
from scenarios import Client091, Got, main, properties_091


class Storm(Client091):
    def __init__(self, url: str, heartbeat: int = 0) -> None:
        self.connection = amqpstorm.UriConnection(f"{url}/%2F?heartbeat={heartbeat}&timeout=10")
        self.channel = self.connection.channel()
        self.channel.confirm_deliveries()

    def properties(self, number: int) -> dict[str, Any]:
        properties = properties_091(number)
        properties["message_type"] = properties.pop("type")
        return properties

    def declare(self, queue: str) -> None:
        self.channel.queue.declare(queue, durable=True)

    def send(self, queue: str, body: bytes, properties: dict[str, Any]) -> None:
        properties = {name: value for name, value in properties.items() if name != "durable"}
        assert self.channel.basic.publish(body, queue, properties=properties, mandatory=True)

    def get(self, queue: str) -> Got:
        deadline = time.monotonic() + 10
        while (message := self.channel.basic.get(queue, auto_decode=False)) is None:
            assert time.monotonic() < deadline, "no message came in 10 s"
            time.sleep(0.05)
        found = {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in message.properties.items()
        }
        found["headers"] = _decoded(found.get("headers"))
        return Got(
            message._body,
            found,
            message.ack,
            lambda: message.nack(requeue=True),
            message.redelivered,
        )

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self.connection.close()


def _decoded(value: Any) -> Any:
    """Names and texts as str: with ``auto_decode=False`` they are octets."""
    if isinstance(value, dict):
        return {_decoded(name): _decoded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    main(Storm)
