"""Queue: messages in order, each for one of the peers that compete for them (3.3).

In order and fairly
-------------------

What arrives gets a place: behind all others of its priority and of higher ones (3.2.1). It is accepted
once it is held here. What is held is available, or leased to an outlet, until the lease is answered:

================  ==================================================================================
accepted          it is gone
rejected          it dies, counted as an attempt (3.4.3): the peer finds it invalid, and would find it so again
released          it is available again, in its old place; nothing else changes
modified          the same; ``failed`` counts an attempt, ``undeliverable_here`` keeps it from the
                  link that said so, while there is that link (``refusals``), annotations are merged into its own; it dies of too many attempts
lost              the outcome that its source has by default (3.5.3); without one, the same as a failed attempt,
                  because it may have been processed
================  ==================================================================================

After a failed attempt the policy may have a message wait before it is available again, and its receiver may say until when, with
the annotation ``x-opt-delivery-time`` of ``modified``, as RabbitMQ 4.3 reads it.

Messages that came together are held, then placed in their order, then accepted. In a queue with a bound each is placed and accepted
before the next is looked at.

An outlet that is ready and finds nothing waits in turn. So either none waits, or no available
message may go to those that do; a message that becomes available is offered to them first: to those of the highest
priority (``SubscriptionTerms.priority``), round robin, then to those of the next.

A message larger than the peer of an outlet takes (2.7.3) is passed over for that outlet and stays for the others. An
outlet for which only such messages are left is ended, with ``amqp:link:message-size-exceeded``; so is a browser that
has seen all others. So is a message passed over that an outlet cannot take for another reason (``NotTakenError``), e.g. as it
has no form in its protocol: it stays for the others, which is logged once for each message, and the outlet goes on with those
behind it. An outlet that raises anything else is ended too, and what it was given in that moment is given to another.

The queue decides who gets what; ``held_messages`` has the messages, and ends them. Where dead ones go is described in ``deadletters``; what is
available, and to whom, in ``available``; how messages of a group stay together, in ``groups``; the rules, in ``policy``; what
survives the process, in ``message_store``. What is much at once is done in pieces (``turns``), between which all else goes on: a look for
messages that a filter passes, deliveries to a consumer, messages that expire or are dropped, a purge. Consumers that are still to be asked
do not wait meanwhile: they look for themselves in a later turn.

Knows inlets and outlets; knows no links.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio

from trio_amqp10.errors import Condition, LocalProtocolError

from .arrival_answers import accept, answer, refuse, refuse_durable
from .clock import Clock
from .consumers import QueueBrowser, QueueConsumer
from .entry import ANYONE, Entry, unpack_sequence
from .groups import Groups
from .held_messages import HeldMessages
from .message_origin import origin_of
from .node import Node, NotTakenError, Outlet, Peer, RefusedError
from .policy import LONGEST_DELAY, QueuePolicy
from .refusals import Refusals
from .turns import ENDLESS, each_in_turns, finish, paced, take_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from trio_amqp10.container.stores.base import StoreError
    from trio_amqp10.container.stores.group_commit import Journal

    from .consumers import QueueReader
    from .content import Content, Death, Publication
    from .message_store import QueueStore
    from .node import Arrival, Inlet, SubscriptionTerms
    from .refusals import OutletKey
    from .turns import Turns
    from .watermark import Watermark

__all__ = ["Queue"]

_log = logging.getLogger("trio_amqp10.container")

_STALE: Final = 64
"""Pulled messages whose leases may have ended, above as many as there are messages, before they are forgotten."""
_PASSED_AT_ONCE: Final = 100
"""Messages that one consumer fails to take before others have their turn."""
_UNTIMED: Final = 16
"""Messages that are taken before the queue asks for the time."""
_DELIVERY_TIME: Final = "x-opt-delivery-time"
"""The annotation that says when to deliver a message, in milliseconds since 1970."""


class Queue(Node):
    """Holds messages until consumers take them, or they expire.

    Args:
        address: what links name to reach it.
        policy: its rules.
        kept_by: what keeps a temporary queue alive: any of ``"maker"``, ``"links"`` and
            ``"messages"``; None for a queue that stays.
        on_unused: called when nothing keeps it any more, or it was not used for ``policy.expires`` seconds.
        clock: what messages expire by.
        queue_store: what keeps messages that are to survive; None for a queue that is gone with the process.

    Attributes:
        policy: as given; ``update`` changes it.
        held: its messages.
    """

    accepts_senders = accepts_receivers = applies_filters = leases_messages = releases_arrivals = True
    passes_over = True
    capabilities: tuple[str, ...] = ("queue",)
    held_class: ClassVar[type[HeldMessages]] = HeldMessages

    def __init__(
        self,
        address: str,
        *,
        policy: QueuePolicy | None = None,
        kept_by: frozenset[str] | None = None,
        on_unused: Callable[[Queue], object] | None = None,
        clock: Clock | None = None,
        queue_store: QueueStore | None = None,
    ) -> None:
        super().__init__(address)
        self.policy: QueuePolicy = policy or QueuePolicy()
        self._bounded = self.policy.is_bounded
        self._clock = clock or Clock()
        self.held: HeldMessages = self.held_class(self, self._clock, queue_store)
        self.held.watermark = self.watermark
        self.has_maker = False
        self._journal: Journal | None = None if queue_store is None else queue_store.journal
        """Of the container that it is in; None without a store."""
        self._closed = False
        self._kept_by = kept_by
        self._on_unused = on_unused
        self._origins: dict[Inlet, str] = {}
        self._available = self.held.available
        self._groups = Groups(self._available, self._dispatch)
        self._refusals = Refusals(self, self._available)
        self._consumers: dict[Outlet, QueueConsumer] = {}
        self._active: QueueConsumer | None = None
        self._browsers: dict[Outlet, QueueBrowser] = {}
        self._waiting: tuple[tuple[int, deque[QueueConsumer]], ...] = ()
        """Consumers that wait, for each priority that one has had, highest first."""
        self._pulled: dict[Entry, int] = {}
        """Those that were leased by ``pull``, of a queue with a single active consumer, and which ``turn`` that was."""
        self._left_to_others: dict[Entry, None] = {}
        """Those that a consumer could not take, which was logged."""
        self._blocked: dict[Inlet, Callable[[Inlet], object]] = {}
        """Those that wait for room, and what is called then; those of exchanges among them."""
        self._deadline_timer = self._clock.deadline_timer(self._next_due, self._sweep_later)
        self._sweeps = False
        """Whether what has expired is not all gone: a later turn goes on."""
        self._unused_since: float | None = None

    def update(self, policy: QueuePolicy) -> None:
        """Go by other rules from now on; what is held stays.

        Raises:
            LocalProtocolError: who may take, and how, cannot be changed.
        """
        for name in ("exclusive", "single_active", "grouped"):
            if getattr(policy, name) != getattr(self.policy, name):
                raise LocalProtocolError(f"{name} of {self!r} cannot be changed: delete it and make it anew")
        self.policy = policy
        self._bounded = policy.is_bounded
        self._on_room()
        self._begin_use()

    # -- what there is ----------------------------------------------------------------------

    def __len__(self) -> int:
        """Messages held, those under lease among them."""
        return self.held.length

    @property
    def octets(self) -> int:
        """Of the messages held."""
        return self.held.octets

    @property
    def figures(self) -> dict[str, int]:
        """How many messages arrived, how many were accepted, died of each cause, or were refused."""
        return self.held.figures

    @property
    def stores_messages(self) -> bool:
        return self.held.queue_store is not None

    @property
    def joins_commits(self) -> bool:
        return self._journal is not None or self.stores_messages

    @property
    def durable(self) -> bool:
        """Whether all its messages go to the store, not only those that ask for it."""
        return self.held.queue_store is not None and self.held.queue_store.everything

    def stores(self, content: Content) -> bool:
        """Whether a message that comes is written to the store."""
        return self.held.queue_store is not None and self.held.queue_store.keeps(content)

    @property
    def available(self) -> int:
        """Messages that are not leased."""
        return len(self._available)

    @property
    def leased(self) -> int:
        """Messages that are leased."""
        return self.held.leased

    @property
    def turns(self) -> Turns:
        return self._clock.turns()

    def statistics(self) -> dict[str, int]:
        self.sweep_now()
        return super().statistics() | self.held.statistics()

    def sweep_now(self) -> None:
        """As ``sweep``, where trio runs: outside there is no clock to expire by.

        While no connection is open no timer runs, so figures would count what has expired since.
        """
        if trio.lowlevel.in_trio_run():
            self.sweep()

    def count_in(self, watermark: Watermark) -> None:
        super().count_in(watermark)
        self.held.count_in(watermark)
        if self.container is not None:
            self._journal = self.container.journal
        self._begin_use()  # it is in a container now

    def _begin_use(self) -> None:
        if trio.lowlevel.in_trio_run():
            self.touch()

    # -- in ---------------------------------------------------------------------------------

    def check_inlet(self, peer: Peer) -> None:
        self._check_open()
        super().check_inlet(peer)

    def add_inlet(self, inlet: Inlet) -> None:
        super().add_inlet(inlet)
        self._origins[inlet] = origin_of(inlet.peer)

    def on_arrivals(self, inlet: Inlet) -> None:
        held = self.held
        if held.deadlines.places or held.delayed.places:  # their lengths would be calls for each message
            self.sweep()
        origin = self._origins.get(inlet) or origin_of(inlet.peer)
        run: list[tuple[Entry, Arrival]] = []
        taken = 0
        try:
            while not self._closed:
                taken += 1
                if not taken % _UNTIMED and not self._is_committing():
                    turns = self.turns
                    if turns.is_over():
                        turns.later(partial(self._take_more, inlet))
                        return
                full = self._bounded and held.is_full()
                if (full or held.queue_store is not None) and self._must_wait(
                    full and self.policy.overflow == "wait"
                ):
                    self._place_all(run)  # before what comes later, once there is room
                    self._blocked[inlet] = self.on_arrivals
                    return
                arrival = inlet.take()
                if arrival is None:
                    self._blocked.pop(inlet, None)
                    return
                if full and self.policy.overflow != "wait" and not self._make_room():
                    held.figures["refused"] += 1
                    self._turn_away(arrival.content, inlet)
                    refuse(arrival, Condition.RESOURCE_LIMIT_EXCEEDED, f"{self.address!r} is full")
                    continue
                content = arrival.content
                if content.durable and self.refuses_durable:
                    self._place_all(run)  # before its link may end
                    held.figures["refused"] += 1
                    refuse_durable(inlet, arrival, self.address)
                elif (entry := self._hold(content, origin, inlet, arrival)) is not None:
                    run.append((entry, arrival))
                    if self._bounded:
                        self._place_all(run)
        finally:
            self._place_all(run)

    def _take_more(self, inlet: Inlet) -> None:
        if inlet in self.inlets:
            self.attempt(inlet, self.on_arrivals, inlet)

    def _place_all(self, run: list[tuple[Entry, Arrival]]) -> None:
        """Place messages that came together, then accept them: they are held here. None is left in ``run``."""
        placed = run.copy()
        run.clear()
        for entry, _ in placed:
            if not self._closed:
                self._place(entry)
        for _, arrival in placed:
            accept(arrival)

    def _must_wait(self, full: bool) -> bool:
        queue_store = self.held.queue_store
        if self._is_committing():
            return False  # a transaction that is committed has no time to wait
        if queue_store is None:
            return full
        if queue_store.crowded:
            queue_store.when_roomy(self._unblock)
            return True
        return full

    def _is_committing(self) -> bool:
        """Whether what comes now is part of one transaction, which is being written."""
        return self._journal is not None and self._journal.committing

    def holders(self, inlet: Inlet, arrival: Arrival) -> Iterable[Node]:
        self._check_open()
        return super().holders(inlet, arrival)

    def check_room(self, messages: int, octets: int) -> None:
        self._check_open()
        # Each is taken while there is room for one more, and what is before the last has at most so many octets.
        before = octets - 1 if messages > 1 else 0
        if not self.policy.rejects or not self.held.is_full(messages - 1, before):
            return
        self.sweep()
        if self.held.is_full(messages - 1, before):
            raise RefusedError(
                Condition.RESOURCE_LIMIT_EXCEEDED, f"{self.address!r} has no room for {messages} messages"
            )

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self._origins.pop(inlet, None)
        self._blocked.pop(inlet, None)
        self.check_used()

    def put(self, content: Content, origin: str | None) -> None:
        """Hold a message that came from this origin."""
        entry = self._hold(content, origin)
        if entry is not None:
            self._place(entry)

    def _hold(
        self,
        content: Content,
        origin: str | None,
        inlet: Inlet | None = None,
        arrival: Arrival | None = None,
    ) -> Entry | None:
        """Hold a message, which is then to be placed.

        Returns:
            None if it is on its way to the disk: when it is there, it is placed, and ``arrival`` gets its answer then or
            when it cannot be there.
        """
        held = self.held
        entry = held.enter(content, origin)
        if held.queue_store is not None and held.store(
            entry, partial(self._on_stored, entry, inlet, arrival)
        ):
            if arrival is not None and entry.queue_store is not None:
                arrival.record_acceptance()
            return None
        if self._journal is not None and held.queue_store is None and self._journal.committing:
            held.await_commit(self._journal, entry, partial(self._on_stored, entry, inlet, arrival))
            return None
        return entry

    def _place(self, entry: Entry) -> None:
        """Give what has come to a consumer that waits for it, or make it available."""
        if entry.deadline is not None or entry.group is not None or not self._dispatch(entry):
            self._offer(entry)

    def _on_stored(
        self, entry: Entry, inlet: Inlet | None, arrival: Arrival | None, failure: StoreError | None
    ) -> None:
        if not self._closed:
            if failure is None:
                self._offer(entry)
            else:
                self._on_change()
        if arrival is not None and inlet is not None:
            self.attempt(inlet, answer, inlet, arrival, failure)

    @property
    def is_full(self) -> bool:
        """Whether it takes no more as it is."""
        if not self._bounded or not self.held.is_full():
            return False
        self.sweep()
        return self.held.is_full()

    def gather(self, content: Content, origin: str | None, *, beyond: bool = False) -> bool:
        """Hold one more; False if there is no room for it, and none could be made.

        With ``beyond`` one that would make its sender wait is held too: a transaction that is committed has no time to wait.
        """
        if self.is_full and not (beyond and self.makes_wait) and not self._make_room():
            self._turn_away(content)
            return False
        self.put(content, origin)
        return True

    def _turn_away(self, content: Content, inlet: Inlet | None = None) -> None:  # noqa: ARG002
        """A message is rejected because the queue is full; it came by ``inlet``, or through another node."""
        if self.policy.overflow == "reject-dead-letter":
            self.held.turn_away(content)

    @property
    def makes_wait(self) -> bool:
        """Whether it is full, and what comes is to wait with its sender."""
        return self._bounded and self.policy.overflow == "wait" and not self._closed and self.is_full

    def when_roomy(self, inlet: Inlet, call: Callable[[Inlet], object]) -> None:
        """Have ``call(inlet)`` called once there may be room for what came by it, or the queue is deleted."""
        self._blocked[inlet] = call

    def forget_waiting(self, inlet: Inlet) -> None:
        """Do not call that any more."""
        self._blocked.pop(inlet, None)

    def _make_room(self) -> bool:
        """Whether it is not full any more."""
        # Dead letters that wait for room elsewhere take theirs here: to drop more would not help.
        while self.policy.overflow == "drop-oldest" and not self.held.bound_for_death:
            entry = self._available.oldest()
            if entry is None:
                return self.policy.holds_nothing
            self._remove_available(entry, "overflow")
            if not self.held.is_full():
                return True
            turns = self.turns
            if turns.is_over():  # many small ones make room for a large one
                turns.later(self._drop_excess)
                return True
        return False

    def _offer(self, entry: Entry) -> None:
        """Give what is held to a consumer that waits for it, or make it available."""
        if entry.deadline is not None:
            if not self.held.schedule(entry):
                self.held.end(entry, "expired")
                self._on_change()
                return
            self._deadline_timer.schedule(entry.deadline)
        if entry.group is not None:
            self._groups.enter(entry.group, entry)
        elif not self._dispatch(entry):
            self._available.add(entry)
        if self._browsers:
            self._show_to_browsers(entry)
        if self._bounded and self.policy.holds_nothing:
            self._drop_excess()
        self._on_change()

    def _show_to_browsers(self, entry: Entry) -> None:
        """It is in the queue, perhaps available."""
        if entry.available:
            for browser in list(self._browsers.values()):
                self.attempt(browser.outlet, self._show, browser)

    def recover(self) -> None:
        """Take back what was on disk when the process started; under trio, since messages may expire."""
        self.touch()
        for entry, leased in self.held.recover():
            if not leased and entry.due is None:
                self._offer(entry)
                continue
            # A link got it before the restart, and its peer will say what became of it.
            if entry.deadline is not None:
                self.held.schedule_leased(entry)
            if not leased:
                self._delay(entry, leased=False)
            elif entry.group is not None:
                self._groups.note_lease(entry.group, entry.outlet_key)

    def end_available(self) -> int:
        """Have what is not leased die, because the queue is about to be deleted; returns how many messages that were.

        A dead letter that its address does not take at once is gone with the queue.
        """
        return finish(self.end_available_in_steps())

    def end_available_in_steps(self) -> Generator[None, None, int]:
        """As ``end_available``, in steps, which return how many messages died."""
        count = yield from self._remove_all(lambda entry: self.held.end(entry, "deleted"))
        dying = self.held.bound_for_death
        while dying:  # what the turn was over for is taken in the next
            yield
            before, dying = dying, self.held.bound_for_death
            if dying == before:
                break
        return count

    def purge(self) -> int:
        """Remove what is not leased; returns how many messages that were."""
        return finish(self.purge_in_steps())

    def purge_in_steps(self) -> Generator[None, None, int]:
        """As ``purge``, in steps, which return how many messages it removed; what comes meanwhile stays."""
        return self._remove_all(self.held.forget)

    def _remove_all(self, end: Callable[[Entry], object]) -> Generator[None, None, int]:
        is_over = self.turns.is_over
        count, sequence = 0, self.held.next_sequence()
        while not self._closed and (entry := self._available.first_before(sequence)) is not None:
            self._available.remove(entry)
            if entry.group is not None:
                self._groups.removed(entry.group, entry)
            end(entry)
            count += 1
            if is_over():
                yield
        for entry in self.held.delayed.pop_due(math.inf):
            if entry.group is not None:
                self._groups.removed(entry.group, entry)
            end(entry)
            count += 1
            if is_over():
                yield
        return count

    # -- out --------------------------------------------------------------------------------

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        self._check_open()
        super().check_outlet(peer, copying=copying, target=target, subscription_terms=subscription_terms)
        if self.policy.exclusive and self._consumers and not copying:
            raise RefusedError(Condition.RESOURCE_LOCKED, f"{self.address!r} has its one consumer already")

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        wants = outlet.wants
        self._unused_since = None
        if outlet.copying:
            self._browsers[outlet] = QueueBrowser(outlet, wants)
            return
        consumer = self._consumers[outlet] = QueueConsumer(outlet, wants)
        if wants is not None:
            self._available.begin_search(consumer)
        if self._active is None and self.policy.single_active and not self._consumers_have_some:
            self._active = consumer

    def on_demand(self, outlet: Outlet) -> None:
        self.sweep()
        self.attempt(outlet, self._serve, outlet)

    def _serve(self, outlet: Outlet) -> None:
        browser = self._browsers.get(outlet)
        if browser is not None:
            self._show(browser)
            return
        consumer = self._consumers.get(outlet)
        if consumer is None:
            return
        if self.policy.single_active and consumer is not self._active:
            outlet.rest(0)
            return
        is_over = self.turns.is_over
        passed = 0
        while outlet.ready():
            entry = self._take(consumer, is_over)
            if entry is None:
                self._on_nothing(consumer)
                return
            try:
                leased = self._lease(entry, consumer)
            except NotTakenError:
                self._restore(entry)
                passed += 1
                if passed == _PASSED_AT_ONCE:
                    self._resume(consumer)
                    return
                continue
            if not leased:
                self._restore(entry)
                return
            if entry.group is not None:
                self._groups.settle(entry.group)
            if is_over() and outlet.ready():
                self._resume(consumer)
                return
        outlet.rest(self.available)

    def _take(self, consumer: QueueConsumer, is_over: Callable[[], bool]) -> Entry | None:
        """Take an available message that the consumer may have, and takes."""
        entry = self._available.take(consumer, is_over)
        while entry is not None and self._sweeps and self._has_expired(entry):
            if entry.group is not None:
                self._groups.removed(entry.group, entry)
            self.held.end(entry, "expired")
            entry = self._available.take(consumer, is_over)
        return entry

    def _has_expired(self, entry: Entry) -> bool:
        return entry.deadline is not None and entry.deadline <= self._clock.now()

    def pull(self, outlet: Outlet) -> bool:
        """As ``Node.pull``; a copy of the first message, for an outlet that only looks.

        A message that the peer does not take, e.g. as it is too large (2.7.3), is passed over. With a filter, all that is
        available may be looked at.
        """
        if self._closed:
            return False
        self.sweep()
        self.touch()
        try:
            return self._show_first(outlet) if outlet.copying else self._lease_first(outlet)
        except Exception:
            self.end_link(outlet)
            return False

    def _show_first(self, outlet: Outlet) -> bool:
        browser = QueueBrowser(outlet, outlet.wants)
        while True:
            entry = browser.find(self._available.all_blocks, ENDLESS.is_over)
            if entry is None:
                return False
            if self._give_copy(browser, entry):
                return True

    def _lease_first(self, outlet: Outlet) -> bool:
        consumer = QueueConsumer(outlet, outlet.wants)
        while True:
            try:
                entry = self._take(consumer, ENDLESS.is_over)
            finally:
                self._available.searches.pop(consumer, None)
            if entry is None:
                return False
            if self.policy.single_active:
                if len(self._pulled) > self.held.length + _STALE:
                    self._forget_pulled()
                self._pulled[entry] = entry.turn + 1
            try:
                leased = self._lease(entry, consumer)
            except NotTakenError:
                self._restore(entry)
                continue
            if not leased:
                self._restore(entry)
                return False
            if entry.group is not None:
                self._groups.settle(entry.group)
            return True

    @property
    def _consumers_have_some(self) -> bool:
        """Whether a message is leased to a consumer: those that were pulled are not."""
        if self._pulled:
            self._forget_pulled()
        return self.leased > len(self._pulled)

    def _forget_pulled(self) -> None:
        """Forget the pulled messages whose leases have ended."""
        for entry, turn in list(self._pulled.items()):
            if entry.ended or entry.available or entry.turn != turn:
                del self._pulled[entry]

    def _on_nothing(self, consumer: QueueConsumer) -> None:
        """A consumer is ready, and has found no message that it takes: it waits, unless there is a reason not to."""
        outlet = consumer.outlet
        if consumer.search is not None and consumer.search.pauses:
            self._resume(consumer)
            return
        too_large = consumer.too_large
        if too_large is not None:
            outlet.outgrow(too_large.length)
        outlet.rest(0)
        if not consumer.waits and outlet in self.outlets and outlet.ready():
            consumer.waits = True
            self._queue_of(consumer.priority).append(consumer)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        self._browsers.pop(outlet, None)
        consumer = self._consumers.pop(outlet, None)
        if consumer is not None:
            self._available.searches.pop(consumer, None)
            queue = self._queue_of(consumer.priority)
            if consumer.waits:
                consumer.waits = False
                queue.remove(consumer)
            if not queue:
                self._waiting = tuple(each for each in self._waiting if each[1] is not queue)
            if consumer is self._active:
                self._active = None
                self._on_change()
        if not self._closed:
            self.touch()
        self.check_used()

    def _queue_of(self, priority: int) -> deque[QueueConsumer]:
        """Where consumers of this priority wait."""
        for each, queue in self._waiting:
            if each == priority:
                return queue
        made = deque[QueueConsumer]()
        self._waiting = tuple(sorted([*self._waiting, (priority, made)], key=_priority, reverse=True))
        return made

    def _activate(self) -> None:
        """The next consumer is active, once nothing is leased that the last one had."""
        while self._active is None and self._consumers and not self._consumers_have_some:
            outlet, self._active = next(iter(self._consumers.items()))
            self.on_demand(outlet)

    def _dispatch(self, entry: Entry) -> bool:
        """Lease it to the next eligible waiting consumer; False if there is none, or some are asked in a later turn."""
        asked = False
        for _, waiting in self._waiting:
            tries = len(waiting)
            while tries and waiting:
                if asked and self.turns.is_over():
                    self._ask_later(waiting, tries)
                    return False
                tries -= 1
                consumer = waiting[0]
                try:
                    if not consumer.outlet.ready():
                        consumer.waits = False
                        waiting.popleft()
                        continue
                    waiting.rotate(-1)
                    limit = consumer.limit
                    # Most take anything: asked here, to save a call for each message.
                    takes_all = consumer.search is None and (limit is None or entry.length <= limit)
                    if not (takes_all and entry.eligibility is ANYONE) and not self._may_have(
                        consumer, entry
                    ):
                        asked = True
                        continue
                except Exception:
                    self.end_link(consumer.outlet)
                    tries = len(waiting)
                    continue
                try:
                    if self._lease(entry, consumer):
                        return True
                except NotTakenError:
                    if entry.group is not None:
                        self._groups.unleased(entry.group, entry)
                    continue  # another may take it
                if entry.group is not None:
                    self._groups.unleased(entry.group, entry)
                tries = len(waiting)
        return False

    def _ask_later(self, first: deque[QueueConsumer], tries: int) -> None:
        """Have consumers look for themselves that wait, and were not asked: so many of the first queue, and all behind it."""
        unasked: list[QueueConsumer] = []
        for _, waiting in self._waiting:
            if waiting is first:
                unasked += [waiting.popleft() for _ in range(tries)]
            elif unasked:
                unasked += waiting
                waiting.clear()
        for consumer in unasked:
            consumer.waits, consumer.resumes = False, True
        turns = self.turns
        looking = each_in_turns(turns, iter(unasked), self._look_on)
        turns.later(partial(take_steps, turns, looking))

    def _may_have(self, consumer: QueueConsumer, entry: Entry) -> bool:
        """Whether a consumer that waits takes the message."""
        if entry.eligibility is not ANYONE and not entry.eligibility.admits(consumer.key):
            return False
        if consumer.search is None and (consumer.limit is None or entry.length <= consumer.limit):
            return True
        if consumer.takes(entry):
            return True
        if consumer.has_passed(entry):
            self._resume(consumer)  # later: another may take it
        return False

    def _lease(self, entry: Entry, consumer: QueueConsumer) -> bool:
        """Lease it; False if the outlet failed: then the message is neither available nor leased.

        Raises:
            NotTakenError: the peer cannot take it; the same holds, and the consumer will not be offered it again.
        """
        entry.available = False
        entry.outlet_key = consumer.key
        entry.turn = turn = entry.turn + 1
        if entry.noted:
            self._available.forget_note(entry)
        if entry.group is not None:
            self._groups.leased(entry.group, entry, consumer.key)
        try:
            consumer.outlet.give(entry.aged(self._clock.now()) if entry.ages else entry.content, entry)
        except NotTakenError as refusal:
            entry.turn -= 1  # it did not go out
            self._pulled.pop(entry, None)
            self._available.begin_search(consumer)
            self._leave_to_others(entry, consumer, refusal)
            raise
        except Exception:
            answered = entry.turn != turn or entry.available or entry.ended
            if not answered:
                entry.turn -= 1  # it did not go out
            self.end_link(consumer.outlet)
            return answered
        return True

    def _leave_to_others(self, entry: Entry, reader: QueueReader, refusal: NotTakenError) -> None:
        """The peer of a reader cannot take a message: remember that, and log it once for each message."""
        reader.note_not_taken(entry)
        known = self._left_to_others
        if len(known) > self.held.length + _STALE:
            known = self._left_to_others = {each: None for each in known if not each.ended}
        _log.log(
            logging.DEBUG if entry in known else logging.WARNING,
            "%r: message %d of %d octets stays for other consumers than %r, which cannot take it: %s",
            self,
            unpack_sequence(entry.order),
            entry.length,
            reader.outlet,
            refusal,
        )
        known[entry] = None

    def _give_copy(self, browser: QueueBrowser, entry: Entry) -> bool:
        """Show a message to a browser; False if its peer cannot take it."""
        try:
            browser.outlet.give(entry.aged(self._clock.now()) if entry.ages else entry.content, None)
        except NotTakenError as refusal:
            self._leave_to_others(entry, browser, refusal)
            return False
        return True

    def _restore(self, entry: Entry) -> None:
        """Offer again what could not be given, in its old place; nothing else has changed."""
        if self._closed:
            return
        if entry.group is not None:
            self._groups.returned(entry.group, entry)
        elif not self._dispatch(entry):
            self._available.add(entry)
        self._on_change()

    def _show(self, browser: QueueBrowser) -> None:
        outlet, is_over = browser.outlet, self.turns.is_over
        while outlet.ready():
            entry = browser.find(self._available.all_blocks, is_over)
            if entry is None:
                if browser.pauses:
                    self._resume(browser)
                    return
                too_large = browser.too_large
                if too_large is not None:
                    outlet.outgrow(too_large.length)
                outlet.rest(0)
                return
            self._give_copy(browser, entry)
            if is_over() and outlet.ready():
                self._resume(browser)
                return
        outlet.rest(self.available)

    def _resume(self, taker: QueueReader) -> None:
        """Go on looking when others have had their turn."""
        if not taker.resumes:
            taker.resumes = True
            turns = self.turns
            if turns is ENDLESS:
                taker.outlet.peer.start_soon(self._wait_and_look_on, taker)
            else:
                turns.later(partial(self._look_on, taker))

    async def _wait_and_look_on(self, taker: QueueReader) -> None:
        await trio.lowlevel.checkpoint()
        self._look_on(taker)

    def _look_on(self, taker: QueueReader) -> None:
        taker.resumes = False
        if taker.outlet in self.outlets:
            self.on_demand(taker.outlet)

    # -- back -------------------------------------------------------------------------------

    def redelivery_time(self, failures: int, annotations: Mapping[Any, Any] | None) -> float | None:
        """As ``EntryQueue``."""
        asked = None if annotations is None else annotations.get(_DELIVERY_TIME)
        if isinstance(asked, int) and not isinstance(asked, bool):
            now = self._clock.now()
            due = min(self._clock.from_wall(asked), now + LONGEST_DELAY)
            return due if due > now else None
        delay = self.policy.delay_after(failures) if failures else 0
        return self._clock.now() + delay if delay else None

    def refuse(self, entry: Entry, key: object) -> None:
        """Keep a message from the receiver of this key, while that receiver is there (3.4.5)."""
        if not self._closed:
            self._refusals.add(entry, key)

    def forget_refusals_by(self, key: OutletKey) -> None:
        """A receiver is gone: what it refused for itself may go to any other, also to one of the same name."""
        self._refusals.forget(key)
        self._readmit_some()

    def forget_refusals_of(self, entry: Entry) -> None:
        """A message is gone for good."""
        self._refusals.remove(entry)

    def _readmit_some(self) -> None:
        self._refusals.go_on()
        if self._refusals.unfinished:
            self._deadline_timer.schedule(self._clock.now())

    def may_grow(self, before: int, size: int) -> bool:
        """As ``EntryQueue``."""
        limits = (outlet.max_message_size for outlet in self.outlets)
        return not any(limit is not None and before <= limit < size for limit in limits)

    def recount(self, entry: Entry, before: int) -> None:
        """As ``EntryQueue``."""
        self.held.recount(entry, before)

    def put_back(self, entry: Entry) -> None:
        """A lease has ended, and the message is available again, in its old place, once it is due."""
        if self._closed:
            return
        limit = self.policy.delivery_limit
        if limit is not None and entry.failures >= limit:
            self._end_leased(entry, "delivery-limit")
        elif entry.deadline is not None and entry.deadline <= self._clock.now():
            self._end_leased(entry, "expired")
        elif entry.due is not None:
            self._delay(entry, leased=True)
        elif entry.group is not None:
            self._groups.returned(entry.group, entry)
        elif not self._dispatch(entry):
            self._available.add(entry)
        if self._bounded and self.policy.bound == "ready":
            self._drop_excess()
        self._on_change()

    def _delay(self, entry: Entry, *, leased: bool) -> None:
        """Have a message wait until it is due; ``leased`` says whether a lease on it has just ended."""
        self._deadline_timer.schedule(self.held.delay(entry))
        if entry.group is not None:
            self._groups.delayed(entry.group, entry, leased=leased)

    def _end_delay(self, entry: Entry) -> None:
        """A message is due, or has expired while it waited."""
        entry.due = None
        if entry.deadline is not None and entry.deadline <= self._clock.now():
            if entry.group is not None:
                self._groups.removed(entry.group, entry)
            self.held.end(entry, "expired")
        elif entry.group is not None:
            self._groups.due(entry.group, entry)
        elif not self._dispatch(entry):
            self._available.add(entry)
        self._show_to_browsers(entry)
        if self._bounded and self.policy.bound == "ready":
            self._drop_excess()
        self._on_change()

    def _drop_excess(self) -> None:
        """What came back may be more than there is room for, where only what is ready counts."""
        while not self._closed and self.held.is_full(-1, -1) and self.policy.overflow == "drop-oldest":
            entry = self._available.oldest()
            if entry is None or self.held.bound_for_death:
                return
            self._remove_available(entry, "overflow")
            turns = self.turns
            if turns.is_over():
                turns.later(self._drop_excess)
                return

    def drop(self, entry: Entry) -> None:
        """A lease has ended, and with it its message: it was processed."""
        if self._closed:
            return
        self.held.figures["accepted"] += 1
        if entry.group is not None:
            self._groups.ended(entry.group)
        self.held.forget(entry)
        self._on_change()

    def reject(self, entry: Entry, condition: str | None, description: str | None) -> None:
        """A lease has ended, and with it its message: it is no good."""
        if self._closed:
            return
        self._end_leased(entry, "rejected", condition, description)
        self._on_change()

    def _end_leased(
        self, entry: Entry, reason: Death, condition: str | None = None, description: str | None = None
    ) -> None:
        if entry.group is not None:
            self._groups.ended(entry.group)
        self.held.end(entry, reason, condition, description)

    def _remove_available(self, entry: Entry, reason: Death) -> None:
        self._available.remove(entry)
        if entry.group is not None:
            self._groups.removed(entry.group, entry)
        self.held.end(entry, reason)

    def _on_change(self) -> None:
        """A lease has ended, or a message is here: another consumer may become the active one."""
        if self._active is None and self.policy.single_active:
            self._activate()

    def on_gone(self, entry: Entry) -> None:  # noqa: ARG002
        """A message is gone for good."""
        self._on_room()

    def _on_room(self) -> None:
        if self._blocked:
            self._unblock()
        if self._kept_by is not None and not self.held.length:
            self.check_used()

    def _unblock(self) -> None:
        blocked, self._blocked = self._blocked, {}
        for inlet, call in blocked.items():
            self.attempt(inlet, call, inlet)

    # -- dead letters -----------------------------------------------------------------------

    def find_dead_letters(self, address: str) -> Node:
        """As ``deadletters.Source``."""
        if self.container is None:
            raise RefusedError(Condition.NOT_FOUND, f"{self.address!r} is in no container")
        if address == self.address:
            raise RefusedError(Condition.NOT_ALLOWED, "a queue cannot be its own dead-letter address")
        return self.container.find(address).for_dead_letters()

    def publication_of(self, content: Content) -> Publication | None:
        """As ``deadletters.Source``."""
        return content.publication

    def to_dead_letter(
        self, content: Content, reason: Death, condition: str | None, description: str | None
    ) -> Content:
        """As ``deadletters.Source``."""
        return content.dead(
            self.address, reason, self._clock.wall(), condition=condition, description=description
        )

    # -- time -------------------------------------------------------------------------------

    def sweep(self) -> None:
        """End what has expired and is not leased, offer what is due; delete the queue if it was not used for too long."""
        if self.held.deadlines or self.held.delayed:
            turns = self.turns
            for entry in self.held.expired():
                self._remove_available(entry, "expired")
                if turns.is_over():
                    self._sweep_later()
                    return
            for entry in self.held.delayed.pop_due(self._clock.now()):
                self._end_delay(entry)
                if turns.is_over():
                    self._sweep_later()
                    return
        if self._refusals.unfinished:
            self._readmit_some()
        if self._unused_since is not None and self._end_of_use() <= self._clock.now():
            self._go()

    def _sweep_later(self) -> None:
        if not self._sweeps:
            self._sweeps = True
            self.turns.later(self._sweep_rest)

    def _sweep_rest(self) -> None:
        self._sweeps = False
        if not self._closed:
            self.sweep()
            self._deadline_timer.check()

    def touch(self) -> None:
        """The queue is used: ``policy.expires`` counts from now on, while there is no receiver; under trio."""
        if self.policy.expires is not None and not self.outlets:
            self._unused_since = self._clock.now()
            self._deadline_timer.schedule(self._end_of_use())

    def _end_of_use(self) -> float:
        since, expires = self._unused_since, self.policy.expires
        return math.inf if since is None or expires is None else since + expires

    def _next_due(self) -> float:
        if self._sweeps:
            return math.inf  # what is due is being done, and the timer is set after that
        if self._refusals.unfinished:
            return self._clock.now()
        return min(self.held.next_deadline(), self._end_of_use())

    # -- the end ----------------------------------------------------------------------------

    def check_used(self) -> None:
        """Whether a temporary queue is still needed; the container is notified if not."""
        if self._closed or self._kept_by is None:
            return
        retaining_nodes = {
            "maker": self.has_maker,
            "links": bool(self.inlets or self.outlets or self.attaching_links),
            "messages": self.held.length > 0,
        }
        if not any(retaining_nodes[queue] for queue in self._kept_by):
            self._go()

    def _go(self) -> None:
        self.close()
        if self._on_unused is not None:
            self._on_unused(self)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._unused_since = None
        self._deadline_timer.cancel()
        self._refusals.clear()
        turns = self.turns
        freeing = paced(turns, self.held.close())
        super().close()
        take_steps(turns, freeing)
        self._unblock()  # what waits for room here may go elsewhere

    def _check_open(self) -> None:
        if self._closed:
            raise RefusedError(Condition.NOT_FOUND, f"{self.address!r} is deleted")

    def __repr__(self) -> str:
        return (
            f"<Queue {self.address!r} length={self.held.length} links={len(self.inlets) + len(self.outlets)}>"
        )


def _priority(waiting: tuple[int, deque[QueueConsumer]]) -> int:
    return waiting[0]
