"""``amqp10 demo --dialect all``: pass a message through every protocol.

Each protocol of a container takes the message from one queue and puts it into the next.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast
from trio_amqp10.amqp10.peer.wires import DRAFT_2010

from .demo_output import show, show_frames

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .command_runner import Interrupts

    Relay = Callable[[str, str, str], Awaitable[str]]

_HOST: Final = "127.0.0.1"
_BODY: Final = b"once around"
_HEADERS: Final = {"colour": "green"}


async def demo_round(frames: bool, interrupts: Interrupts) -> None:  # noqa: ARG001 - an interrupt cancels the whole command
    """Send a message by 1.0, move it by each other protocol, and receive it by 1.0."""
    container = amqp.Container("demo")
    hops = [f"hop-{number}" for number in range(1, len(RELAYS) + 2)]
    for hop in hops:
        container.add_queue(hop)
    if frames:
        show_frames()
    async with trio.open_nursery() as nursery:
        where = await _listen(nursery, container, "all")
        draft = await _listen(nursery, container, [DRAFT_2010])
        others = ", ".join(name for name in RELAYS if name != DRAFT_2010)
        show(f"A container listens on {where}, with AMQP 1.0, {others},")
        show(f"and on {draft}, with {DRAFT_2010} instead of 1.0.\n")
        async with amqp.open_connection(f"amqp://{where}", sasl=amqp.sasl.Anonymous()) as connection:
            async with connection.open_sender(hops[0]) as sender:
                await sender.send(
                    amqp.Message(_BODY, durable=True, priority=7, application_properties=dict(_HEADERS))
                )
            _show_step("1.0", f"sent to {hops[0]}: {_BODY!r}, durable, priority 7, {_HEADERS}")
            for (name, relay), take, put in zip(RELAYS.items(), hops, hops[1:], strict=False):
                passed = await relay(draft if name == DRAFT_2010 else where, take, put)
                _show_step(name, f"{passed}; passed on to {put}")
            async with connection.open_receiver(hops[-1], credit=0) as receiver:
                delivery = await receiver.receive()
                delivery.accept()
            got = delivery.message
            headers = dict(got.application_properties)
            _show_step("1.0", f"{got.body!r}, {_kept(got.durable)}, priority {got.priority}, {headers}")
        nursery.cancel_scope.cancel()
    show("\nOne message, passed through every protocol of this library.")


async def _listen(nursery: trio.Nursery, container: amqp.Container, dialects: str | list[str]) -> str:
    """Serve on a free port, and return ``HOST:PORT``."""
    serve = partial(container.serve, f"amqp://{_HOST}:0", dialects=dialects)
    listeners: list[amqp.Listener] = await nursery.start(serve)
    return f"{_HOST}:{listeners[0].port}"


def _show_step(name: str, text: str) -> None:
    show(f"{name:16}{text}")


def _kept(durable: object) -> str:
    return "durable" if durable else "not durable"


async def _by_0_9_1(where: str, take: str, put: str) -> str:
    async with (
        amqp091.open_connection(f"amqp091://{where}") as connection,
        connection.open_channel(prefetch=1) as channel,
        connection.open_publisher() as publisher,
        channel.queue(take).consume() as consumer,
    ):
        delivery = await consumer.receive()
        await publisher.publish("", put, delivery.body, properties=delivery.properties, mandatory=True)
        delivery.ack()
    return _summary(delivery)


async def _by_10_3(where: str, take: str, put: str) -> str:
    async with (
        amqp_10_3.open_connection(f"amqp103://{where}") as connection,
        connection.open_transaction(prefetch=1) as channel,
        channel.queue(take).consume() as consumer,
    ):
        delivery = await consumer.receive()
        await channel.publish("", put, delivery.body, properties=delivery.properties)
        delivery.ack()
    return _summary(delivery)


def _summary(delivery: amqp091.Delivery | amqp_10_3.Delivery) -> str:
    found = delivery.properties
    kept = _kept(found.delivery_mode == 2)
    return f"basic.deliver {delivery.body!r}, {kept}, priority {found.priority}, {dict(delivery.headers)}"


async def _by_amqp_fast(where: str, take: str, put: str) -> str:
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(amqp_fast.open_connection(f"amqp-fast://{where}"))
        channel = await stack.enter_async_context(connection.open_channel())
        source = await stack.enter_async_context(channel.open_handle(take))
        target = await stack.enter_async_context(channel.open_handle(put))
        await source.consume(prefetch=1)
        delivery = await source.receive()
        await target.send(delivery.message)
        delivery.ack()
    head = delivery.head
    return f"HANDLE NOTIFY {delivery.body!r}, {_kept(head.persistent)}, priority {head.priority}, {dict(head.headers)}"


async def _by_the_draft(where: str, take: str, put: str) -> str:
    dial = amqp.open_connection(f"amqp://{where}", dialect=DRAFT_2010, sasl=amqp.sasl.Anonymous())
    async with (
        dial as connection,
        connection.open_sender(put) as sender,
        connection.open_receiver(take, credit=0) as receiver,
    ):
        delivery = await receiver.receive()
        await sender.send(delivery.message)
        delivery.accept()
    got = delivery.message
    return f"{got.body!r}, {_kept(got.durable)}, priority {got.priority}, {dict(got.application_properties)}"


RELAYS: Final[dict[str, Relay]] = {
    "0-9-1": _by_0_9_1,
    "amqp-fast": _by_amqp_fast,
    "10.3": _by_10_3,
    DRAFT_2010: _by_the_draft,
}
"""The function of each protocol that moves a message from one queue to another."""
