"""Subscription: the queue of one subscription to a topic.

Knows the topic; knows no links.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, ClassVar, cast

from .consumers import QueueConsumer
from .held_messages import HeldMessages
from .node import Node, NodeLink, Outlet
from .policy import QueuePolicy
from .queue import Queue
from .watermark import SharedWeight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trio_amqp10.broker.stores.base import StoreError

    from .clock import Clock
    from .entry import Entry
    from .form_registry import Wants
    from .message_store import QueueStore
    from .node import ContainerPeer, SubscriptionTerms
    from .policy import Overflow
    from .topic import Topic
    from .watermark import Watermark


class SharedHeldMessages(HeldMessages):
    """The messages of a subscription, whose octets it shares with other subscriptions.

    The octets of a message count once for all subscriptions that have it.

    Attributes:
        weight: the shared weight of the next new message; None for a message that this subscription alone has.
    """

    __slots__ = ("_weights", "weight")

    def __init__(self, owner: Queue, clock: Clock, queue_store: QueueStore | None) -> None:
        super().__init__(owner, clock, queue_store)
        self._weights: dict[Entry, SharedWeight] = {}
        self.weight: SharedWeight | None = None

    def weigh(self, entry: Entry) -> None:
        weight = SharedWeight(self.watermark, entry.length) if self.weight is None else self.weight
        weight.take()
        self._weights[entry] = weight

    def _take_up(self, entry: Entry) -> None:
        # It is read to make room for a new message, which ``weight`` belongs to.
        weight, self.weight = self.weight, None
        super()._take_up(entry)
        self.weight = weight

    def unweigh(self, entry: Entry) -> None:
        self._weights.pop(entry).leave()

    def reweigh(self, entry: Entry, before: int) -> None:
        _ = before
        self.unweigh(entry)  # The message has changed, so it is not shared with other subscriptions any more.
        self._weights[entry] = weight = SharedWeight(self.watermark, entry.length)
        weight.take()

    def store_in(self, queue_store: QueueStore) -> None:
        """Write all messages to a store from now on, and those that are held."""
        self.queue_store: QueueStore | None = queue_store
        for entry in self._weights:
            queue_store.enter(entry, _ignore, behind=False)

    def unweigh_all(self) -> None:
        while self._weights:
            self._weights.popitem()[1].leave()

    def close(self) -> Iterator[None]:
        weights, self._weights = self._weights, {}
        return chain(super().close(), _leave(weights))


def _ignore(failure: StoreError | None) -> None:
    """Do nothing: the subscription ends if it cannot be stored."""


def _leave(weights: dict[Entry, SharedWeight]) -> Iterator[None]:
    while weights:
        weights.popitem()[1].leave()
        yield


class Subscription(Queue):
    """The queue of one subscription: messages not yet delivered or not yet settled.

    Attributes:
        subscription_terms: the terms of the subscription.
        wants: its filter.
        expires_at: when it ends if no link attaches, on the clock of the topic; None while it has a link.
    """

    __slots__ = (
        "_check_backlog",
        "_end_link",
        "_tell_room",
        "expires_at",
        "subscription_terms",
        "wants",
    )

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
        super().__init__(topic.address, policy=policy_of(topic), clock=clock, queue_store=queue_store)
        self.container: ContainerPeer | None = topic.container
        self._journal = topic.journal
        self.watermark: Watermark = topic.watermark
        self.held.watermark = topic.watermark
        self.subscription_terms: SubscriptionTerms = subscription_terms
        self.wants: Wants | None = wants
        self.expires_at: float | None = None
        self._tell_room = on_room
        self._end_link = topic.end_link
        self._check_backlog = topic.check_backlog

    def store_in(self, queue_store: QueueStore) -> None:
        """Survive the process from now on, because its subscriber asks for that now."""
        cast("SharedHeldMessages", self.held).store_in(queue_store)

    def check_room(self, messages: int, octets: int) -> None:  # noqa: ARG002
        self._check_open()  # A consumer with too many messages must not stop those who publish for others.
        self._check_backlog(self, messages)

    def add_outlet(self, outlet: Outlet) -> None:
        # The queue holds only messages that passed the filter. A browser would leave them there, and get the same
        # messages again, so each outlet is a consumer.
        Node.add_outlet(self, outlet)
        self._consumers[outlet] = QueueConsumer(outlet, None)
        self.expires_at = None

    def end_link(self, link: NodeLink) -> None:
        self._end_link(link)

    def _on_room(self) -> None:
        super()._on_room()
        self._tell_room()


def policy_of(topic: Topic) -> QueuePolicy:
    """Return the rules of a subscription to this topic."""
    overflow: Overflow = "drop-oldest" if topic.overflow == "drop-oldest" else "wait"
    return QueuePolicy(max_length=topic.max_backlog, overflow=overflow)
