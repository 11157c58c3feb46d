"""``amqp10 demo --dialect all``: one message that goes round, from protocol to protocol, through the queues of one container."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_fast
from trio_amqp10.peer.wires import DRAFT_2010

from .demo_output import show, show_frames

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .command_runner import Interrupts

    Relay = Callable[[str, str, str], Awaitable[str]]

__all__ = ["RELAYS", "demo_round"]

_HOST: Final = "127.0.0.1"
_BODY: Final = b"once around"
_HEADERS: Final = {"colour": "green"}


async def demo_round(frames: bool, interrupts: Interrupts) -> None:  # noqa: ARG001 - it is cancelled whole
    """Send a message by AMQP 1.0, pass it on by each of the other protocols, receive it by 1.0, and show it at each."""
    container = amqp.Container("demo")
    hops = [f"hop-{number}" for number in range(1, len(RELAYS) + 2)]
    for hop in hops:
        container.add_queue(hop)
    if frames:
        show_frames()
    async with trio.open_nursery() as nursery:
        where = await _listen(nursery, container, "all")
        draft = await _listen(nursery, container, [DRAFT_2010])
        told = ", ".join(name for name in RELAYS if name != DRAFT_2010)
        show(f"A container listens on {where}, where it speaks AMQP 1.0, {told},")
        show(f"and on {draft}, where it speaks {DRAFT_2010} in place of 1.0.\n")
        async with amqp.open_connection(f"amqp://{where}", sasl=amqp.sasl.Anonymous()) as connection:
            async with connection.open_sender(hops[0]) as sender:
                await sender.send(
                    amqp.Message(_BODY, durable=True, priority=7, application_properties=dict(_HEADERS))
                )
            _tell("1.0", f"sent to {hops[0]}: {_BODY!r}, durable, priority 7, {_HEADERS}")
            for (name, relay), take, put in zip(RELAYS.items(), hops, hops[1:], strict=False):
                passed = await relay(draft if name == DRAFT_2010 else where, take, put)
                _tell(name, f"{passed}; passed on to {put}")
            async with connection.open_receiver(hops[-1], credit=0) as receiver:
                delivery = await receiver.receive()
                delivery.accept()
            got = delivery.message
            headers = dict(got.application_properties)
            _tell("1.0", f"{got.body!r}, {_kept(got.durable)}, priority {got.priority}, {headers}")
        nursery.cancel_scope.cancel()
    show("\nOne message, round through every protocol that this library dials.")


async def _listen(nursery: trio.Nursery, container: amqp.Container, dialects: str | list[str]) -> str:
    """Host and port of a listener."""
    serve = partial(container.serve, f"amqp://{_HOST}:0", dialects=dialects)
    listeners: list[amqp.Listener] = await nursery.start(serve)
    return f"{_HOST}:{listeners[0].port}"


def _tell(name: str, text: str) -> None:
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
    DRAFT_2010: _by_the_draft,
}
"""What passes a message on from one queue to another, by the protocol that it speaks."""
