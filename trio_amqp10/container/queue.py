"""Queue: messages in order, each for one of the peers that compete for them (3.3).

In order and fairly
-------------------

What arrives gets a place: behind all others of its priority and of higher ones (3.2.1). It is accepted
once it is held here. What is held is available, or leased to an outlet, until the lease is answered:

================  ==================================================================================
accepted          it is gone
rejected          it is gone: the peer finds it invalid, and it would find it so again
released          it is available again, in its old place; nothing else changes
modified          the same; ``failed`` counts an attempt, ``undeliverable_here`` keeps it from the
                  link that said so, annotations are merged into its own
lost              the same as a failed attempt: it may have been processed, so the next peer is told
================  ==================================================================================

Available messages lie on one shelf for each set of links that may not have what is on it: nearly
always there is one shelf. The next message for an outlet is the first of those on its shelves; a
consumer that selects looks for it behind the place that it has looked at (``takers``).

An outlet that is ready and finds nothing waits in ``_ready``, in turn. So either nobody waits, or
nothing available may go to those who do; whoever makes a message available offers it there first.

In time
-------

A message whose ttl (3.2.1) or absolute-expiry-time (3.2.4) has come is dropped, unless a peer has it
already: it then is when it comes back. There is no timer: whoever touches the queue sweeps it first.

Knows messages and leases; knows no links, and no store: what is held here is gone with the process.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.errors import Condition, LocalProtocolError

from .clock import Clock
from .entry import NOBODY, Entry, order_of
from .hops import for_next_hop
from .node import Arrival, Inlet, Node, Outlet, Peer, RefusedError
from .shelf import Shelf
from .takers import Browser, Consumer, Selector
from .terms import Terms, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.message import Message

__all__ = ["Queue", "accept"]

_log = logging.getLogger("trio_amqp10.container")

_FORGOTTEN: Final = 64
"""Deadlines of messages that are gone, above as many as there are messages, before they are thrown out."""


class Queue(Node):
    """Holds messages until somebody takes them, or they expire.

    Args:
        address: what links name to reach it.
        max_length: messages that it holds before it takes no more, so that senders wait; None for
            any number.
        kept_by: what keeps a temporary queue alive: any of ``"maker"``, ``"links"`` and
            ``"messages"``; None for a queue that stays.
        on_unused: called when nothing keeps it any more.
        clock: what messages expire by.

    Raises:
        LocalProtocolError: ``max_length`` is not at least 1.
    """

    takes = gives = filters = leasing = True
    capabilities = ("queue",)

    def __init__(
        self,
        address: str,
        *,
        max_length: int | None = None,
        kept_by: frozenset[str] | None = None,
        on_unused: Callable[[Queue], object] | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(address)
        if max_length is not None and max_length < 1:
            raise LocalProtocolError(
                f"max_length={max_length}: at least 1 is possible, or None for any number"
            )
        self.max_length = max_length
        self.has_maker = False
        self._kept_by = kept_by
        self._on_unused = on_unused
        self._clock = clock or Clock()
        self._closed = False
        self._length = 0
        self._sequence = itertools.count()
        self._open = Shelf[Entry]()
        self._shelves: dict[frozenset[object], Shelf[Entry]] = {NOBODY: self._open}
        self._consumers: dict[Outlet, Consumer] = {}
        self._selectors: dict[Selector, None] = {}
        self._browsers: dict[Outlet, Browser] = {}
        self._ready: deque[Consumer] = deque()
        self._blocked: dict[Inlet, None] = {}
        self._deadlines: list[tuple[float, int, Entry]] = []

    def __len__(self) -> int:
        """Messages held, those under lease among them."""
        return self._length

    @property
    def available(self) -> int:
        """Messages that nobody has a lease on."""
        return sum(map(len, self._shelves.values()))

    # -- in ---------------------------------------------------------------------------------

    def check_inlet(self, peer: Peer) -> None:
        self._check_open()
        super().check_inlet(peer)

    def on_arrivals(self, inlet: Inlet) -> None:
        self.sweep()
        limit = self.max_length
        origin = inlet.peer.container_id
        while limit is None or self._length < limit:
            arrival = inlet.take()
            if arrival is None:
                self._blocked.pop(inlet, None)
                return
            message = for_next_hop(arrival.message)
            self.put(message, origin, terms_of(message))
            accept(arrival)
        self._blocked[inlet] = None

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self._blocked.pop(inlet, None)
        self.check_used()

    def put(self, message: Message, origin: str | None, terms: Terms) -> None:
        """Hold a message that came from the peer of this container-id."""
        priority, ttl, expiry = terms
        entry = Entry(self, order_of(priority, next(self._sequence)), message, origin)
        if ttl is not None or expiry is not None:
            now = self._clock.now()
            deadline = self._clock.deadline(now, ttl, expiry)
            if deadline < now:
                _log.debug("%r: a message had expired when it came", self)
                return
            entry.limit(now, deadline, ttl)
        self._length += 1
        if not self._give(entry):
            self._store(entry)
            for browser in list(self._browsers.values()):
                self._show(browser)

    def _store(self, entry: Entry) -> None:
        """Make available what nobody who waits may have."""
        entry.available = True
        shelf = self._shelves.get(entry.excluded)
        if shelf is None:
            shelf = self._shelves[entry.excluded] = Shelf()
        shelf.add(entry)
        for selector in self._selectors:
            # Who waits has just been offered it.
            if not selector.waits and entry.order <= selector.cursor and selector.key not in entry.excluded:
                selector.early.add(entry)
                entry.noted = True
        if entry.deadline is not None and not entry.timed:
            entry.timed = True
            heapq.heappush(self._deadlines, (entry.deadline, entry.order, entry))

    # -- out --------------------------------------------------------------------------------

    def check_outlet(self, peer: Peer, *, copying: bool, target: str | None) -> None:
        self._check_open()
        super().check_outlet(peer, copying=copying, target=target)

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        wants = outlet.wants
        if outlet.copying:
            self._browsers[outlet] = Browser(outlet, wants)
        elif wants is None:
            self._consumers[outlet] = Consumer(outlet)
        else:
            selector = self._consumers[outlet] = Selector(outlet, wants)
            self._selectors[selector] = None

    def on_demand(self, outlet: Outlet) -> None:
        self.sweep()
        browser = self._browsers.get(outlet)
        if browser is not None:
            self._show(browser)
            return
        consumer = self._consumers.get(outlet)
        if consumer is None:
            return
        while outlet.ready():
            entry = self._take(consumer)
            if entry is None:
                if isinstance(consumer, Selector) and consumer.pauses:
                    self._resume(consumer)
                    return
                outlet.rest(0)
                if not consumer.waits and outlet.ready():
                    consumer.waits = True
                    self._ready.append(consumer)
                return
            self._lease(entry, consumer)
        outlet.rest(self.available)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        self._browsers.pop(outlet, None)
        consumer = self._consumers.pop(outlet, None)
        if consumer is not None:
            if isinstance(consumer, Selector):
                del self._selectors[consumer]
            if consumer.waits:
                consumer.waits = False
                self._ready.remove(consumer)
        self.check_used()

    def _give(self, entry: Entry) -> bool:
        """Lease to the next in turn of those who wait; False if nobody does who may have it."""
        ready = self._ready
        for _ in range(len(ready)):
            consumer = ready[0]
            if not consumer.outlet.ready():
                consumer.waits = False
                ready.popleft()
                continue
            ready.rotate(-1)
            if entry.excluded and consumer.key in entry.excluded:
                continue
            if isinstance(consumer, Selector) and not consumer.wants(entry):
                continue
            self._lease(entry, consumer)
            return True
        return False

    def _lease(self, entry: Entry, consumer: Consumer) -> None:
        entry.available = False
        entry.outlet_key = consumer.key
        if entry.noted:
            self._forget_note(entry)
        consumer.outlet.give(entry.aged(self._clock.now()) if entry.ages else entry.message, entry)

    def _take(self, consumer: Consumer) -> Entry | None:
        """Take out the first available message that the consumer may have, and wants."""
        shelves = self._shelves
        if len(shelves) == 1 and consumer.__class__ is Consumer:
            return self._open.pop() if self._open else None
        key = consumer.key
        mine = [shelf for excluded, shelf in shelves.items() if key not in excluded]
        if isinstance(consumer, Selector):
            entry = consumer.find(mine)
        else:
            firsts = [first for shelf in mine if (first := shelf.first()) is not None]
            entry = min(firsts, key=lambda first: first.order, default=None)
        if entry is not None:
            self._take_down(entry)
        return entry

    def _take_down(self, entry: Entry) -> None:
        shelf = self._shelves[entry.excluded]
        shelf.remove(entry)
        if not shelf and shelf is not self._open:
            del self._shelves[entry.excluded]

    def _forget_note(self, entry: Entry) -> None:
        entry.noted = False
        for selector in self._selectors:
            selector.early.remove(entry)

    def _show(self, browser: Browser) -> None:
        outlet = browser.outlet
        while outlet.ready():
            entry = browser.find(list(self._shelves.values()))
            if entry is None:
                if browser.pauses:
                    self._resume(browser)
                else:
                    outlet.rest(0)
                return
            outlet.give(entry.aged(self._clock.now()) if entry.ages else entry.message, None)
        outlet.rest(self.available)

    def _resume(self, taker: Selector | Browser) -> None:
        """Go on looking when others have had their turn."""
        if not taker.resumes:
            taker.resumes = True
            taker.outlet.peer.start_soon(self._look_on, taker)

    async def _look_on(self, taker: Selector | Browser) -> None:
        await trio.lowlevel.checkpoint()
        taker.resumes = False
        if taker.outlet in self.outlets:
            self.on_demand(taker.outlet)

    # -- back -------------------------------------------------------------------------------

    def put_back(self, entry: Entry) -> None:
        """A lease has ended, and the message is available again, in its old place."""
        if self._closed:
            return
        if entry.deadline is not None and entry.deadline <= self._clock.now():
            self.drop(entry)
        elif not self._give(entry):
            self._store(entry)

    def drop(self, entry: Entry) -> None:
        """A lease has ended, and with it its message."""
        if self._closed:
            return
        entry.ended = True
        self._length -= 1
        if self._blocked:
            blocked, self._blocked = self._blocked, {}
            for inlet in blocked:
                self.on_arrivals(inlet)
        if self._kept_by is not None and not self._length:
            self.check_used()

    def sweep(self) -> None:
        """Drop what has expired and nobody has; forget the deadlines of what is gone."""
        deadlines = self._deadlines
        if not deadlines:
            return
        now = self._clock.now()
        while deadlines and deadlines[0][0] <= now:
            entry = heapq.heappop(deadlines)[2]
            if entry.available and not entry.ended:
                entry.available = False
                self._take_down(entry)
                if entry.noted:
                    self._forget_note(entry)
                self.drop(entry)
        if len(deadlines) > 2 * self._length + _FORGOTTEN:
            deadlines[:] = [each for each in deadlines if not each[2].ended]
            heapq.heapify(deadlines)

    # -- the end ----------------------------------------------------------------------------

    def check_used(self) -> None:
        """Whether a temporary queue is still kept by something; the container is told if not."""
        if self._closed or self._kept_by is None:
            return
        keepers = {
            "maker": self.has_maker,
            "links": bool(self.inlets or self.outlets),
            "messages": self._length > 0,
        }
        if not any(keepers[keeper] for keeper in self._kept_by):
            self.close()
            if self._on_unused is not None:
                self._on_unused(self)

    def close(self) -> None:
        self._closed = True
        self._shelves = {NOBODY: self._open}
        self._open.clear()
        self._deadlines.clear()
        self._length = 0
        super().close()

    def _check_open(self) -> None:
        if self._closed:
            raise RefusedError(Condition.NOT_FOUND, f"{self.address!r} is deleted")

    def __repr__(self) -> str:
        return f"<Queue {self.address!r} length={self._length} links={len(self.inlets) + len(self.outlets)}>"


def accept(arrival: Arrival) -> None:
    """It is in safe hands, whether its sender still wants to know or not."""
    try:
        arrival.accept()
    except LocalProtocolError as gone:  # the message came all the same; its sender cannot know
        _log.debug("not accepted: %s", gone)
