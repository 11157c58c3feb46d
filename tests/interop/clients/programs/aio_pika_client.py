"""aio-pika as a client of the table, each call to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aio_pika
from scenarios import Client091, Got, main, properties_091

if TYPE_CHECKING:
    from collections.abc import Callable

loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)


def run(call: Callable[[], Any]) -> Any:
    """Make the awaitable where the loop runs, and wait for it."""

    async def wait() -> Any:
        return await asyncio.wait_for(call(), 20)

    return loop.run_until_complete(wait())


class AioPika(Client091):
    def __init__(self, url: str, heartbeat: int = 0) -> None:
        self.connection = run(lambda: aio_pika.connect(f"{url}/?heartbeat={heartbeat or 60}"))
        self.channel = run(lambda: self.connection.channel())
        self.queues = {}

    def declare(self, queue: str) -> None:
        self.queues[queue] = run(lambda: self.channel.declare_queue(queue, durable=True))

    def send(self, queue: str, body: bytes, properties: dict[str, Any]) -> None:
        properties = {name: value for name, value in properties.items() if name != "durable"}
        if "expiration" in properties:
            properties["expiration"] = int(properties["expiration"]) / 1000
        message = aio_pika.Message(body, **properties)
        run(lambda: self.channel.default_exchange.publish(message, queue))

    def get(self, queue: str) -> Got:
        message = run(lambda: self._next(queue))
        properties = {name: getattr(message, name) for name in properties_091(0)}
        if properties["expiration"] is not None:
            properties["expiration"] = str(round(properties["expiration"] * 1000))
        return Got(
            message.body,
            properties,
            lambda: run(message.ack),
            lambda: run(lambda: message.nack(requeue=True)),
            message.redelivered,
        )

    async def _next(self, queue: str) -> Any:
        while (message := await self.queues[queue].get(fail=False)) is None:  # noqa: ASYNC110 - it asks the broker
            await asyncio.sleep(0.05)
        return message

    def wait(self, seconds: float) -> None:
        run(lambda: asyncio.sleep(seconds))

    def close(self) -> None:
        run(self.connection.close)


if __name__ == "__main__":
    main(AioPika)
