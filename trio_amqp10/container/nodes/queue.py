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
                  link that said so, annotations are merged into its own; it dies of too many attempts
lost              the outcome that its source has by default (3.5.3); without one, the same as a failed attempt,
                  because it may have been processed
================  ==================================================================================

An outlet that is ready and finds nothing waits in ``_ready``, in turn. So either none waits, or no available
message may go to those that do; a message that becomes available is offered to them first.

A message larger than the peer of an outlet takes (2.7.3) is passed over for that outlet and stays for the others. An
outlet for which only such messages are left is ended, with ``amqp:link:message-size-exceeded``; so is a browser that
has seen all others. An outlet that raises is ended too, and what it was given in that moment is given to another.

What makes a message die is told in ``holding``, and where it then goes in ``deadletters``; what is available, and
to whom, in ``stock``; how messages of a group stay together, in ``groups``; the rules, in ``policy``; what survives
the process, in ``ledger``.

Knows inlets and outlets; knows no links.

Longer than 400 lines: what comes in, goes out and comes back shares the order of what is told above.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.errors import Condition, LocalProtocolError

from .entry import EVERYWHERE, Entry
from .holding import Holding
from .node import Outlet, Peer, RefusedError
from .origins import origin_of
from .refusals import accept, refuse
from .takers import Browser, Consumer

if TYPE_CHECKING:
    from collections.abc import Callable

    from .clock import Clock
    from .content import Content
    from .ledger import Book
    from .node import Arrival, Inlet, Interest
    from .policy import QueuePolicy
    from .takers import Taker

__all__ = ["Queue"]

_STALE: Final = 64
"""Pulled messages whose leases may have ended, above as many as there are messages, before they are forgotten."""


