"""Emulators of Azure Service Bus and Event Hubs, for tests.

``ServiceBus`` has queues with locks, sequence numbers, deferred and scheduled messages, dead-letter queues and sessions,
and topics with subscriptions. ``EventHubs`` has hubs with partitions, consumer groups and numbered events. Microsoft's
clients can use both like the development emulators. In a test: ``with
trio_amqp10.testing.service_bus(queues=["orders"]) as connection_string``, or ``event_hubs({"clicks": 2})``.
"""

from .entity_options import EntityOptions as EntityOptions
from .entity_options import HubOptions as HubOptions
from .event_hubs_namespace import EventHubs as EventHubs
from .service_bus_namespace import ServiceBus as ServiceBus

__all__ = ["EntityOptions", "EventHubs", "HubOptions", "ServiceBus"]
