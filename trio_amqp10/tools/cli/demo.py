"""``amqp10 demo``: run a container, a sender and a receiver over a real socket."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp

from .demo_output import show, show_frames

if TYPE_CHECKING:
    from .command_runner import Interrupts

_MESSAGES: tuple[Any, ...] = (
    "a string",
    b"octets",
    {"an": "AMQP map", "with": [1, 2.5, None, True]},
    amqp.Message("and one with properties", subject="demo", application_properties={"colour": "green"}),
)


async def demo(frames: bool, interrupts: Interrupts) -> None:  # noqa: ARG001 - an interrupt cancels the whole command
    """Send, receive and make a request, and print each step."""
    container = amqp.Container("demo")
    container.add_queue("greetings")

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:  # pyright: ignore[reportUnusedFunction]  # the container runs it
        return str(message.body).upper()

    if frames:
        show_frames()
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
        url = listeners[0].url
        show(f"A container listens on {url}, with a queue and a function. No broker is involved.")
        async with amqp.open_connection(url, sasl=amqp.sasl.Anonymous()) as connection:
            show(f"A client has connected to the container {connection.remote.container_id!r}.\n")
            await _use_queue(connection)
            await _use_function(connection)
        nursery.cancel_scope.cancel()
    show("Everything arrived, was accepted, and is closed.")


async def _use_queue(connection: amqp.Connection) -> None:
    async with connection.open_sender("greetings") as sender:
        for message in _MESSAGES:
            outcome = await sender.send(message)
            show(f"sent      {_body(message)!r}: {type(outcome).__name__.lower()}")
    async with connection.open_receiver("greetings", credit=0) as receiver:
        for _ in _MESSAGES:
            delivery = await receiver.receive()
            delivery.accept()
            show(f"received  {delivery.message.body!r}")


async def _use_function(connection: amqp.Connection) -> None:
    async with amqp.open_requester(connection, "upper") as requester:
        reply = await requester.request("is anybody there?")
        show(f"asked     'is anybody there?': {reply.body!r}\n")


def _body(message: Any) -> Any:
    return message.body if isinstance(message, amqp.Message) else message