class Queue(Holding):
    """Holds messages until somebody takes them, or they expire.

    Args:
        address: what links name to reach it.
        policy: its rules.
        kept_by: what keeps a temporary queue alive: any of ``"maker"``, ``"links"`` and
            ``"messages"``; None for a queue that stays.
        on_unused: called when nothing keeps it any more.
        clock: what messages expire by.
        book: what keeps messages that are to survive; None for a queue that is gone with the process.

    Attributes:
        policy: as given; ``update`` changes it.
        octets: of the messages held.
        figures: how many messages arrived, how many were accepted by who had them, died of each
            cause, or were refused.
    """

    takes = gives = filters = leasing = True
    capabilities = ("queue",)

    def __init__(
        self,
        address: str,
        *,
        policy: QueuePolicy | None = None,
        kept_by: frozenset[str] | None = None,
        on_unused: Callable[[Queue], object] | None = None,
        clock: Clock | None = None,
        book: Book | None = None,
    ) -> None:
        super().__init__(address, policy, clock, book)
        self.has_maker = False
        self._kept_by = kept_by
        self._on_unused = on_unused
        self._consumers: dict[Outlet, Consumer] = {}
        self._active: Consumer | None = None
        self._browsers: dict[Outlet, Browser] = {}
        self._ready: deque[Consumer] = deque()
        self._pulled: dict[Entry, int] = {}
        """Those that were leased by ``pull``, of a queue with a single active consumer, and which ``turn`` that was."""
        self._blocked: dict[Inlet, None] = {}

    def update(self, policy: QueuePolicy) -> None:
        """Go by other rules from now on; what is held stays.

        Raises:
            LocalProtocolError: who may take, and how, cannot be changed.
        """
        for name in ("exclusive", "single_active", "grouped"):
            if getattr(policy, name) != getattr(self.policy, name):
                raise LocalProtocolError(f"{name} of {self!r} cannot be changed: delete it and make it anew")
        self.policy = policy
        self._on_room()

    # -- in ---------------------------------------------------------------------------------

    def check_inlet(self, peer: Peer) -> None:
        self._check_open()
        super().check_inlet(peer)

    def on_arrivals(self, inlet: Inlet) -> None:
        self.sweep()
        origin = origin_of(inlet.peer)
        while True:
            policy = self.policy
            full = policy.is_full(self._length, self.octets)
            if self._must_wait(full and policy.overflow == "wait"):
                self._blocked[inlet] = None
                return
            arrival = inlet.take()
            if arrival is None:
                self._blocked.pop(inlet, None)
                return
            if full and policy.overflow != "wait" and not self._make_room():
                self.figures["refused"] += 1
                refuse(arrival, Condition.RESOURCE_LIMIT_EXCEEDED, f"{self.address!r} is full")
                continue
            if self.put(arrival.content, origin, inlet, arrival):
                accept(arrival)

    def _must_wait(self, full: bool) -> bool:
        book = self._book
        if book is None:
            return full
        if book.committing:
            return False  # a transaction that is committed has no time to wait
        if book.crowded:
            book.when_roomy(self._unblock)
            return True
        return full

    def check_room(self, messages: int, octets: int) -> None:
        policy = self.policy
        # Each is taken while there is room for one more, and what is before the last has at most so many octets.
        before = octets - 1 if messages > 1 else 0
        if policy.overflow == "reject" and policy.is_full(self._length + messages - 1, self.octets + before):
            raise RefusedError(
                Condition.RESOURCE_LIMIT_EXCEEDED, f"{self.address!r} has no room for {messages} messages"
            )

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self._blocked.pop(inlet, None)
        self.check_used()

    def put(
        self,
        content: Content,
        origin: str | None,
        inlet: Inlet | None = None,
        arrival: Arrival | None = None,
    ) -> bool:
        """Hold a message that came from this origin.

        Returns:
            Whether it is held. If not, it is on its way to the disk, and ``arrival`` gets its answer when it is
            there, or cannot be.
        """
        return self._hold(content, origin, inlet, arrival)

    @property
    def is_full(self) -> bool:
        """Whether it takes no more as it is."""
        if not self.policy.is_full(self._length, self.octets):
            return False
        self.sweep()
        return self.policy.is_full(self._length, self.octets)

    def gather(self, content: Content, origin: str | None) -> bool:
        """Hold one more; False if there is no room for it, and none could be made."""
        if self.is_full and not self._make_room():
            return False
        self.put(content, origin)
        return True

    def _offer(self, entry: Entry) -> None:
        super()._offer(entry)
        if entry.available:
            for browser in list(self._browsers.values()):
                self.attempt(browser.outlet, self._show, browser)
        self._on_change()

    # -- out --------------------------------------------------------------------------------

    def check_outlet(self, peer: Peer, *, copying: bool, target: str | None, interest: Interest) -> None:
        self._check_open()
        super().check_outlet(peer, copying=copying, target=target, interest=interest)
        if self.policy.exclusive and self._consumers and not copying:
            raise RefusedError(Condition.RESOURCE_LOCKED, f"{self.address!r} has its one consumer already")

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        wants = outlet.wants
        if outlet.copying:
            self._browsers[outlet] = Browser(outlet, wants)
            return
        consumer = self._consumers[outlet] = Consumer(outlet, wants)
        if wants is not None:
            self._stock.begin_search(consumer)
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
        while outlet.ready():
            entry = self._stock.take(consumer)
            if entry is None:
                self._on_nothing(consumer)
                return
            if not self._lease(entry, consumer):
                self._restore(entry)
                return
            if entry.group is not None:
                self._groups.settle(entry.group)
        outlet.rest(self.available)

    def pull(self, outlet: Outlet) -> bool:
        """As ``Node.pull``; a copy of the first message, for an outlet that only looks.

        A message larger than the peer takes (2.7.3) is passed over. With a filter, all that is available may be looked at.
        """
        if self._closed:
            return False
        self.sweep()
        try:
            return self._show_first(outlet) if outlet.copying else self._lease_first(outlet)
        except Exception:
            self.end_link(outlet)
            return False

    def _show_first(self, outlet: Outlet) -> bool:
        browser = Browser(outlet, outlet.wants)
        entry = browser.find(self._stock.shelves)
        while entry is None and browser.pauses:
            entry = browser.find(self._stock.shelves)
        if entry is not None:
            outlet.give(entry.aged(self._clock.now()) if entry.ages else entry.content, None)
        return entry is not None

    def _lease_first(self, outlet: Outlet) -> bool:
        consumer = Consumer(outlet, outlet.wants)
        try:
            entry = self._stock.take(consumer)
            while entry is None and consumer.search is not None and consumer.search.pauses:
                entry = self._stock.take(consumer)
        finally:
            self._stock.searches.pop(consumer, None)
        if entry is None:
            return False
        if self.policy.single_active:
            if len(self._pulled) > self._length + _STALE:
                self._forget_pulled()
            self._pulled[entry] = entry.turn + 1
        if not self._lease(entry, consumer):
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

    def _on_nothing(self, consumer: Consumer) -> None:
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
            self._ready.append(consumer)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        self._browsers.pop(outlet, None)
        consumer = self._consumers.pop(outlet, None)
        if consumer is not None:
            self._stock.searches.pop(consumer, None)
            if consumer.waits:
                consumer.waits = False
                self._ready.remove(consumer)
            if consumer is self._active:
                self._active = None
                self._on_change()
        self.check_used()

    def _activate(self) -> None:
        """The next consumer is active, once nothing is leased that the last one had."""
        while self._active is None and self._consumers and not self._consumers_have_some:
            outlet, self._active = next(iter(self._consumers.items()))
            self.on_demand(outlet)

    def _give(self, entry: Entry) -> bool:
        """Lease it to the next consumer in turn that waits and takes it; False if there is none."""
        while (consumer := self._next_for(entry)) is not None:
            if self._lease(entry, consumer):
                return True
            if entry.group is not None:
                self._groups.unleased(entry.group, entry)
        return False

    def _next_for(self, entry: Entry) -> Consumer | None:
        """The next consumer that waits and takes the message."""
        ready = self._ready
        tries = len(ready)
        while tries and ready:
            tries -= 1
            consumer = ready[0]
            try:
                if not consumer.outlet.ready():
                    consumer.waits = False
                    ready.popleft()
                    continue
                ready.rotate(-1)
                if entry.place is not EVERYWHERE and not entry.place.admits(consumer.key):
                    continue
                if (consumer.search is None and consumer.limit is None) or consumer.takes(entry):
                    return consumer
                if consumer.has_passed(entry):
                    self._resume(consumer)  # later: another may take it
            except Exception:
                self.end_link(consumer.outlet)
                tries = len(ready)
        return None

    def _lease(self, entry: Entry, consumer: Consumer) -> bool:
        """Lease it; False if the outlet failed, so that the message is in stock no more, and not leased either."""
        entry.available = False
        entry.outlet_key = consumer.key
        entry.turn = turn = entry.turn + 1
        if entry.noted:
            self._stock.forget_note(entry)
        if entry.group is not None:
            self._groups.leased(entry.group, entry, consumer.key)
        try:
            consumer.outlet.give(entry.aged(self._clock.now()) if entry.ages else entry.content, entry)
        except Exception:
            answered = entry.turn != turn or entry.available or entry.ended
            if not answered:
                entry.turn -= 1  # it did not go out
            self.end_link(consumer.outlet)
            return answered
        return True

    def _restore(self, entry: Entry) -> None:
        """Offer again what could not be given, in its old place; nothing else has changed."""
        if self._closed:
            return
        if entry.group is not None:
            self._groups.returned(entry.group, entry)
        elif not self._give(entry):
            self._stock.add(entry)
        self._on_change()

    def _show(self, browser: Browser) -> None:
        outlet = browser.outlet
        while outlet.ready():
            entry = browser.find(self._stock.shelves)
            if entry is None:
                if browser.pauses:
                    self._resume(browser)
                    return
                too_large = browser.too_large
                if too_large is not None:
                    outlet.outgrow(too_large.length)
                outlet.rest(0)
                return
            outlet.give(entry.aged(self._clock.now()) if entry.ages else entry.content, None)
        outlet.rest(self.available)

    def _resume(self, taker: Taker) -> None:
        """Go on looking when others have had their turn."""
        if not taker.resumes:
            taker.resumes = True
            taker.outlet.peer.start_soon(self._look_on, taker)

    async def _look_on(self, taker: Taker) -> None:
        await trio.lowlevel.checkpoint()
        taker.resumes = False
        if taker.outlet in self.outlets:
            self.on_demand(taker.outlet)

    # -- back -------------------------------------------------------------------------------

    def _on_change(self) -> None:
        if self._active is None and self.policy.single_active:
            self._activate()

    def _on_room(self) -> None:
        if self._blocked:
            self._unblock()
        if self._kept_by is not None and not self._length:
            self.check_used()

    def _unblock(self) -> None:
        blocked, self._blocked = self._blocked, {}
        for inlet in blocked:
            self.attempt(inlet, self.on_arrivals, inlet)

    # -- the end ----------------------------------------------------------------------------

    def check_used(self) -> None:
        """Whether a temporary queue is still kept by something; the container is told if not."""
        if self._closed or self._kept_by is None:
            return
        keepers = {
            "maker": self.has_maker,
            "links": bool(self.inlets or self.outlets or self.entering),
            "messages": self._length > 0,
        }
        if not any(keepers[keeper] for keeper in self._kept_by):
            self.close()
            if self._on_unused is not None:
                self._on_unused(self)

    def _check_open(self) -> None:
        if self._closed:
            raise RefusedError(Condition.NOT_FOUND, f"{self.address!r} is deleted")

    def __repr__(self) -> str:
        return f"<Queue {self.address!r} length={self._length} links={len(self.inlets) + len(self.outlets)}>"
