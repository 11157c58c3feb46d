"""Topic: every message goes to every subscription there is, each by itself (3.3).

Behind each subscription is a queue that is its alone; all of these hold the same messages, and no
copies. What is sent while it is there and passes its filter waits in it, and nothing of what was
before. Its outcomes are its own: what a receiver releases goes back to its subscription, and no other.

A link makes a subscription of its own, which goes with it, unless it asks for more (``subscription_terms``):
one that several links share, whose messages are divided among them; and one that stays when
they detach, and gathers messages until one of them comes again, or a link to it is closed.

What a subscription gathers has an end. Beyond ``max_backlog`` messages, those that are not settled among
them, the topic does as ``overflow`` says:

================  ==================================================================================
``detach``        the subscription is over: its links are detached with ``amqp:resource-limit-exceeded``, so
                  that they know that they have missed something; no other is affected
``drop-oldest``   it loses its oldest message, or the new one where all are out; no other is affected
``reject``        the message is rejected, and no subscription gets it
``wait``          senders get no more credit: the slowest sets the pace
================  ==================================================================================

A durable subscription that stays survives the process, and the durable messages in it do (``stored_subscriptions``): one of
these is accepted once it is on disk for every subscription that keeps it there.

What goes to many subscriptions, or is compared with the filters of many, is done in pieces (``turns``); its sender waits meanwhile.

Knows messages; knows no links.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from trio_amqp10.errors import Condition, LocalProtocolError

from .arrival_answers import accept, answer, refuse, refuse_durable
from .clock import Clock
from .message_origin import origin_of
from .node import Inlet, Node, Outlet, Peer, RefusedError, SubscriptionTerms
from .stored_subscriptions import StoredSubscriptions
from .subscription_queue import Subscription
from .turns import ENDLESS, each_in_turns, guarded, take_steps
from .watermark import SharedWeight

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from trio_amqp10.container.stores.base import StoreError
    from trio_amqp10.container.stores.group_commit import Journal

    from .content import Content
    from .form_registry import Wants
    from .message_store import MessageStore
    from .node import Arrival, Owner
    from .subscription_queue import SharedHeldMessages
    from .turns import Steps, Turns

__all__ = ["MAX_BACKLOG", "MAX_SUBSCRIPTIONS", "Spill", "Topic"]

MAX_BACKLOG: Final = 10_000
"""Messages that a subscription may be behind, unless told otherwise."""
MAX_SUBSCRIPTIONS: Final = 10_000
"""Subscriptions that a topic has, unless told otherwise."""

Spill = Literal["detach", "drop-oldest", "reject", "wait"]

_SPILLS: Final = get_args(Spill)


class Topic(Node):
    """Hands every message on to all who subscribe to it, and keeps none for those who come later.

    Args:
        address: what links name to reach it.
        max_backlog: messages that a subscription may be behind, those that are not settled among them;
            None for any number.
        overflow: what happens then: ``"detach"``, ``"drop-oldest"``, ``"reject"`` or ``"wait"``.
        max_subscriptions: how many there may be, those without a link among them; None for any number.
        clock: what messages and subscriptions expire by.
        message_store: what keeps durable subscriptions; None where all is gone with the process.

    Attributes:
        subscriptions: those there are, by what names them.

    Raises:
        LocalProtocolError: a limit is not at least 1, or there is no such ``overflow``.
    """

    accepts_senders = accepts_receivers = applies_filters = keeps_subscriptions = releases_arrivals = True
    passes_over = True
    capabilities: tuple[str, ...] = ("topic", "shared", "global")

    def __init__(
        self,
        address: str,
        *,
        max_backlog: int | None = MAX_BACKLOG,
        overflow: Spill = "detach",
        max_subscriptions: int | None = MAX_SUBSCRIPTIONS,
        clock: Clock | None = None,
        message_store: MessageStore | None = None,
    ) -> None:
        super().__init__(address)
        for name, limit in (("max_backlog", max_backlog), ("max_subscriptions", max_subscriptions)):
            if limit is not None and limit < 1:
                raise LocalProtocolError(f"{name}={limit}: expected at least 1, or None for any number")
        if overflow not in _SPILLS:
            raise LocalProtocolError(
                f"overflow={overflow!r}: expected one of {', '.join(map(repr, _SPILLS))}"
            )
        self.max_backlog = max_backlog
        self.overflow: Spill = overflow
        self.max_subscriptions = max_subscriptions
        self.subscriptions: dict[object, Subscription] = {}
        self._clock = clock or Clock()
        self._deadline_timer = self._clock.deadline_timer(self._next_end, self._forget_expired)
        self._having: dict[Outlet, Subscription] = {}
        self._blocked: dict[Inlet, None] = {}
        self._under_way: set[Inlet] = set()
        """Inlets of which a message is on its way to many subscriptions."""
        self._arrived = 0
        self.journal: Journal | None = None if message_store is None else message_store.journal
        self._stored_subscriptions = (
            None if message_store is None else StoredSubscriptions(message_store, address)
        )

    @property
    def turns(self) -> Turns:
        return self._clock.turns()

    @property
    def stores_messages(self) -> bool:
        return any(each.stores_messages for each in self.subscriptions.values())

    @property
    def joins_commits(self) -> bool:
        return self.journal is not None

    def recover(self) -> None:
        """Take back the durable subscriptions that the store has, and their messages; under trio."""
        for subscription_terms, wants, queue_store in (
            () if self._stored_subscriptions is None else self._stored_subscriptions.recover()
        ):
            subscription = Subscription(
                self, subscription_terms, wants, self._clock, self._on_room, queue_store
            )
            subscription.expires_at = self._clock.now() + subscription_terms.lasting
            self.subscriptions[subscription_terms.key] = subscription
            self._deadline_timer.schedule(subscription.expires_at)
            subscription.recover()

    # -- in ---------------------------------------------------------------------------------

    def on_arrivals(self, inlet: Inlet) -> None:
        if inlet in self._under_way:
            return
        self._forget_expired()
        journal = self.journal
        # A transaction that is committed has no time to wait.
        turns = ENDLESS if journal is not None and journal.committing else self.turns
        steps = guarded(self._take_all(inlet, turns), lambda _: self.end_link(inlet))
        if not take_steps(turns, steps, partial(self._under_way.discard, inlet)):
            self._under_way.add(inlet)

    def _take_all(self, inlet: Inlet, turns: Turns) -> Steps:
        origin = origin_of(inlet.peer)
        while True:
            if self._must_wait():
                self._blocked[inlet] = None
                return
            if turns.is_over():
                yield None
                if inlet not in self.inlets:
                    return
            arrival = inlet.take()
            if arrival is None:
                self._blocked.pop(inlet, None)
                return
            content = arrival.content
            if content.durable and self.refuses_durable:
                refuse_durable(inlet, arrival, self.address)
                continue
            wanting: list[Subscription] = []
            for each in list(self.subscriptions.values()):
                if each.wants is None or self._wants(each, each.wants, content, origin):
                    wanting.append(each)
                if turns.is_over():
                    yield None
            if self.overflow == "reject" and any(each.is_full for each in wanting):
                refuse(arrival, Condition.RESOURCE_LIMIT_EXCEEDED, self._too_far())
                continue
            self._arrived += 1
            yield from self._publish(inlet, arrival, origin, wanting, turns)

    def _wants(self, subscription: Subscription, wants: Wants, *asked: Any) -> bool:
        """Whether the filter of a subscription passes a message; if it fails, that ends its links, and not the sender's."""
        try:
            return wants(*asked)
        except Exception:
            for outlet in list(subscription.outlets):
                self.end_link(outlet)
            return True  # rather held than lost

    def _must_wait(self) -> bool:
        journal = self.journal
        if journal is not None:
            if journal.committing:
                return False  # a transaction that is committed has no time to wait
            if journal.crowded:
                journal.when_roomy(self._unblock)
                return True
        return self.overflow == "wait" and any(each.is_full for each in self.subscriptions.values())

    def _publish(
        self, inlet: Inlet, arrival: Arrival, origin: str | None, wanting: list[Subscription], turns: Turns
    ) -> Steps:
        content, journal, held = arrival.content, self.journal, False
        while journal is not None and journal.held and len(wanting) > 1 and not journal.committing:
            yield journal.when_free
        try:
            for _ in self._gather(content, origin, wanting):
                if turns.is_over():
                    if journal is not None and not held:  # all of them in one commit
                        held = True
                        journal.hold()
                    yield None
            stored = any(each.stores(content) for each in wanting)
            if journal is not None and (stored or journal.committing):
                if stored:
                    arrival.record_acceptance()
                journal.after(partial(self.attempt, inlet, answer, inlet, arrival))
            else:
                accept(arrival)
        finally:
            if journal is not None and held:
                journal.release()

    def _gather(
        self, content: Content, origin: str | None, wanting: list[Subscription]
    ) -> Generator[None, None, None]:
        journal = self.journal
        committing = journal is not None and journal.committing
        beyond = committing and self.overflow != "detach"
        weight = SharedWeight(self.watermark, content.size)
        for subscription in wanting:
            if self.subscriptions.get(subscription.subscription_terms.key) is not subscription:
                continue
            held = cast("SharedHeldMessages", subscription.held)
            held.weight = weight
            if not subscription.gather(content, origin, beyond=beyond) and self.overflow == "detach":
                if committing and journal is not None:
                    journal.after(partial(self._end_after_commit, subscription))
                else:
                    self._end(subscription, Condition.RESOURCE_LIMIT_EXCEEDED, self._too_far())
            held.weight = None
            yield

    def _end_after_commit(self, subscription: Subscription, failure: StoreError | None) -> None:
        """A subscription has missed a message of a transaction, if that is committed."""
        if failure is None and self.subscriptions.get(subscription.subscription_terms.key) is subscription:
            self._end(subscription, Condition.RESOURCE_LIMIT_EXCEEDED, self._too_far())

    def _too_far(self) -> str:
        return f"more than max_backlog={self.max_backlog} messages behind {self.address!r}"

    def holders(self, inlet: Inlet, arrival: Arrival) -> Iterable[Node]:
        holders = super().holders(inlet, arrival)
        if self.overflow != "reject":
            return holders  # no message is refused, whoever misses it
        self._forget_expired()
        return tuple(
            self.subscriptions.values()
        )  # whatever their filters pass: a full one refuses the whole transaction

    def check_backlog(self, subscription: Subscription, messages: int) -> None:
        """Raise ``RefusedError`` if the topic rejects what a subscription has no room for, and it has none for so many."""
        if self.overflow == "reject":
            subscription.sweep()
            if subscription.policy.is_full(len(subscription) + messages - 1, 0):
                raise RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, self._too_far())

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self._blocked.pop(inlet, None)

    def _on_room(self) -> None:
        if self._blocked and not any(each.is_full for each in self.subscriptions.values()):
            self._unblock()

    def _unblock(self) -> None:
        blocked, self._blocked = self._blocked, {}
        for inlet in blocked:
            self.attempt(inlet, self.on_arrivals, inlet)

    # -- out --------------------------------------------------------------------------------

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        super().check_outlet(peer, copying=copying, target=target, subscription_terms=subscription_terms)
        self._forget_expired()
        there = self.subscriptions.get(subscription_terms.key)
        if there is None:
            limit = self.max_subscriptions
            if limit is not None and len(self.subscriptions) >= limit:
                raise RefusedError(
                    Condition.RESOURCE_LIMIT_EXCEEDED,
                    f"{self.address!r} has max_subscriptions={limit} already",
                )
        elif (
            subscription_terms.shared
            and there.outlets
            and there.subscription_terms.selection != subscription_terms.selection
        ):
            raise RefusedError(
                Condition.PRECONDITION_FAILED,
                f"others share the subscription {subscription_terms.name!r} with another filter",
            )

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        subscription_terms = outlet.subscription_terms
        there = self.subscriptions.get(subscription_terms.key)
        if there is not None:
            if not subscription_terms.shared:
                for old in list(there.outlets):  # the same link, attached anew (2.6.1)
                    self.attempt(
                        old, old.close, Condition.STOLEN.value, f"attached again to {self.address!r}"
                    )
            if (
                subscription_terms.key in self.subscriptions
                and there.subscription_terms.selection != subscription_terms.selection
            ):
                self._end(there, Condition.RESOURCE_DELETED, "subscribed anew, with another filter")
        subscription = self.subscriptions.get(subscription_terms.key)
        if subscription is None:
            queue_store = (
                None
                if self._stored_subscriptions is None
                else self._stored_subscriptions.enter(subscription_terms)
            )
            subscription = Subscription(
                self, subscription_terms, outlet.wants, self._clock, self._on_room, queue_store
            )
            self.subscriptions[subscription_terms.key] = subscription
        subscription.subscription_terms = subscription_terms
        self._having[outlet] = subscription
        subscription.add_outlet(outlet)

    def on_demand(self, outlet: Outlet) -> None:
        subscription = self._having.get(outlet)
        if subscription is not None:
            subscription.on_demand(outlet)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        subscription = self._having.pop(outlet, None)
        if subscription is None:
            return
        subscription.remove_outlet(outlet)
        if (
            subscription.outlets
            or self.subscriptions.get(subscription.subscription_terms.key) is not subscription
        ):
            return
        if outlet.final or not subscription.subscription_terms.lasting:
            self._end(subscription, Condition.RESOURCE_DELETED, "nobody subscribes any more")
        else:
            subscription.expires_at = self._clock.now() + subscription.subscription_terms.lasting
            self._deadline_timer.schedule(subscription.expires_at)

    def recall(self, owner: Owner | None, name: str) -> SubscriptionTerms | None:
        """The lasting subscription of this name, for a peer that knows no more of it."""
        for shared in (False, True):
            there = self.subscriptions.get(
                SubscriptionTerms(name=name, owner=owner, shared=shared, lasting=math.inf).key
            )
            if there is not None and there.expires_at is not None and there.expires_at <= self._clock.now():
                self._forget_expired()
            elif there is not None:
                if there.outlets:
                    raise RefusedError(
                        Condition.RESOURCE_LOCKED, f"the subscription {name!r} of {self.address!r} is in use"
                    )
                return there.subscription_terms
        return None

    # -- the end ----------------------------------------------------------------------------

    def _forget_expired(self) -> None:
        waiting = [each for each in self.subscriptions.values() if each.expires_at is not None]
        if waiting:
            now = self._clock.now()
            for each in waiting:
                if each.expires_at is not None and each.expires_at <= now:
                    self._end(each, Condition.RESOURCE_DELETED, "its time is over")

    def _next_end(self) -> float:
        return min(
            (each.expires_at for each in self.subscriptions.values() if each.expires_at is not None),
            default=math.inf,
        )

    def _end(self, subscription: Subscription, condition: Condition, description: str) -> None:
        """What it has yet to give is gone, and what comes back by its leases goes nowhere."""
        del self.subscriptions[subscription.subscription_terms.key]
        self._erase(subscription)
        for outlet in list(subscription.outlets):
            self.attempt(outlet, outlet.close, condition.value, description)
        subscription.close()
        self._on_room()

    def _erase(self, subscription: Subscription) -> None:
        if self._stored_subscriptions is not None and subscription.stores_messages:
            self._stored_subscriptions.erase(subscription.subscription_terms)

    def close(self) -> None:
        super().close()
        self._deadline_timer.cancel()
        subscriptions, self.subscriptions = self.subscriptions, {}
        turns = self.turns
        take_steps(turns, each_in_turns(turns, iter(subscriptions.values()), self._close))

    def _close(self, subscription: Subscription) -> None:
        self._erase(subscription)
        subscription.close()

    def statistics(self) -> dict[str, int]:
        for each in list(self.subscriptions.values()):
            each.sweep_now()
        return super().statistics() | {
            "subscriptions": len(self.subscriptions),
            "messages": sum(map(len, self.subscriptions.values())),
            "arrived": self._arrived,
        }

    def __repr__(self) -> str:
        return f"<Topic {self.address!r} senders={len(self.inlets)} receivers={len(self.outlets)}>"
