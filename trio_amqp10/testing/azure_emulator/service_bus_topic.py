"""ServiceBusTopic: a topic whose subscriptions are declared in advance.

Every message goes to each subscription whose rules pass it, and gets a number of its own there. A message
that is to come later waits here, and goes to the subscriptions that there are by then.

Knows entities; knows no links.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trio_amqp10.container.nodes.node import Node

from .batch_unpacking import take_in
from .entity import Entity, take_records
from .entity_messages import EntityMessages
from .entity_options import EntityOptions

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.clock import Clock
    from trio_amqp10.container.nodes.deadline_timer import DeadlineTimer
    from trio_amqp10.container.nodes.node import Inlet

    from .stored_message import StoredMessage

__all__ = ["ServiceBusTopic"]


class ServiceBusTopic(Node):
    """Hands messages on to its subscriptions.

    Args:
        address: what links name to reach it.
        clock: what tells when a message is due.
        deadline_timer: wakes it when something is due.

    Attributes:
        messages: messages that are to come later.
    """

    accepts_senders = True

    def __init__(self, address: str, clock: Clock, deadline_timer: DeadlineTimer) -> None:
        super().__init__(address)
        self.messages: EntityMessages = EntityMessages(EntityOptions(), clock, self._on_available, None)
        self._deadline_timer = deadline_timer
        self._subscriptions: list[Entity] = []

    def subscribe(self, entity: Entity) -> None:
        """Messages go there too from now on, as its rules say."""
        self._subscriptions.append(entity)

    def on_arrivals(self, inlet: Inlet) -> None:
        self.sweep()
        take = partial(take_records, check=self.check, receive=self.receive)
        while (arrival := inlet.take()) is not None:
            take_in(arrival, take)

    def check(self, record: StoredMessage) -> None:
        """Raise ``RefusedError`` if a subscription that wants it cannot hold it."""
        for entity in self._subscribed(record):
            entity.check(record)

    def receive(self, record: StoredMessage) -> int:
        """Hand a message on, now or when it is due; returns its number here."""
        number = self.messages.enqueue(record)
        self._deadline_timer.check()
        return number

    def _on_available(self, lane: str | None) -> None:
        held = self.messages.take(lane)
        assert held is not None
        self.messages.lock(held).accepted()  # it is in the hands of the subscriptions
        for entity in self._subscribed(held.record):
            copied = held.record.copy()
            copied.origin = copied.number
            entity.receive(copied)

    def _subscribed(self, record: StoredMessage) -> list[Entity]:
        """The subscriptions that are to have a message."""
        message = record.message
        return [
            entity for entity in self._subscriptions if entity.rules is None or entity.rules.passes(message)
        ]

    def sweep(self) -> None:
        """Do what is due."""
        self.messages.sweep()

    def next_deadline(self) -> float:
        """When ``sweep`` has something to do; infinite for never."""
        return self.messages.next_deadline()
