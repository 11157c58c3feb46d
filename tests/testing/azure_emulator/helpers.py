"""What the tests of the stand-ins for Service Bus and Event Hubs have in common."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Described, Timestamp
from trio_amqp10.core.tokens import sign_sas
from trio_amqp10.testing.azure_emulator import EntityOptions, EventHubs, HubOptions, ServiceBus
from trio_amqp10.testing.azure_emulator.constants import EPOCH, SELECTOR
from trio_amqp10.testing.azure_emulator.namespace import KEY, KEY_NAME, Namespace

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


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


FIRST = "clicks/ConsumerGroups/$Default/Partitions/0"


def hubs_of(**options: Any) -> EventHubs:
    """One with the hub ``clicks``, on a clock that jumps with trio's."""
    with_wall()
    hubs = EventHubs("namespace", wall_clock=wall)
    hubs.add_hub("clicks", HubOptions(**options))
    return hubs


def reading(
    conn: amqp.Connection,
    selector: Any = "amqp.annotation.x-opt-offset > '-1'",
    address: str = FIRST,
    epoch: Any = None,
    **options: Any,
) -> Any:
    spec = None if selector is None else {SELECTOR: Described(SELECTOR, selector)}
    source = Source(address=address, filter=spec)
    properties = None if epoch is None else {EPOCH: epoch}
    return conn.open_receiver(address, source=source, properties=properties, **options)


async def bodies(receiver: amqp.Receiver) -> list[Any]:
    """All that a receiver can have now."""
    return [each.message.body for each in await receiver.drain()]


async def seen(conn: amqp.Connection, selector: Any, address: str = FIRST) -> list[Any]:
    async with reading(conn, selector, address, credit=0) as receiver:
        receiver.grant(100)
        return await bodies(receiver)


@asynccontextmanager
async def opened(**options: Any) -> AsyncGenerator[tuple[EventHubs, amqp.Connection]]:
    hubs = hubs_of(**options)
    async with open_client(hubs) as conn:
        yield hubs, conn


async def read(
    conn: amqp.Connection, kind: str, name: Any = "clicks", operation: str = "READ", **more: Any
) -> Any:
    """What ``$management`` says: the body, or status and condition."""
    said = {"operation": operation, "type": f"com.microsoft:{kind}", "name": name, **more}
    async with conn.open_requester("$management", direct=True) as requester:
        reply = await requester.request(amqp.Message(None, application_properties=said))
    found = reply.application_properties
    return reply.body if found["status-code"] == 200 else (found["status-code"], found["error-condition"])


def later(body: Any, seconds: float, **more: Any) -> amqp.Message:
    due = Timestamp(round((wall() + seconds) * 1000))
    return amqp.Message(body, annotations={"x-opt-scheduled-enqueue-time": due}, **more)


def wish(*messages: amqp.Message) -> dict[str, Any]:
    return {"messages": [{"message-id": "x", "message": each.to_payload()} for each in messages]}


LOST = "com.microsoft:message-lock-lost"
