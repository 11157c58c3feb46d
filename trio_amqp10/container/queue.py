"""Queue: messages in order, each for one of the peers that compete for them (3.3).

In order and fairly
-------------------

What arrives gets the next *sequence number*, and is accepted once it is held here. What is held
is available, or leased to an outlet, until the lease is answered:

================  ==================================================================================
accepted          it is gone
rejected          it is gone: the peer finds it invalid, and it would find it so again
released          it is available again, in its old place; nothing else changes
modified          the same; ``failed`` counts an attempt, ``undeliverable_here`` keeps it from the
                  link that said so, annotations are merged into its own
lost              the same as a failed attempt: it may have been processed, so the next peer is told
================  ==================================================================================

Available messages are kept in one deque of those that were never leased, which is sorted for
nothing, and one heap for each set of links that may not have what is in it: nearly always there
is one heap, with nothing in it. The next message for an outlet is the lowest sequence number among
their heads.

An outlet that is ready and finds nothing waits in ``_ready``, in turn. So either nobody waits, or
nothing available may go to those who do; whoever makes a message available offers it there first.

Knows messages and leases; knows no links, and no store: what is held here is gone with the process.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Message

from .hops import for_next_hop
from .node import Arrival, Inlet, Node, Outlet, Peer, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Queue"]

_log = logging.getLogger("trio_amqp10.container")

_NOBODY: Final[frozenset[object]] = frozenset()


class _Entry:
    """A message that the queue holds, and the lease on it when it is given out."""

    __slots__ = ("available", "excluded", "message", "outlet_key", "queue", "sequence")

    def __init__(self, queue: Queue, sequence: int, message: Message) -> None:
        self.queue = queue
        self.sequence = sequence
        self.message = message
        self.available = True
        self.excluded = _NOBODY
        self.outlet_key: object = None

    def __lt__(self, other: _Entry) -> bool:
        return self.sequence < other.sequence

    def accepted(self) -> None:
        self.queue.drop_one()

    def rejected(self, condition: str | None, description: str | None) -> None:
        _log.debug("%r: a message was rejected, %.100s: %.1000s", self.queue, condition, description)
        self.queue.drop_one()

    def released(self) -> None:
        self._acquired()
        self.queue.put_back(self)

    def modified(
        self, *, failed: bool, undeliverable_here: bool, annotations: Mapping[Any, Any] | None
    ) -> None:
        self._acquired(failed=failed, annotations=annotations)
        if undeliverable_here:
            self.excluded |= {self.outlet_key}
        self.queue.put_back(self)

    def lost(self) -> None:
        self._acquired(failed=True)
        self.queue.put_back(self)

    def _acquired(self, *, failed: bool = False, annotations: Mapping[Any, Any] | None = None) -> None:
        """Note in header and annotations what happened; the bare message stays as it is (3.2)."""
        message = self.message
        if message.message_format != 0:
            return
        try:
            if message.first_acquirer:
                message.first_acquirer = False
            if failed:
                message.delivery_count = min(message.delivery_count + 1, 0xFFFFFFFF)
            if annotations:
                message.annotations = {**message.annotations, **annotations}
            self.message = Message.from_payload(message.to_payload())
        except (RemoteProtocolError, LocalProtocolError) as fault:
            _log.debug("%r: a message goes on unchanged: %s", self.queue, fault)


class _Consumer:
    """An outlet that takes messages away."""

    __slots__ = ("outlet", "waits")

    def __init__(self, outlet: Outlet) -> None:
        self.outlet = outlet
        self.waits = False


class _Browser:
    """An outlet that only looks: it sees what is available, in order, and then what comes."""

    __slots__ = ("_ahead", "_seen", "outlet")

    def __init__(self, outlet: Outlet) -> None:
        self.outlet = outlet
        self._ahead: deque[_Entry] = deque()
        self._seen = -1

    def next(self, queue: Queue) -> _Entry | None:
        """The first available message behind the last one seen."""
        for _ in range(2):
            while self._ahead:
                entry = self._ahead.popleft()
                self._seen = entry.sequence
                if entry.available:
                    return entry
            self._ahead.extend(queue.behind(self._seen))
        return None


class Queue(Node):
    """Holds messages until somebody takes them.

    Args:
        address: what links name to reach it.
        max_length: messages that it holds before it takes no more, so that senders wait; None for
            any number.
        kept_by: what keeps a temporary queue alive: any of ``"maker"``, ``"links"`` and
            ``"messages"``; None for a queue that stays.
        on_unused: called when nothing keeps it any more.

    Raises:
        LocalProtocolError: ``max_length`` is not at least 1.
    """

    takes = gives = leasing = True
    capabilities = ("queue",)

    def __init__(
        self,
        address: str,
        *,
        max_length: int | None = None,
        kept_by: frozenset[str] | None = None,
        on_unused: Callable[[Queue], object] | None = None,
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
        self._closed = False
        self._length = 0
        self._sequence = itertools.count()
        self._fresh: deque[_Entry] = deque()
        self._returned: dict[frozenset[object], list[_Entry]] = {}
        self._consumers: dict[Outlet, _Consumer] = {}
        self._browsers: dict[Outlet, _Browser] = {}
        self._ready: deque[_Consumer] = deque()
        self._blocked: dict[Inlet, None] = {}

    def __len__(self) -> int:
        """Messages held, those under lease among them."""
        return self._length

    @property
    def available(self) -> int:
        """Messages that nobody has a lease on."""
        return len(self._fresh) + sum(map(len, self._returned.values()))

    # -- in ---------------------------------------------------------------------------------

    def check_inlet(self, peer: Peer) -> None:
        self._check_open()
        super().check_inlet(peer)

    def on_arrivals(self, inlet: Inlet) -> None:
        limit = self.max_length
        while limit is None or self._length < limit:
            arrival = inlet.take()
            if arrival is None:
                self._blocked.pop(inlet, None)
                return
            self._put(for_next_hop(arrival.message))
            _accept(arrival)
        self._blocked[inlet] = None

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self._blocked.pop(inlet, None)
        self.check_used()

    def _put(self, message: Message) -> None:
        entry = _Entry(self, next(self._sequence), message)
        self._length += 1
        if not self._give(entry):
            self._fresh.append(entry)
            for browser in list(self._browsers.values()):
                self._show(browser)

    # -- out --------------------------------------------------------------------------------

    def check_outlet(self, peer: Peer, *, copying: bool, target: str | None) -> None:
        self._check_open()
        super().check_outlet(peer, copying=copying, target=target)

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        if outlet.copying:
            self._browsers[outlet] = _Browser(outlet)
        else:
            self._consumers[outlet] = _Consumer(outlet)

    def on_demand(self, outlet: Outlet) -> None:
        browser = self._browsers.get(outlet)
        if browser is not None:
            self._show(browser)
            return
        consumer = self._consumers.get(outlet)
        if consumer is None:
            return
        key = outlet.key
        while outlet.ready():
            entry = self._next(key)
            if entry is None:
                outlet.rest(0)
                if not consumer.waits and outlet.ready():
                    consumer.waits = True
                    self._ready.append(consumer)
                return
            self._lease(entry, outlet)
        outlet.rest(self.available)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        self._browsers.pop(outlet, None)
        consumer = self._consumers.pop(outlet, None)
        if consumer is not None and consumer.waits:
            consumer.waits = False
            self._ready.remove(consumer)
        self.check_used()

    def _give(self, entry: _Entry) -> bool:
        """Lease to the next in turn of those who wait; False if nobody does who may have it."""
        ready = self._ready
        for _ in range(len(ready)):
            consumer = ready[0]
            outlet = consumer.outlet
            if not outlet.ready():
                consumer.waits = False
                ready.popleft()
                continue
            ready.rotate(-1)
            if entry.excluded and outlet.key in entry.excluded:
                continue
            self._lease(entry, outlet)
            return True
        return False

    def _lease(self, entry: _Entry, outlet: Outlet) -> None:
        entry.available = False
        entry.outlet_key = outlet.key
        outlet.give(entry.message, entry)

    def _next(self, key: object) -> _Entry | None:
        """Take out the first available message that the outlet of this key may have."""
        if not self._returned:
            return self._fresh.popleft() if self._fresh else None
        first = self._fresh[0] if self._fresh else None
        group: frozenset[object] | None = None
        for excluded, heap in self._returned.items():
            if key not in excluded and (first is None or heap[0] < first):
                first, group = heap[0], excluded
        if first is None:
            return None
        if group is None:
            return self._fresh.popleft()
        heap = self._returned[group]
        heapq.heappop(heap)
        if not heap:
            del self._returned[group]
        return first

    def _show(self, browser: _Browser) -> None:
        outlet = browser.outlet
        while outlet.ready():
            entry = browser.next(self)
            if entry is None:
                outlet.rest(0)
                return
            outlet.give(entry.message, None)
        outlet.rest(self.available)

    def behind(self, sequence: int) -> list[_Entry]:
        """What is available behind this sequence number, in order."""
        found = list(itertools.takewhile(lambda entry: entry.sequence > sequence, reversed(self._fresh)))
        for heap in self._returned.values():
            found += [entry for entry in heap if entry.sequence > sequence]
        found.sort()
        return found

    # -- back -------------------------------------------------------------------------------

    def put_back(self, entry: _Entry) -> None:
        """A lease has ended, and the message is available again, in its old place."""
        if self._closed:
            return
        entry.available = True
        if not self._give(entry):
            heapq.heappush(self._returned.setdefault(entry.excluded, []), entry)

    def drop_one(self) -> None:
        """A lease has ended, and with it its message."""
        if self._closed:
            return
        self._length -= 1
        if self._blocked:
            blocked, self._blocked = self._blocked, {}
            for inlet in blocked:
                self.on_arrivals(inlet)
        if self._kept_by is not None and not self._length:
            self.check_used()

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
        self._fresh.clear()
        self._returned.clear()
        self._length = 0
        super().close()

    def _check_open(self) -> None:
        if self._closed:
            raise RefusedError(Condition.NOT_FOUND, f"{self.address!r} is deleted")

    def __repr__(self) -> str:
        return f"<Queue {self.address!r} length={self._length} links={len(self.inlets) + len(self.outlets)}>"


def _accept(arrival: Arrival) -> None:
    try:
        arrival.accept()
    except LocalProtocolError as gone:  # the message came all the same; its sender cannot know
        _log.debug("not accepted: %s", gone)
