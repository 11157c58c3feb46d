"""What the tests of the stand-in for RabbitMQ have in common."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Ask = Callable[..., Awaitable[tuple[int, Any]]]


PAIRED = {Symbol("paired"): True}


@asynccontextmanager
async def asking(conn: amqp.Connection) -> AsyncGenerator[Ask]:
    """What makes a request and gives status and body of its answer."""
    async with (
        conn.open_sender("/management", name="pair", properties=PAIRED) as sender,
        conn.open_receiver(
            "/management", name="pair", properties=PAIRED, target=amqp.Target(address="/management")
        ) as receiver,
    ):

        async def ask(method: str, path: str, body: Any = None) -> tuple[int, Any]:
            await sender.send(
                amqp.Message(amqp.Value(body), subject=method, to=path, reply_to="$me", message_id="7")
            )
            delivery = await receiver.receive()
            answer = delivery.message
            assert (answer.correlation_id, answer.application_properties) == ("7", {"http:response": "1.1"})
            return int(answer.subject or ""), answer.body

        yield ask


@asynccontextmanager
async def client(broker: RabbitMQ | None = None) -> AsyncGenerator[tuple[amqp.Connection, Ask]]:
    broker = broker or RabbitMQ()
    async with broker.container.connect() as conn, asking(conn) as ask:
        yield conn, ask
