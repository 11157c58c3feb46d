"""What the tests of the stand-ins for Service Bus and Event Hubs have in common."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from trio_amqp10.testing.azure_emulator import EntityOptions, ServiceBus
from trio_amqp10.testing.azure_emulator.namespace import KEY, KEY_NAME, Namespace
from trio_amqp10.tokens import sign_sas

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["HOST", "ask", "bus_of", "locking", "open_client", "put", "settle", "wall", "with_wall"]

HOST = "sb://localhost:5672"
_NOW = 1_800_000_000.0
_began = trio.lowlevel.RunVar("began", 0.0)


def wall() -> float:
    """A wall clock that goes with trio's, which begins anywhere."""
    return _NOW + trio.current_time() - _began.get()


def with_wall() -> None:
    """The wall clock begins now."""
    _began.set(trio.current_time())


def bus_of(**queues: EntityOptions | None) -> ServiceBus:
    """One with these queues, on a clock that jumps with trio's."""
    with_wall()
    bus = ServiceBus("namespace", wall_clock=wall)
    for name, options in queues.items():
        bus.add_queue(name, options)
    return bus


@asynccontextmanager
async def open_client(
    namespace: Namespace, name: str = KEY_NAME, key: str = KEY, **options: Any
) -> AsyncGenerator[amqp.Connection]:
    """A connection whose token is good for all entities."""
    async with namespace.container.connect(**options) as conn:
        await conn.put_token(f"{HOST}/", sign_sas(f"{HOST}/", name, key, wall() + 86_400))
        yield conn


async def put(conn: amqp.Connection, address: str, *bodies: Any) -> None:
    async with conn.open_sender(address) as sender:
        for body in bodies:
            await sender.send(body)


def locking(conn: amqp.Connection, address: str, credit: int = 10, **options: Any) -> Any:
    """A receiver that waits for the answer to its outcomes, as those of Microsoft's clients do."""
    return conn.open_receiver(address, credit=credit, guarantee="exactly-once", **options)


async def settle(delivery: amqp.Delivery) -> Any:
    """What the service says to the outcome that was given."""
    await delivery.wait_settled()
    return delivery.remote_state


async def ask(
    conn: amqp.Connection, entity: str, operation: str, body: Any = None, **more: Any
) -> tuple[int, Any]:
    """The status and the body of the reply; the condition, where it is none of success."""
    message = amqp.Message(
        {} if body is None else body,
        application_properties={"operation": f"com.microsoft:{operation}", **more},
        message_id=uuid.uuid4(),
    )
    async with conn.open_requester(f"{entity}/$management") as requester:
        reply = await requester.request(message)
    said = reply.application_properties
    return said["statusCode"], said.get("errorCondition", reply.body)
