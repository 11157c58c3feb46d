"""Qpid Proton's blocking connection as a client of the table."""

from __future__ import annotations

import time
import uuid
from typing import Any
from urllib.parse import unquote, urlsplit

from proton import Delivery, Message, symbol, ulong
from proton.utils import BlockingConnection
from scenarios import Client, Got, main


class Proton(Client):
    heartbeat = 2  # it announces half of it, and a container takes no less than a second

    def __init__(self, url: str, heartbeat: int = 0) -> None:
        parts = urlsplit(url)
        login = (
            {"user": unquote(parts.username), "password": unquote(parts.password)} if parts.username else {}
        )
        self.connection = BlockingConnection(
            f"amqp://{parts.hostname}:{parts.port}",
            timeout=20,
            heartbeat=heartbeat or None,
            allowed_mechs="PLAIN" if login else "ANONYMOUS",
            allow_insecure_mechs=True,
            **login,
        )
        self.count = 0
        self.senders = {}
        self.receivers = {}

    def properties(self, number: int) -> dict[str, Any]:
        identity = (f"id-{number}", ulong(number), uuid.UUID(int=number), b"%d" % number)[number % 4]
        return {
            "id": identity,
            "user_id": b"guest",
            "subject": f"s{number}",
            "reply_to": f"r{number}",
            "correlation_id": f"c{number}",
            "content_type": symbol("text/plain"),
            "content_encoding": symbol("utf-8"),
            "expiry_time": 4_000_000_000.0 + number,
            "creation_time": 1_000_000_000.0 + number,
            "group_id": f"g{number}",
            "group_sequence": number,
            "reply_to_group_id": f"h{number}",
            "durable": True,
            "priority": 5,
            "properties": {
                "text": f"t{number}",
                "number": number,
                "large": 2**40 + number,
                "negative": -1 - number,
                "true": True,
                "half": number + 0.5,
                "octets": b"%d" % number,
                "id": uuid.UUID(int=number),
                "none": None,
            },
        }

    def declare(self, queue: str) -> None:
        self.count += 1  # a link of the same name would end the first
        self.senders[queue] = self.connection.create_sender(queue, name=f"sender-{self.count}")
        self.receivers[queue] = self.connection.create_receiver(queue, name=f"receiver-{self.count}")

    def send(self, queue: str, body: bytes, properties: dict[str, Any]) -> None:
        properties = {name: value for name, value in properties.items() if name != "delivery_mode"}
        self.senders[queue].send(Message(body, inferred=True, **properties))

    def get(self, queue: str) -> Got:
        receiver = self.receivers[queue]
        message = receiver.receive(timeout=10)
        properties = {name: getattr(message, name) for name in self.properties(0)}
        properties["id"] = _octets(properties["id"])
        body = bytes(message.body)
        return Got(
            body,
            properties,
            receiver.accept,
            lambda: self._fail(receiver),
            message.delivery_count > 0,
            message.first_acquirer,
        )

    @staticmethod
    def _fail(receiver: Any) -> None:
        """Put the message back as one that failed: ``release`` does not say so."""
        delivery = receiver.fetcher.unsettled.popleft()
        delivery.local.failed = True
        delivery.update(Delivery.MODIFIED)
        delivery.settle()

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        try:
            self.connection.wait(lambda: time.monotonic() > until, timeout=seconds)
        except Exception as late:
            if "timed out" not in str(late):
                raise

    def close(self) -> None:
        self.connection.close()


def _octets(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


if __name__ == "__main__":
    main(Proton)
