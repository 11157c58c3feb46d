"""The messages of a queue that are not leased, and which links may have them.

There is one sorted list for each *eligibility*: a set of links that are excluded, and perhaps the only link that is
admitted. Nearly always there is one list. The next message for a consumer is the first in all lists that admit the
consumer. A consumer that does not take every message continues from the place where its last search ended
(``consumers``).

Knows entries and consumers; knows no leases, and no time.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from .consumers import Search
from .entry import ANYONE, BEFORE_ALL, Entry, first_order_of_rank, unpack_rank, unpack_sequence
from .sorted_blocks import SortedBlocks, all_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from .consumers import QueueConsumer
    from .entry import Eligibility


class AvailableMessages:
    """The available messages of one queue.

    Attributes:
        octets: the total size of all available messages.
        horizon: the order up to which all messages are in memory; infinity if none is paged out.
        paged_out: the number of messages that are in the store alone.
        searches: one search for each consumer that does not take every message.
    """

    __slots__ = ("_beyond", "_by_eligibility", "_open", "horizon", "octets", "paged_out", "searches")

    def __init__(self) -> None:
        self.octets: int = 0
        self.horizon: float = inf
        self.paged_out: int = 0
        self._beyond = SortedBlocks[Entry]()
        self._open = SortedBlocks[Entry]()
        self._by_eligibility: dict[Eligibility, SortedBlocks[Entry]] = {ANYONE: self._open}
        self.searches: dict[QueueConsumer, Search] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_eligibility.values())) + len(self._beyond) + self.paged_out

    @property
    def all_blocks(self) -> list[SortedBlocks[Entry]]:
        """All sorted lists of messages up to the horizon, for browsers."""
        return list(self._by_eligibility.values())

    def add(self, entry: Entry) -> None:
        """Make a message available; the caller has offered it to all waiting consumers."""
        entry.available = True
        self.octets += entry.length
        if entry.order > self.horizon:
            self._beyond.add(entry)
            return
        eligibility = entry.eligibility
        if eligibility is ANYONE:
            self._open.add(entry)
        else:
            blocks = self._by_eligibility.get(eligibility)
            if blocks is None:
                blocks = self._by_eligibility[eligibility] = SortedBlocks()
            blocks.add(entry)
        for consumer, search in self.searches.items():
            # A waiting consumer has just refused this message. Another one that has searched beyond its place
            # would never find it, so the search notes it.
            if not consumer.waits and entry.order <= search.cursor and eligibility.admits(consumer.key):
                search.early.add(entry)
                entry.noted = True

    def raise_horizon(self, order: float) -> None:
        """Make the messages that wait beyond the horizon available up to this order."""
        self.horizon = order
        beyond = self._beyond
        while (entry := beyond.first()) is not None and entry.order <= order:
            beyond.pop()
            octets = self.octets  # It is counted already.
            self.add(entry)
            self.octets = octets

    @property
    def last_order(self) -> int:
        """The order of the last message up to the horizon."""
        return max((blocks.last().order for blocks in self.all_blocks if blocks), default=BEFORE_ALL)

    def page_out(self, count: int, octets: int) -> None:
        """Count more messages that are in the store alone; the first time, all are there."""
        if self.horizon == inf:
            self.horizon = BEFORE_ALL
        self.paged_out += count
        self.octets += octets

    def page_in(self, octets: int) -> None:
        """Count one less of them, which ``add`` counts again if it is available."""
        self.paged_out -= 1
        self.octets -= octets

    def end_paging(self, count: int, octets: int) -> None:
        """Forget so many messages that are in the store alone: there are no others."""
        self.paged_out -= count
        self.octets -= octets
        self.raise_horizon(inf)

    def lacks(self, rank: int) -> bool:
        """Whether there is none of this rank or a higher one up to the horizon."""
        return not any(blocks and unpack_rank(blocks.last().order) >= rank for blocks in self.all_blocks)

    @property
    def nearest_beyond(self) -> int | None:
        """The order of the first message in memory beyond the horizon, or None."""
        entry = self._beyond.first()
        return None if entry is None else entry.order

    def take(self, consumer: QueueConsumer, is_over: Callable[[], bool]) -> Entry | None:
        """Remove and return the first message that the consumer may have and takes.

        Return None if there is none. A consumer that does not take every message stops its search when the turn ``is_over``
        (see ``Search.pauses``).
        """
        all_blocks, search, limit = self._by_eligibility, consumer.search, consumer.limit
        entry: Entry | None = None
        if search is None and len(all_blocks) == 1:
            entry = self._open.first()
            if entry is None:
                return None
            if limit is None or entry.length <= limit:
                self.octets -= entry.length
                return self._open.pop()
        mine = [blocks for eligibility, blocks in all_blocks.items() if eligibility.admits(consumer.key)]
        if search is None:
            firsts = [first for blocks in mine if (first := blocks.first()) is not None]
            entry = min(firsts, key=lambda first: first.order, default=None)
            if entry is not None and limit is not None and entry.length > limit:
                search = self.begin_search(consumer)
        if search is not None:
            entry = search.find(mine, is_over)
        if entry is not None:
            self._take_down(entry)
        return entry

    def begin_search(self, consumer: QueueConsumer) -> Search:
        """Make the consumer test messages from now on, in place of taking the first."""
        search = consumer.search = consumer.search or Search(consumer)
        self.searches[consumer] = search
        return search

    def remove(self, entry: Entry) -> None:
        entry.available = False
        self._take_down(entry)
        if entry.noted:
            self.forget_note(entry)

    def _take_down(self, entry: Entry) -> None:
        self.octets -= entry.length
        if entry.order > self.horizon:
            self._beyond.remove(entry)
            return
        blocks = self._by_eligibility[entry.eligibility]
        blocks.remove(entry)
        if not blocks and blocks is not self._open:
            del self._by_eligibility[entry.eligibility]

    def forget_note(self, entry: Entry) -> None:
        """Withdraw the message from all searches that noted it."""
        entry.noted = False
        for search in self.searches.values():
            search.early.remove(entry)

    def head(self) -> Entry | None:
        """Return the first message for any consumer, or None."""
        firsts = [first for blocks in self._by_eligibility.values() if (first := blocks.first()) is not None]
        return min(firsts, key=lambda first: first.order, default=None)

    def oldest(self) -> Entry | None:
        """Return the first message of the lowest priority, or None."""
        all_blocks = [blocks for blocks in (*self.all_blocks, self._beyond) if blocks]
        lowest = max((unpack_rank(blocks.last().order) for blocks in all_blocks), default=0)
        return next(all_after(all_blocks, first_order_of_rank(lowest) - 1), None)

    def earliest(self) -> Entry | None:
        """Return the message that arrived before all others, of any priority, or None."""
        found: Entry | None = None
        for blocks in self._by_eligibility.values():
            entry = blocks.first()
            while entry is not None:
                if found is None or unpack_sequence(entry.order) < unpack_sequence(found.order):
                    found = entry
                lower = first_order_of_rank(unpack_rank(entry.order) + 1)
                entry = next(blocks.after(lower - 1), None)
        return found

    def first_before(self, sequence: int) -> Entry | None:
        """Return a message that arrived before this sequence number was assigned, or None."""
        for blocks in self._by_eligibility.values():
            entry = blocks.first()
            while entry is not None and unpack_sequence(entry.order) >= sequence:
                lower = first_order_of_rank(unpack_rank(entry.order) + 1)
                entry = next(blocks.after(lower - 1), None)
            if entry is not None:
                return entry
        return None

    def clear(self) -> list[SortedBlocks[Entry]]:
        """Remove all messages, and return those in memory."""
        removed = [*self.all_blocks, self._beyond]
        self._beyond = SortedBlocks[Entry]()
        self.horizon, self.paged_out = inf, 0
        self._open = SortedBlocks[Entry]()
        self._by_eligibility = {ANYONE: self._open}
        self.octets = 0
        return removed
