"""pika's blocking connection as a client of the table."""

from __future__ import annotations

from typing import Any

import pika
from scenarios import Client091, Got, main, properties_091


class Pika(Client091):
    def __init__(self, url: str, heartbeat: int = 0) -> None:
        parameters = pika.URLParameters(url)
        parameters.heartbeat = heartbeat
        self.connection = pika.BlockingConnection(parameters)
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()

    def properties(self, number: int) -> dict[str, Any]:
        properties = properties_091(number)
        del properties["headers"]["half"]  # it writes no floats
        return properties

    def declare(self, queue: str) -> None:
        self.channel.queue_declare(queue, durable=True)

    def send(self, queue: str, body: bytes, properties: dict[str, Any]) -> None:
        properties = {name: value for name, value in properties.items() if name != "durable"}
        self.channel.basic_publish("", queue, body, pika.BasicProperties(**properties), mandatory=True)

    def get(self, queue: str) -> Got:
        method, properties, body = next(self.channel.consume(queue, inactivity_timeout=10))
        assert method is not None, "no message came in 10 s"
        return Got(
            body,
            vars(properties),
            lambda: self.channel.basic_ack(method.delivery_tag),
            lambda: self.channel.basic_nack(method.delivery_tag, requeue=True),
            method.redelivered,
        )

    def wait(self, seconds: float) -> None:
        self.connection.sleep(seconds)

    def close(self) -> None:
        self.connection.close()


if __name__ == "__main__":
    main(Pika)
