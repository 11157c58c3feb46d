"""A declared queue that has the limits of RabbitMQ's.

Programs meet the same behaviour in a test. Knows messages; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from trio_amqp10.broker.nodes.available import AvailableMessages
from trio_amqp10.broker.nodes.held_messages import HeldMessages

from .broker_queue import BrokerQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.nodes.consumers import QueueConsumer
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.entry import Entry
    from trio_amqp10.broker.nodes.node import Arrival, Inlet


class _CountedByBody(AvailableMessages):
    """Available messages of which only the bodies count."""

    __slots__ = ()

    def add(self, entry: Entry) -> None:
        super().add(entry)
        self.octets -= _beside_the_body(entry)

    def take(self, consumer: QueueConsumer, is_over: Callable[[], bool]) -> Entry | None:
        entry = super().take(consumer, is_over)
        if entry is not None:
            self.octets += _beside_the_body(entry)
        return entry

    def remove(self, entry: Entry) -> None:
        super().remove(entry)
        self.octets += _beside_the_body(entry)


def _beside_the_body(entry: Entry) -> int:
    return entry.length - entry.content.body_size


class _HeldByBody(HeldMessages):
    """Held messages whose bound counts bodies."""

    __slots__ = ()

    available_class = _CountedByBody


class RabbitMQQueue(BrokerQueue):
    """A declared queue with these limits of RabbitMQ; see ``BrokerQueue``.

    - A message expires only at the head of the queue; an expired message behind it still counts.
    - A message of AMQP 1.0 has ``first-acquirer`` in its first delivery.
    - If the queue is full, its first message dies, although it has the highest priority.
    - ``x-max-length-bytes`` counts the bodies alone; a body that is larger dies at once.
    """

    expires_at_head = True
    held_class: ClassVar[type[HeldMessages]] = _HeldByBody

    def _hold(
        self,
        content: Content,
        origin: str | None,
        inlet: Inlet | None = None,
        arrival: Arrival | None = None,
    ) -> Entry | None:
        return super()._hold(content.unacquired(), origin, inlet, arrival)

    def _make_room(self, size: int) -> bool:  # noqa: ARG002
        """Return whether a new message may be held; the excess is dropped after it."""
        return self.policy.overflow == "drop-oldest" and not self.held.letters_wait

    def _offer(self, entry: Entry) -> None:
        super()._offer(entry)
        if self._bounded:
            self._drop_excess()

    @property
    def _keeps_all(self) -> bool:
        # The store does not have the sizes of the bodies.
        return self.policy.max_octets is not None

    def _first_to_drop(self) -> Entry | None:
        while (entry := self._available.head()) is None and self.page_in_now():
            pass
        return entry
