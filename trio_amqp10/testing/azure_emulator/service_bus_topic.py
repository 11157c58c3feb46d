"""ServiceBusTopic: a topic whose subscriptions are declared in advance.

Each message goes to each subscription whose rules select it, and gets a number of its own there. A scheduled message waits in
the topic, and goes to the subscriptions that exist when it is due.

Knows entities; knows no links.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trio_amqp10.broker.nodes.node import Node

from .batch_unpacking import take_in
from .duplicate_detection import DuplicateDetection
from .entity import Entity, take_records
from .entity_messages import EntityMessages
from .entity_options import EntityOptions

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.clock import Clock
    from trio_amqp10.broker.nodes.deadline_timer import DeadlineTimer
    from trio_amqp10.broker.nodes.node import Inlet

    from .stored_message import StoredMessage


class ServiceBusTopic(Node):
    """A node that forwards messages to its subscriptions.

    Args:
        address: the address for links.
        clock: the clock for scheduled messages.
        options: the rules of the topic: its time to live, and duplicate detection.
        deadline_timer: the timer that calls ``sweep`` at ``next_deadline``.

    Attributes:
        messages: the scheduled messages.
    """

    accepts_senders = True

    def __init__(
        self, address: str, clock: Clock, options: EntityOptions, deadline_timer: DeadlineTimer
    ) -> None:
        super().__init__(address)
        self.max_message_size: int | None = options.max_message_size_in_kilobytes * 1024
        self._options = options
        self._duplicates = DuplicateDetection(options, clock)
        self.messages: EntityMessages = EntityMessages(EntityOptions(), clock, self._on_available, None)
        self._deadline_timer = deadline_timer
        self._subscriptions: list[Entity] = []

    def subscribe(self, entity: Entity) -> None:
        """Forward the messages that its rules select to this entity too."""
        self._subscriptions.append(entity)

    def on_arrivals(self, inlet: Inlet) -> None:
        self.sweep()
        take = partial(take_records, check=self.check, receive=self.receive)
        while (arrival := inlet.take()) is not None:
            take_in(arrival, take)

    def check(self, record: StoredMessage) -> None:
        """Raise ``RefusedError`` if a subscription selects the message but cannot hold it."""
        for entity, copied in self._copies(record):
            entity.check(copied)

    def receive(self, record: StoredMessage) -> int:
        """Forward a message, now or when it is due; return its number in the topic."""
        earlier = self._duplicates.earlier(record)
        if earlier is not None:
            return earlier
        number = self.messages.enqueue(record)
        self._duplicates.note(record, number)
        self._deadline_timer.check()
        return number

    def _on_available(self, lane: str | None) -> None:
        held = self.messages.take(lane)
        assert held is not None
        self.messages.lock(held).accepted()  # the subscriptions have their copies
        limit = self._options.default_message_time_to_live
        for entity, copied in self._copies(held.record):
            copied.origin = copied.number
            if limit is not None:
                most = round(limit * 1000)
                copied.ttl = most if copied.ttl is None else min(copied.ttl, most)
            entity.receive(copied)

    def _copies(self, record: StoredMessage) -> list[tuple[Entity, StoredMessage]]:
        """Return the subscriptions that select a message, each with its copy or copies."""
        return [
            (entity, copied)
            for entity in self._subscriptions
            for copied in ([record.copy()] if entity.rules is None else entity.rules.copies(record))
        ]

    def sweep(self) -> None:
        """Forward the scheduled messages that are due."""
        self.messages.sweep()

    def next_deadline(self) -> float:
        """Return when ``sweep`` has work; infinite if never."""
        return self.messages.next_deadline()
