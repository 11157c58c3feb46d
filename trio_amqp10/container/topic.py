"""Topic: every message goes to every receiver there is, each by itself (3.3).

A receiver gets what is sent while its link is attached and passes its filter, and nothing of what was
before. Its outcomes are its own: what it releases, it gets again, and nobody else. Behind each
receiver is a queue that is its alone and goes with its link; all of these queues hold the same
messages, and no copies.

Senders never wait for a receiver. One that falls too far behind is detached with
``amqp:resource-limit-exceeded``: it then knows that it has missed something, and the memory that
it takes has an end.

Knows messages; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import Condition, LocalProtocolError

from .clock import Clock
from .hops import for_next_hop
from .node import Inlet, Node, Outlet
from .queue import Queue, accept
from .takers import Consumer
from .terms import terms_of

if TYPE_CHECKING:
    from trio_amqp10.message import Message

__all__ = ["MAX_BACKLOG", "Topic"]

MAX_BACKLOG: Final = 10_000
"""Messages that a receiver may be behind, unless told otherwise."""


class _Subscription(Queue):
    """What one receiver has yet to get, or to answer for."""

    def add_outlet(self, outlet: Outlet) -> None:
        # What its filter does not pass is not here, and to look without taking would only mean to be shown
        # the same again.
        Node.add_outlet(self, outlet)
        self._consumers[outlet] = Consumer(outlet)


class Topic(Node):
    """Hands every message on to all who receive from it, and keeps none for those who come later.

    Args:
        address: what links name to reach it.
        max_backlog: messages that a receiver may be behind, those that it has not settled among them,
            before it is detached with ``amqp:resource-limit-exceeded``; None for any number.
        clock: what messages expire by.

    Raises:
        LocalProtocolError: ``max_backlog`` is not at least 1.
    """

    takes = gives = filters = True
    capabilities = ("topic",)

    def __init__(
        self, address: str, *, max_backlog: int | None = MAX_BACKLOG, clock: Clock | None = None
    ) -> None:
        super().__init__(address)
        if max_backlog is not None and max_backlog < 1:
            raise LocalProtocolError(
                f"max_backlog={max_backlog}: at least 1 is possible, or None for any number"
            )
        self.max_backlog = max_backlog
        self._clock = clock or Clock()
        self._subscriptions: dict[Outlet, _Subscription] = {}

    def on_arrivals(self, inlet: Inlet) -> None:
        origin = inlet.peer.container_id
        while (arrival := inlet.take()) is not None:
            self._publish(for_next_hop(arrival.message), origin)
            accept(arrival)

    def _publish(self, message: Message, origin: str | None) -> None:
        terms = terms_of(message)
        for outlet, subscription in list(self._subscriptions.items()):
            wants = outlet.wants
            if wants is not None and not wants(message, origin):
                continue
            if self._has_room(subscription):
                subscription.put(message, origin, terms)
            else:
                outlet.close(
                    Condition.RESOURCE_LIMIT_EXCEEDED.value,
                    f"more than max_backlog={self.max_backlog} messages behind {self.address!r}",
                )

    def _has_room(self, subscription: _Subscription) -> bool:
        limit = self.max_backlog
        if limit is not None and len(subscription) >= limit:
            subscription.sweep()
            return len(subscription) < limit
        return True

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        subscription = self._subscriptions[outlet] = _Subscription(self.address, clock=self._clock)
        subscription.add_outlet(outlet)

    def on_demand(self, outlet: Outlet) -> None:
        subscription = self._subscriptions.get(outlet)
        if subscription is not None:
            subscription.on_demand(outlet)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        subscription = self._subscriptions.pop(outlet, None)
        if subscription is not None:
            subscription.remove_outlet(outlet)
            subscription.close()  # what comes back by its leases has nobody to go to

    def __repr__(self) -> str:
        return f"<Topic {self.address!r} senders={len(self.inlets)} receivers={len(self.outlets)}>"
