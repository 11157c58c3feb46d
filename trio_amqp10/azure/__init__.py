"""What Azure Service Bus is to its clients, as far as their tests need it, in a container.

``ServiceBus`` has queues with locks, sequence numbers, deferred and scheduled messages, dead-letter queues and sessions,
and topics with subscriptions; Microsoft's clients take it for their development emulator. In a test that
is ``with trio_amqp10.testing.service_bus(queues=["orders"]) as connection_string``.
"""

from .options import EntityOptions as EntityOptions
from .service import ServiceBus as ServiceBus

__all__ = ["EntityOptions", "ServiceBus"]
