"""Subscription: the queue of one subscription to a topic.

Knows the topic that it is of; knows no links.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from .consumers import QueueConsumer
from .held_messages import HeldMessages
from .node import Node, NodeLink, Outlet
from .policy import QueuePolicy
from .queue import Queue
from .watermark import SharedWeight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .clock import Clock
    from .entry import Entry
    from .form_registry import Wants
    from .held_messages import OwningQueue
    from .message_store import QueueStore
    from .node import ContainerPeer, SubscriptionTerms
    from .policy import Overflow
    from .topic import Topic
    from .watermark import Watermark

__all__ = ["Subscription"]


class SharedHeldMessages(HeldMessages):
    """What a subscription holds: the octets of a message count once for all subscriptions that have it.

    Attributes:
        weight: of the message that is being handed to it; None for one that it alone has.
    """

    __slots__ = ("_weights", "weight")

    def __init__(self, owner: OwningQueue, clock: Clock, queue_store: QueueStore | None) -> None:
        super().__init__(owner, clock, queue_store)
        self._weights: dict[Entry, SharedWeight] = {}
        self.weight: SharedWeight | None = None

    def weigh(self, entry: Entry) -> None:
        weight = SharedWeight(self.watermark, entry.length) if self.weight is None else self.weight
        weight.take()
        self._weights[entry] = weight

    def unweigh(self, entry: Entry) -> None:
        self._weights.pop(entry).leave()

    def reweigh(self, entry: Entry, before: int) -> None:
        _ = before
        self.unweigh(entry)  # it is not the message of the others any more
        self._weights[entry] = weight = SharedWeight(self.watermark, entry.length)
        weight.take()

    def unweigh_all(self) -> None:
        while self._weights:
            self._weights.popitem()[1].leave()

    def close(self) -> Iterator[None]:
        weights, self._weights = self._weights, {}
        return chain(super().close(), _leave(weights))


def _leave(weights: dict[Entry, SharedWeight]) -> Iterator[None]:
    while weights:
        weights.popitem()[1].leave()
        yield


class Subscription(Queue):
    """What one subscription has yet to give, or to get an answer for.

    Attributes:
        subscription_terms: which one.
        wants: its filter.
        expires_at: when it is over if no link comes, on the clock of the topic; None while it has a link.
    """

    held_class: ClassVar[type[HeldMessages]] = SharedHeldMessages

    def __init__(
        self,
        topic: Topic,
        subscription_terms: SubscriptionTerms,
        wants: Wants | None,
        clock: Clock,
        on_room: Callable[[], object],
        queue_store: QueueStore | None,
    ) -> None:
        overflow: Overflow = "drop-oldest" if topic.overflow == "drop-oldest" else "wait"
        policy = QueuePolicy(max_length=topic.max_backlog, overflow=overflow)
        super().__init__(topic.address, policy=policy, clock=clock, queue_store=queue_store)
        self.container: ContainerPeer | None = topic.container
        self._journal = topic.journal
        self.watermark: Watermark = topic.watermark
        self.held.watermark = topic.watermark
        self.subscription_terms = subscription_terms
        self.wants = wants
        self.expires_at: float | None = None
        self._tell_room = on_room
        self._end_link = topic.end_link
        self._check_backlog = topic.check_backlog

    def check_room(self, messages: int, octets: int) -> None:
        super().check_room(messages, octets)
        self._check_backlog(self, messages)

    def add_outlet(self, outlet: Outlet) -> None:
        # What its filter does not pass is not here, and to look without taking would only mean to be shown
        # the same again.
        Node.add_outlet(self, outlet)
        self._consumers[outlet] = QueueConsumer(outlet, None)
        self.expires_at = None

    def end_link(self, link: NodeLink) -> None:
        self._end_link(link)

    def _on_room(self) -> None:
        super()._on_room()
        self._tell_room()
