"""Our end of an interop run, written as a user would: only the public API, no detail of the protocol."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp

from .corpus import Digest, Item, corpus

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

SECONDS = 60.0


def within(function: Any, *arguments: Any) -> Any:
    """Run an async function to its end, or fail after a minute of real time."""

    async def limited() -> Any:
        with trio.fail_after(SECONDS):
            return await function(*arguments)

    return trio.run(limited)


def guarantee(presettled: bool) -> Any:
    return "at-most-once" if presettled else "at-least-once"


def to_message(one: Item) -> amqp.Message:
    return amqp.Message(one.body, message_id=one.message_id, application_properties=one.properties)


async def send_corpus(sender: amqp.Sender, seed: int, count: int) -> dict[str, int]:
    """Send without waiting for each; then wait for every outcome, and count them (none where presettled)."""
    deliveries = [await sender.transmit(to_message(one)) for one in corpus(seed, count)]
    outcomes: dict[str, int] = {}
    for delivery in deliveries:
        outcome = await delivery.outcome()
        if outcome is not None:
            name = type(outcome).__name__.lower()
            outcomes[name] = outcomes.get(name, 0) + 1
    return outcomes


async def receive_corpus(receiver: amqp.Receiver, count: int, digest: Digest | None = None) -> dict[str, Any]:
    """Receive and accept so many; says what ``proton_peer.py receive`` says."""
    digest = digest or Digest()
    settled = 0
    async for delivery in receiver:
        message = delivery.message
        digest.add(message.message_id, message.application_properties, message.body)
        if delivery.settled:
            settled += 1
        else:
            delivery.accept()
        if digest.count == count:
            break
    return {"received": digest.count, "settled": settled, "digest": digest.hexdigest()}


async def send_to(
    url: str, address: str, count: int, presettled: bool, seed: int = 1, **options: Any
) -> dict[str, int]:
    """As a client: dial, send the corpus, leave."""
    async with (
        amqp.open_connection(url, **options) as connection,
        connection.open_sender(address, guarantee=guarantee(presettled)) as sender,
    ):
        return await send_corpus(sender, seed, count)


async def receive_from(
    url: str, address: str, count: int, presettled: bool, credit: int = 100, **options: Any
) -> dict[str, Any]:
    """As a client: dial, receive so many, leave."""
    async with (
        amqp.open_connection(url, **options) as connection,
        connection.open_receiver(address, guarantee=guarantee(presettled), credit=credit) as receiver,
    ):
        return await receive_corpus(receiver, count)


class Node:
    """As a service: takes whatever a peer sends, gives the corpus on ``generate-COUNT-SEED``; ``gone`` once a peer has left."""

    def __init__(self) -> None:
        self.url = ""
        self.gone = trio.Event()
        self.received: dict[str, dict[str, Any]] = {}
        self.outcomes: dict[str, dict[str, int]] = {}

    async def handle(self, connection: amqp.Connection) -> None:
        try:
            async with trio.open_nursery() as nursery:
                async for link in connection.incoming_links():
                    if isinstance(link, amqp.IncomingReceiver):
                        nursery.start_soon(self.take, link)
                    else:
                        nursery.start_soon(self.give, link)
        finally:
            self.gone.set()

    async def take(self, link: amqp.IncomingReceiver) -> None:
        address = str(link.address)
        digest = Digest()
        settled = 0
        async with link.accept(credit=100) as receiver:
            async for delivery in receiver:  # ends when the peer detaches
                message = delivery.message
                digest.add(message.message_id, message.application_properties, message.body)
                if delivery.settled:
                    settled += 1
                else:
                    delivery.accept()
                self.received[address] = {
                    "received": digest.count,
                    "settled": settled,
                    "digest": digest.hexdigest(),
                }

    async def give(self, link: amqp.IncomingSender) -> None:
        address = str(link.address)
        _, count, seed = address.split("-")
        async with link.accept() as sender:
            self.outcomes[address] = await send_corpus(sender, int(seed), int(count))


@asynccontextmanager
async def serving(scheme: str = "amqp", **options: Any) -> AsyncGenerator[Node, None]:
    """A node of ours on a port of the loopback."""
    node = Node()
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(
            partial(amqp.serve, node.handle, f"{scheme}://127.0.0.1:0", **options)
        )
        node.url = listeners[0].url
        yield node
        nursery.cancel_scope.cancel()
