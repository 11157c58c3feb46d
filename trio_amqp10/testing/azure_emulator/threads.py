"""Run the Azure emulators in a thread, for programs that do not use trio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_amqp10.testing.name_arguments import names_in, options_by_name
from trio_amqp10.testing.threads import in_thread

from . import EventHubs, HubOptions, ServiceBus

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from contextlib import AbstractContextManager

    from trio_amqp10.amqp10.peer.listen import Listener


def service_bus(
    queues: Iterable[str] = (),
    topics: Mapping[str, Iterable[str]] | Iterable[str] = (),
    *,
    bus: ServiceBus | None = None,
) -> AbstractContextManager[str]:
    """Emulate Service Bus: ``with service_bus(["orders"]) as connection_string``.

    It listens at a port of this machine, without TLS, as the development emulator does, in its own thread.

    Args:
        queues: the queues to add.
        topics: the names of the topics, or a mapping of each to the names of its subscriptions.
        bus: your own emulator, for example with entities of other rules; a new one if None.

    Returns:
        A context manager, whose value is the connection string for ``ServiceBusClient.from_connection_string``.
    """
    made = ServiceBus() if bus is None else bus
    for queue in names_in(queues, "queues"):
        made.add_queue(queue)
    for topic, subscriptions in options_by_name(topics, "topics", ()).items():
        made.add_topic(topic)
        for subscription in names_in(subscriptions, topic):
            made.add_subscription(topic, subscription)
    return in_thread(_served(made), "amqp10 service bus")


def event_hubs(
    hubs: Mapping[str, int] | Iterable[str] = (), *, namespace: EventHubs | None = None
) -> AbstractContextManager[str]:
    """Emulate Event Hubs: ``with event_hubs({"clicks": 2}) as connection_string``.

    It listens at a port of this machine, without TLS, as the development emulator does, in its own thread.

    Args:
        hubs: the names of the hubs, each with the default number of partitions, or a mapping of names to numbers of partitions.
        namespace: your own emulator, for example with hubs of other rules; a new one if None.

    Returns:
        A context manager, whose value is the connection string for ``EventHubProducerClient.from_connection_string`` and
        similar clients, which also need ``eventhub_name``.
    """
    made = EventHubs() if namespace is None else namespace
    for hub, partitions in options_by_name(hubs, "hubs", HubOptions().partition_count).items():
        made.add_hub(hub, HubOptions(partition_count=partitions))
    return in_thread(_served(made), "amqp10 event hubs")


@asynccontextmanager
async def _served(namespace: ServiceBus | EventHubs) -> AsyncGenerator[str]:
    async with trio.open_nursery() as nursery:
        serve = partial(namespace.container.serve, "amqp://127.0.0.1:0")
        listeners: list[Listener] = await nursery.start(serve)
        yield namespace.connection_string(listeners[0].port)
        nursery.cancel_scope.cancel()
