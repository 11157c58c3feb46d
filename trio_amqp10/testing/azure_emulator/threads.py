"""Run the Azure emulators in a thread, for programs that are not trio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_amqp10.testing.azure_emulator import EventHubs, HubOptions, ServiceBus
from trio_amqp10.testing.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from contextlib import AbstractContextManager

    from trio_amqp10.peer.listen import Listener

__all__ = ["event_hubs", "service_bus"]


def service_bus(
    queues: Iterable[str] = (),
    topics: Mapping[str, Iterable[str]] | None = None,
    *,
    bus: ServiceBus | None = None,
) -> AbstractContextManager[str]:
    """Azure Service Bus in a test: ``with service_bus(queues=["orders"]) as connection_string``.

    It listens at a port of this machine, without TLS, as the development emulator does, in a thread of its own.

    Args:
        queues: the queues that it has.
        topics: the names of the subscriptions of each topic.
        bus: one of yours, with entities that have other rules; a new one if None.

    Returns:
        The connection string for ``ServiceBusClient.from_connection_string``; a context manager gives it.
    """
    made = ServiceBus() if bus is None else bus
    for queue in queues:
        made.add_queue(queue)
    for topic, subscriptions in (topics or {}).items():
        made.add_topic(topic)
        for subscription in subscriptions:
            made.add_subscription(topic, subscription)
    return in_thread(_served(made), "amqp10 service bus")


def event_hubs(
    hubs: Mapping[str, int] | None = None, *, namespace: EventHubs | None = None
) -> AbstractContextManager[str]:
    """Azure Event Hubs in a test: ``with event_hubs({"clicks": 2}) as connection_string``.

    It listens at a port of this machine, without TLS, as the development emulator does, in a thread of its own.

    Args:
        hubs: how many partitions each hub has.
        namespace: one of yours, with hubs that have other rules; a new one if None.

    Returns:
        The connection string for ``EventHubProducerClient.from_connection_string`` and its like, which also want
        ``eventhub_name``; a context manager gives it.
    """
    made = EventHubs() if namespace is None else namespace
    for hub, partitions in (hubs or {}).items():
        made.add_hub(hub, HubOptions(partition_count=partitions))
    return in_thread(_served(made), "amqp10 event hubs")


@asynccontextmanager
async def _served(namespace: ServiceBus | EventHubs) -> AsyncGenerator[str]:
    async with trio.open_nursery() as nursery:
        serve = partial(namespace.container.serve, "amqp://127.0.0.1:0")
        listeners: list[Listener] = await nursery.start(serve)
        yield namespace.connection_string(listeners[0].port)
        nursery.cancel_scope.cancel()
