"""Holding: the messages that a queue answers for, until they are accepted, or die.

A message dies when it is rejected, when its time is over, when it has failed too often, and when it has to
make room. It then goes to the dead-letter address, or nowhere (``deadletters``).

Time comes from the ttl (3.2.1) or absolute-expiry-time (3.2.4) of a message. A message that a peer has
when it expires dies when it comes back. An alarm has the queue swept when the next is due, and
whoever touches it sweeps it first.

Where the queue has a book (``ledger``), a message that is to survive is not held, accepted or given out before
it is on disk, and what comes behind it waits with it.

Knows leases, and what is available (``stock``); does not know where messages come from, nor to whom they go.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Final

from .answers import answer
from .clock import Clock
from .deadletters import DeadLetters
from .entry import Entry, order_of, sequence_of
from .groups import Groups
from .node import Node
from .policy import QueuePolicy
from .stock import Stock
from .watermark import OVERHEAD

if TYPE_CHECKING:
    from trio_amqp10.container.stores.base import StoreError

    from .content import Content, Death
    from .ledger import Book
    from .node import Arrival, Inlet
    from .watermark import Watermark

__all__ = ["Holding"]

_log = logging.getLogger("trio_amqp10.container")

_FORGOTTEN: Final = 64
"""Deadlines of messages that are gone, above as many as there are messages, before they are thrown out."""

_CAUSES: Final[dict[Death, str]] = {
    "rejected": "rejected",
    "expired": "expired",
    "delivery-limit": "failed",
    "overflow": "dropped",
}
_FIGURES: Final = ("arrived", "refused", "accepted", *_CAUSES.values())


class Holding(Node):
    """What ``Queue`` is built on; see there.

    Attributes:
        policy: the rules that it goes by.
        octets: of the messages held.
        figures: how many messages arrived, how many were accepted by who had them, died of each
            cause, or were refused.
    """

    sheds = True

    def __init__(
        self, address: str, policy: QueuePolicy | None, clock: Clock | None, book: Book | None
    ) -> None:
        super().__init__(address)
        self._book = book
        self.policy = policy or QueuePolicy()
        self.octets = 0
        self.figures = dict.fromkeys(_FIGURES, 0)
        self._clock = clock or Clock()
        self._closed = False
        self._length = 0
        self._dying = 0
        self._coming = 0
        self._sequence = itertools.count()
        self._stock = Stock()
        self._groups = Groups(self._stock, self._give)
        self._deadlines: list[tuple[float, int, Entry]] = []
        self._alarm = self._clock.alarm(self._next_deadline, self.sweep)
        self._letters: DeadLetters | None = None

    def __len__(self) -> int:
        """Messages held, those under lease among them."""
        return self._length

    @property
    def storing(self) -> bool:
        return self._book is not None

    @property
    def durable(self) -> bool:
        """Whether all its messages go to the store, not only those that ask for it."""
        return self._book is not None and self._book.everything

    @property
    def available(self) -> int:
        """Messages that nobody has a lease on."""
        return len(self._stock)

    @property
    def leased(self) -> int:
        """Messages that somebody has a lease on."""
        return self._length - len(self._stock) - self._dying - self._coming

    def statistics(self) -> dict[str, int]:
        held = {
            "messages": self._length,
            "octets": self.octets,
            "available": self.available,
            "leased": self.leased,
        }
        return super().statistics() | held | self.figures

    # -- what those who give and take do -----------------------------------------------------

    def _give(self, entry: Entry) -> bool:
        """Lease it to one of those who wait; False if nobody does who may have it."""
        raise NotImplementedError

    def _on_change(self) -> None:
        """A lease has ended."""
        raise NotImplementedError

    def _on_room(self) -> None:
        """A message is gone."""
        raise NotImplementedError

    # -- what it weighs ---------------------------------------------------------------------

    def count_in(self, watermark: Watermark) -> None:
        self._unweigh_all()
        self.watermark = watermark
        watermark.add(self.octets, self._length)

    def _weigh(self, entry: Entry) -> None:
        """A message is held. As ``watermark.add``, without another call for each message."""
        mark = self.watermark
        mark.octets += entry.size + OVERHEAD
        if mark.octets > mark.rise_at:
            mark.rise()

    def _unweigh(self, entry: Entry) -> None:
        """It is not any more."""
        mark = self.watermark
        mark.octets -= entry.size + OVERHEAD
        if mark.octets < mark.fall_at:
            mark.fall()

    def _unweigh_all(self) -> None:
        self.watermark.remove(self.octets, self._length)

    # -- in ---------------------------------------------------------------------------------

    def _hold(
        self, content: Content, origin: str | None, inlet: Inlet | None, arrival: Arrival | None
    ) -> bool:
        """Answer for a message that came from this origin.

        Returns:
            Whether that is so. If not, it is on its way to the disk, and ``arrival`` gets its answer when it is
            there, or cannot be.
        """
        priority, ttl, expiry, group = content.terms
        entry = Entry(self, order_of(priority, next(self._sequence)), content, origin)
        if group is not None and self.policy.grouped:
            entry.group = group
        self.figures["arrived"] += 1
        self._length += 1
        self.octets += entry.size
        self._weigh(entry)
        longest = self.policy.ttl
        if ttl is not None or expiry is not None or longest is not None:
            now = self._clock.now()
            entry.limit(now, self._clock.deadline(now, ttl, expiry, longest), ttl)
        if self._book is not None and self._book.enter(
            entry, partial(self._on_stored, entry, inlet, arrival)
        ):
            self._coming += 1
            if arrival is not None and entry.book is not None:
                arrival.foretell()
            return False
        self._offer(entry)
        return True

    def _on_stored(
        self, entry: Entry, inlet: Inlet | None, arrival: Arrival | None, failure: StoreError | None
    ) -> None:
        if not self._closed:
            self._coming -= 1
            if failure is None:
                self._offer(entry)
            else:
                self.figures["refused"] += 1
                self._forget(entry)
            self._on_change()
        if arrival is not None and inlet is not None:
            self.attempt(inlet, answer, inlet, arrival, failure)

    def _offer(self, entry: Entry) -> None:
        """Give what is held to who waits for it, or make it available."""
        deadline = entry.deadline
        if deadline is not None:
            if deadline < self._clock.now():
                self._end(entry, "expired")
                return
            heapq.heappush(self._deadlines, (deadline, entry.order, entry))
            self._alarm.expect(deadline)
        if entry.group is not None:
            self._groups.enter(entry.group, entry)
        elif not self._give(entry):
            self._stock.add(entry)

    def recover(self) -> None:
        """Take back what was on disk when the process started; under trio, since messages may expire."""
        if self._book is None:
            return
        last = next(self._sequence)
        entries = list(self._book.recover(self))
        for entry in entries:
            last = max(last, sequence_of(entry.order) + 1)
            if self.policy.grouped:
                entry.group = entry.content.terms.group
            self._length += 1
            self.octets += entry.size
            self._weigh(entry)
        self._sequence = itertools.count(last)
        lent = {entry for entry in entries if self._book.resume_lease(entry)}
        for entry in entries:
            if entry in lent:
                self._go_on_lending(entry)
        for entry in entries:  # now that all are counted: the first to expire must not leave an empty queue
            if entry not in lent:
                self._offer(entry)

    def _go_on_lending(self, entry: Entry) -> None:
        """Somebody got it before the restart, and will say what became of it."""
        if entry.deadline is not None:
            heapq.heappush(self._deadlines, (entry.deadline, entry.order, entry))
        if entry.group is not None:
            self._groups.go_on_lending(entry.group, entry.outlet_key)

    def _make_room(self) -> bool:
        """Whether it is not full any more."""
        policy = self.policy
        # Dead letters that wait for room elsewhere take theirs here: to drop more would not help.
        while policy.overflow == "drop-oldest" and not self._dying:
            entry = self._stock.oldest()
            if entry is None:
                return False
            self._remove_available(entry, "overflow")
            if not policy.is_full(self._length, self.octets):
                return True
        return False

    def purge(self) -> int:
        """Throw away what nobody has a lease on; returns how many that were."""
        count = 0
        while (entry := self._stock.oldest()) is not None:
            self._stock.remove(entry)
            if entry.group is not None:
                self._groups.removed(entry.group, entry)
            self._forget(entry)
            count += 1
        return count

    # -- back -------------------------------------------------------------------------------

    def put_back(self, entry: Entry) -> None:
        """A lease has ended, and the message is available again, in its old place."""
        if self._closed:
            return
        limit = self.policy.delivery_limit
        if limit is not None and entry.failures >= limit:
            self._end_leased(entry, "delivery-limit")
        elif entry.deadline is not None and entry.deadline <= self._clock.now():
            self._end_leased(entry, "expired")
        elif entry.group is not None:
            self._groups.returned(entry.group, entry)
        elif not self._give(entry):
            self._stock.add(entry)
        self._on_change()

    def drop(self, entry: Entry) -> None:
        """A lease has ended, and with it its message: it was processed."""
        if self._closed:
            return
        self.figures["accepted"] += 1
        if entry.group is not None:
            self._groups.ended(entry.group)
        self._forget(entry)
        self._on_change()

    def reject(self, entry: Entry, condition: str | None, description: str | None) -> None:
        """A lease has ended, and with it its message: it is no good."""
        if self._closed:
            return
        self._end_leased(entry, "rejected", condition, description)
        self._on_change()

    # -- death ------------------------------------------------------------------------------

    def _end_leased(
        self, entry: Entry, reason: Death, condition: str | None = None, description: str | None = None
    ) -> None:
        if entry.group is not None:
            self._groups.ended(entry.group)
        self._end(entry, reason, condition, description)

    def _remove_available(self, entry: Entry, reason: Death) -> None:
        self._stock.remove(entry)
        if entry.group is not None:
            self._groups.removed(entry.group, entry)
        self._end(entry, reason)

    def _end(
        self, entry: Entry, reason: Death, condition: str | None = None, description: str | None = None
    ) -> None:
        """The message dies; nobody has it any more."""
        self.figures[_CAUSES[reason]] += 1
        address = self.policy.dead_letter
        if address is None:
            _log.debug("%r: a message died: %s, %.100s: %.1000s", self, reason, condition, description)
            self._forget(entry)
            return
        if self._letters is None or self._letters.address != address:
            self._letters = DeadLetters(self.address, address, self.house)
        self._dying += 1
        entry.ended = True

        def done(gone: bool) -> None:
            if gone and not self._closed:
                self._dying -= 1
                self._forget(entry)

        strike = None if entry.book is None else partial(entry.book.strike, entry)
        self._letters.send(entry.content, reason, condition, description, done, strike)

    def _forget(self, entry: Entry) -> None:
        entry.ended = True
        if entry.book is not None:
            entry.book.erase(entry)
        self._length -= 1
        self.octets -= entry.size
        self._unweigh(entry)
        self._on_room()

    def sweep(self) -> None:
        """End what has expired and nobody has; forget the deadlines of what is gone."""
        deadlines = self._deadlines
        if not deadlines:
            return
        now = self._clock.now()
        while deadlines and deadlines[0][0] <= now:
            entry = heapq.heappop(deadlines)[2]
            if entry.available and not entry.ended:
                self._remove_available(entry, "expired")
        if len(deadlines) > 2 * self._length + _FORGOTTEN:
            deadlines[:] = [each for each in deadlines if not each[2].ended]
            heapq.heapify(deadlines)

    def _next_deadline(self) -> float:
        deadlines = self._deadlines
        while deadlines and deadlines[0][2].ended:  # it was taken in time: nothing is due for it
            heapq.heappop(deadlines)
        return deadlines[0][0] if deadlines else math.inf

    def close(self) -> None:
        self._closed = True
        self._stock.clear()
        self._deadlines.clear()
        self._alarm.stop()
        self._unweigh_all()
        self._length = self._dying = self._coming = self.octets = 0
        if self._book is not None:
            self._book.close()
        if self._letters is not None:
            self._letters.close()
        super().close()
