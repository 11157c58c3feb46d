"""Topic: every message goes to every subscription, independently (3.3).

Each subscription has a queue of its own; all of these hold the same message objects, not copies. A subscription gets the
messages that are sent while it exists and that pass its filter, and no earlier ones. The outcomes of its messages are its
own: a released message goes back to this subscription only.

By default a link makes a subscription that ends with the link. A link may ask for more (``subscription_terms``): for a
subscription that several links share, which divide its messages; or for one that stays when they detach, and collects
messages until a link attaches again, or a link to it is closed.

A subscription may fall behind by ``max_backlog`` messages, unsettled ones included. Beyond that, ``overflow`` decides:

================  ==================================================================================
``detach``        the subscription ends: its links are detached with ``amqp:resource-limit-exceeded``, so that the
                  receivers know that they missed messages; no other subscription is affected
``drop-oldest``   it loses its oldest message, or the new one if all are leased; no other subscription is affected
``reject``        the message is rejected, and no subscription gets it
``wait``          senders get no more credit: the slowest subscription sets the pace
================  ==================================================================================

A durable subscription that stays survives the process, together with its durable messages (``stored_subscriptions``). Such a
message is accepted once it is on disk for every subscription that stores it.

Work for many subscriptions, and comparing with many filters, is divided into steps (``turns``); the sender waits meanwhile.

Knows messages; knows no links.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from trio_amqp10.broker.stores.base import error_for_peers
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .arrival_answers import accept, answer, refuse, refuse_durable
from .clock import Clock
from .message_origin import origin_of
from .node import Inlet, Node, Outlet, Peer, RefusedError, SubscriptionTerms
from .policy import Rule
from .stored_subscriptions import StoredSubscriptions
from .subscription_queue import Subscription, policy_of
from .turns import ENDLESS, each_in_turns, guarded, take_steps
from .watermark import SharedWeight

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from trio_amqp10.broker.stores.base import StoreError
    from trio_amqp10.broker.stores.group_commit import Journal

    from .content import Content
    from .form_registry import Wants
    from .message_store import MessageStore, QueueStore
    from .node import Arrival, Owner
    from .subscription_queue import SharedHeldMessages
    from .turns import Resumer, Steps, Turns

MAX_BACKLOG: Final = 10_000
"""Messages that a subscription may fall behind by default."""
MAX_SUBSCRIPTIONS: Final = 10_000
"""Subscriptions that a topic may have by default."""

_RUN: Final = 64
_RUN_OCTETS: Final = 64 * 1024
"""Messages, and octets, after which the next subscription gets its messages."""

Spill = Literal["detach", "drop-oldest", "reject", "wait"]

TOPIC_RULES: Final[tuple[Rule, ...]] = (
    Rule("max_backlog", "count", MAX_BACKLOG, "messages that a subscription may fall behind"),
    Rule("overflow", "choice", "detach", "what happens beyond that", get_args(Spill)),
    Rule("max_subscriptions", "count", MAX_SUBSCRIPTIONS, "subscriptions that the topic may have"),
)
"""The limits of a topic, in the order of the arguments of ``Container.add_topic``."""

_SPILLS: Final = get_args(Spill)


class Topic(Node):
    """Forwards every message to all subscriptions, and keeps none for later ones.

    Args:
        address: the address that links name.
        max_backlog: messages that a subscription may fall behind, unsettled ones included; None for any number.
        overflow: what happens beyond that: ``"detach"``, ``"drop-oldest"``, ``"reject"`` or ``"wait"``.
        max_subscriptions: the most subscriptions, those without a link included; None for any number.
        clock: the clock by which messages and subscriptions expire.
        message_store: stores durable subscriptions; None if all is lost with the process.

    Attributes:
        subscriptions: the present subscriptions, by ``SubscriptionTerms.key``.
        past: totals of the subscriptions that have ended.

    Raises:
        LocalProtocolError: a limit is below 1, or there is no such ``overflow``.
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
        check_limits(max_backlog, overflow, max_subscriptions)
        self.max_backlog = max_backlog
        self.overflow: Spill = overflow
        self.max_subscriptions = max_subscriptions
        self.subscriptions: dict[object, Subscription] = {}
        self.past: Final[Counter[str]] = Counter()
        self._clock = clock or Clock()
        self._deadline_timer = self._clock.deadline_timer(self._next_end, self._forget_expired)
        self._having: dict[Outlet, Subscription] = {}
        self._blocked: dict[Inlet, None] = {}
        self._under_way: set[Inlet] = set()
        """Inlets whose last message is still being given to many subscriptions."""
        self._arrived = 0
        self.journal: Journal | None = None if message_store is None else message_store.journal
        self._stored_subscriptions = (
            None if message_store is None else StoredSubscriptions(message_store, address)
        )

    def update(self, *, max_backlog: int | None, overflow: Spill, max_subscriptions: int | None) -> None:
        """Replace the limits; subscriptions and messages beyond the new limits stay.

        Raises:
            LocalProtocolError: a limit is below 1, or there is no such ``overflow``; nothing has changed.
        """
        check_limits(max_backlog, overflow, max_subscriptions)
        self.max_backlog = max_backlog
        self.overflow = overflow
        self.max_subscriptions = max_subscriptions
        turns, policy = self.turns, policy_of(self)
        subscriptions = list(self.subscriptions.values())
        # What is blocked asks again: the new limits may have room, or may let nothing wait.
        updating = each_in_turns(turns, iter(subscriptions), lambda each: each.update(policy))
        take_steps(turns, updating, self._unblock)

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
        """Restore the stored subscriptions and their messages; only under trio."""
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
        # A commit is one step: all messages of the transaction must be taken now.
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
            run, refused = self._take_run(inlet)
            rejects = self.overflow == "reject" and run and not inlet.is_committed
            if rejects and (yield from self._is_too_much(run[0][1], origin, turns)):
                refuse(run[0][0], Condition.RESOURCE_LIMIT_EXCEEDED, self._too_far())
                continue
            if run:
                self._arrived += len(run)
                yield from self._publish(inlet, run, origin, turns)
            if refused is not None:
                refuse_durable(inlet, refused, self.address)
            elif not run:
                self._blocked.pop(inlet, None)
                return

    def _take_run(self, inlet: Inlet) -> tuple[list[tuple[Arrival, Content]], Arrival | None]:
        """Take the messages of a run, and perhaps one that is refused after it.

        A subscription gets all of a run before the next one does: between two messages for it, the processor would have
        forgotten what the first one needed. What is decided for one message only, because of its subscriptions' room or
        the journal's, comes alone.
        """
        run: list[tuple[Arrival, Content]] = []
        octets, most = 0, self._longest_run()
        while (arrival := inlet.take()) is not None:
            content = arrival.content
            if content.durable and self.refuses_durable:
                return run, arrival
            run.append((arrival, content))
            octets += content.size
            if len(run) == most or octets >= _RUN_OCTETS or (content.durable and self.journal is not None):
                break
        return run, None

    def _longest_run(self) -> int:
        """Return the most messages of a run: one if each must find room."""
        if self.overflow in ("reject", "wait"):
            return 1
        # No subscription falls behind because its receiver could not answer during a run.
        return _RUN if self.max_backlog is None else min(_RUN, self.max_backlog // 100 + 1)

    def _is_too_much(
        self, content: Content, origin: str | None, turns: Turns
    ) -> Generator[Resumer | None, None, bool]:
        """Whether a subscription that wants the message has no room for it."""
        for each in list(self.subscriptions.values()):
            if each.is_full and (each.wants is None or self._wants(each, each.wants, content, origin)):
                return True
            if turns.is_over():
                yield None
        return False

    def _wants(self, subscription: Subscription, wants: Wants, *asked: Any) -> bool:
        """Whether the filter of a subscription passes a message.

        A filter that fails ends the links of its subscription, not the link of the sender.
        """
        try:
            return wants(*asked)
        except Exception:
            for outlet in list(subscription.outlets):
                self.end_link(outlet)
            return True  # The message is kept, because the filter may have wanted it.

    def _must_wait(self) -> bool:
        journal = self.journal
        if journal is not None:
            if journal.committing:
                return False  # A commit is one step and cannot wait.
            if journal.crowded:
                journal.when_roomy(self._unblock)
                return True
        return self.overflow == "wait" and any(each.is_full for each in self.subscriptions.values())

    def _publish(
        self, inlet: Inlet, run: list[tuple[Arrival, Content]], origin: str | None, turns: Turns
    ) -> Steps:
        journal, held = self.journal, False
        while journal is not None and journal.held and len(self.subscriptions) > 1 and not journal.committing:
            yield journal.when_free
        given = [(arrival, content, SharedWeight(self.watermark, content.size)) for arrival, content in run]
        stored: set[Arrival] = set()
        try:
            for subscription in list(self.subscriptions.values()):
                for arrival, content, weight in given:
                    if self._gather(subscription, content, origin, weight, committed=inlet.is_committed):
                        stored.add(arrival)
                    if turns.is_over():
                        # The other subscriptions get the messages in a later turn. Hold the journal until then, so that one
                        # commit has each message for all of them.
                        if journal is not None and not held:
                            held = True
                            journal.hold()
                        yield None
            for arrival, _ in run:
                if journal is not None and (arrival in stored or journal.committing):
                    if arrival in stored:
                        arrival.record_acceptance()
                    journal.after(partial(self.attempt, inlet, answer, inlet, arrival))
                else:
                    accept(arrival)
        finally:
            if journal is not None and held:
                journal.release()

    def _gather(
        self,
        subscription: Subscription,
        content: Content,
        origin: str | None,
        weight: SharedWeight,
        *,
        committed: bool,
    ) -> bool:
        """Give a message to a subscription, if it wants it; return whether it stores it.

        One that is ``committed`` is not refused, even if the limits have changed since.
        """
        wants = subscription.wants
        if wants is not None and not self._wants(subscription, wants, content, origin):
            return False
        # An earlier step may have ended this subscription, and a filter that failed.
        if self.subscriptions.get(subscription.subscription_terms.key) is not subscription:
            return False
        journal = self.journal
        committing = journal is not None and journal.committing
        held = cast("SharedHeldMessages", subscription.held)
        held.weight = weight
        beyond = (committed or committing) and self.overflow != "detach"
        if not subscription.gather(content, origin, beyond=beyond) and self.overflow == "detach":
            # The subscription missed a message, so it ends; in a commit only if that succeeds.
            if committing and journal is not None:
                journal.after(partial(self._end_after_commit, subscription))
            else:
                self._end(subscription, Condition.RESOURCE_LIMIT_EXCEEDED, self._too_far())
        held.weight = None
        return subscription.stores(content)

    def _end_after_commit(self, subscription: Subscription, failure: StoreError | None) -> None:
        """End a subscription that missed a message of a transaction, if that is committed."""
        if failure is None and self.subscriptions.get(subscription.subscription_terms.key) is subscription:
            self._end(subscription, Condition.RESOURCE_LIMIT_EXCEEDED, self._too_far())

    def _too_far(self) -> str:
        return f"more than max_backlog={self.max_backlog} messages behind {self.address!r}"

    def holders(self, inlet: Inlet, arrival: Arrival) -> Iterable[Node]:
        holders = super().holders(inlet, arrival)
        if self.overflow != "reject":
            return holders  # The topic refuses no message, even if a subscription misses it.
        self._forget_expired()
        # All of them, whatever their filters pass: one full subscription refuses the whole transaction.
        return tuple(self.subscriptions.values())

    def check_backlog(self, subscription: Subscription, messages: int) -> None:
        """Raise ``RefusedError`` if a subscription lacks room and the topic rejects.

        ``messages`` is how many more the subscription would get.
        """
        if self.overflow == "reject":
            subscription.sweep()
            if subscription.policy.is_full(len(subscription) + messages - 1, 0):
                raise RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, self._too_far())

    def lacks_room_for(self, inlet: Inlet) -> bool:
        return inlet in self._blocked and self.overflow == "wait"

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
                f"the subscription {subscription_terms.name!r} is shared with another filter: use that, or another name",
            )

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        subscription_terms = outlet.subscription_terms
        there = self.subscriptions.get(subscription_terms.key)
        if there is not None:
            if not subscription_terms.shared:
                for old in list(
                    there.outlets
                ):  # The same link attaches again, and replaces the old one (2.6.1).
                    self.attempt(
                        old, old.close, Condition.STOLEN.value, f"attached again to {self.address!r}"
                    )
            if (
                subscription_terms.key in self.subscriptions
                and there.subscription_terms.selection != subscription_terms.selection
            ):
                self._end(there, Condition.RESOURCE_DELETED, "subscribed again, with another filter")
        subscription = self.subscriptions.get(subscription_terms.key)
        if subscription is None:
            queue_store = self._stored(subscription_terms)
            subscription = Subscription(
                self, subscription_terms, outlet.wants, self._clock, self._on_room, queue_store
            )
            self.subscriptions[subscription_terms.key] = subscription
        elif not subscription.stores_messages:
            queue_store = self._stored(subscription_terms)
            if queue_store is not None:
                subscription.store_in(queue_store)
        else:
            queue_store = None
            if subscription_terms.lasting != subscription.subscription_terms.lasting:
                self._stored(subscription_terms)
        if queue_store is not None:
            queue_store.journal.after(partial(self._on_stored, subscription))
        subscription.subscription_terms = subscription_terms
        self._having[outlet] = subscription
        subscription.add_outlet(outlet)

    def _stored(self, subscription_terms: SubscriptionTerms) -> QueueStore | None:
        """Store a subscription if it is durable, and return the store of its messages."""
        stored = self._stored_subscriptions
        return None if stored is None else stored.enter(subscription_terms)

    def _on_stored(self, subscription: Subscription, failure: StoreError | None) -> None:
        """End a subscription that could not be stored.

        After a restart its messages would be of no subscription.
        """
        if (
            failure is not None
            and self.subscriptions.get(subscription.subscription_terms.key) is subscription
        ):
            self._end(subscription, *error_for_peers(failure))

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
            self._end(subscription, Condition.RESOURCE_DELETED, "the last subscriber has left")
        else:
            subscription.expires_at = self._clock.now() + subscription.subscription_terms.lasting
            self._deadline_timer.schedule(subscription.expires_at)

    def recall(self, owner: Owner | None, name: str) -> SubscriptionTerms | None:
        """Return the terms of the lasting subscription of this name, or None."""
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
                    self._end(each, Condition.RESOURCE_DELETED, "the subscription has expired")

    def _next_end(self) -> float:
        return min(
            (each.expires_at for each in self.subscriptions.values() if each.expires_at is not None),
            default=math.inf,
        )

    def _end(self, subscription: Subscription, condition: str, description: str) -> None:
        """End a subscription: its messages are lost, also those that are leased."""
        del self.subscriptions[subscription.subscription_terms.key]
        self._erase(subscription)
        for outlet in list(subscription.outlets):
            self.attempt(outlet, outlet.close, str(condition), description)
        self.past.update(subscription.totals())
        subscription.close()
        self._on_room()

    def _erase(self, subscription: Subscription) -> None:
        if self._stored_subscriptions is not None and subscription.stores_messages:
            self._stored_subscriptions.erase(subscription.subscription_terms)

    def close(self) -> None:
        super().close()
        self._deadline_timer.cancel()
        subscriptions, self.subscriptions = self.subscriptions, {}
        for subscription in subscriptions.values():
            self.past.update(subscription.totals())
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

    def withdraw(self) -> None:
        super().withdraw()
        self._deadline_timer.cancel()
        for subscription in self.subscriptions.values():
            subscription.withdraw()

    def totals(self) -> Mapping[str, int]:
        found = Counter(self.past)
        for subscription in list(self.subscriptions.values()):
            found.update(subscription.totals())
        return found

    def __repr__(self) -> str:
        return f"<Topic {self.address!r} senders={len(self.inlets)} receivers={len(self.outlets)}>"


def check_limits(max_backlog: int | None, overflow: str, max_subscriptions: int | None) -> None:
    """Raise unless these can be the limits of a topic.

    Raises:
        LocalProtocolError: a limit is below 1, or there is no such ``overflow``.
    """
    for name, limit in (("max_backlog", max_backlog), ("max_subscriptions", max_subscriptions)):
        if limit is not None and limit < 1:
            raise LocalProtocolError(f"{name}={limit}: expected at least 1, or None for any number")
    if overflow not in _SPILLS:
        raise LocalProtocolError(f"overflow={overflow!r}: expected one of {', '.join(map(repr, _SPILLS))}")
