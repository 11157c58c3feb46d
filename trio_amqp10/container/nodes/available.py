"""The messages of a queue that are not leased, and which links may have them.

They are in one sorted list for each *eligibility*: the links that may not have them, and perhaps the only link
that may. Nearly always there is one list. The next message for a consumer is the first in the lists that
the consumer may take from; a consumer that does not take every message goes on from where it has looked
(``consumers``).

Knows entries and consumers; knows no leases, and no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .consumers import Search
from .entry import ANYONE, Entry, first_order_of_rank, unpack_rank, unpack_sequence
from .sorted_blocks import SortedBlocks, all_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from .consumers import QueueConsumer
    from .entry import Eligibility

__all__ = ["AvailableMessages"]


class AvailableMessages:
    """The available messages of one queue.

    Attributes:
        octets: of all available messages.
        searches: of the consumers that do not take every message.
    """

    __slots__ = ("_by_eligibility", "_open", "octets", "searches")

    def __init__(self) -> None:
        self.octets: int = 0
        self._open = SortedBlocks[Entry]()
        self._by_eligibility: dict[Eligibility, SortedBlocks[Entry]] = {ANYONE: self._open}
        self.searches: dict[QueueConsumer, Search] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_eligibility.values()))

    @property
    def all_blocks(self) -> list[SortedBlocks[Entry]]:
        """All sorted lists, for browsers."""
        return list(self._by_eligibility.values())

    def add(self, entry: Entry) -> None:
        """Make a message available; no waiting consumer takes it."""
        entry.available = True
        self.octets += entry.length
        eligibility = entry.eligibility
        if eligibility is ANYONE:
            self._open.add(entry)
        else:
            blocks = self._by_eligibility.get(eligibility)
            if blocks is None:
                blocks = self._by_eligibility[eligibility] = SortedBlocks()
            blocks.add(entry)
        for consumer, search in self.searches.items():
            # A consumer that waits has just been offered it.
            if not consumer.waits and entry.order <= search.cursor and eligibility.admits(consumer.key):
                search.early.add(entry)
                entry.noted = True

    def take(self, consumer: QueueConsumer, is_over: Callable[[], bool]) -> Entry | None:
        """Remove and return the first message that the consumer may have, and takes; None if there is none.

        A consumer that does not take every message looks at no more once the turn ``is_over``: see ``Search.pauses``.
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
        """From now on the consumer looks for messages that it takes."""
        search = consumer.search = consumer.search or Search(consumer)
        self.searches[consumer] = search
        return search

    def remove(self, entry: Entry) -> None:
        """Remove this message."""
        entry.available = False
        self._take_down(entry)
        if entry.noted:
            self.forget_note(entry)

    def _take_down(self, entry: Entry) -> None:
        blocks = self._by_eligibility[entry.eligibility]
        blocks.remove(entry)
        self.octets -= entry.length
        if not blocks and blocks is not self._open:
            del self._by_eligibility[entry.eligibility]

    def forget_note(self, entry: Entry) -> None:
        """No consumer is to look at it again."""
        entry.noted = False
        for search in self.searches.values():
            search.early.remove(entry)

    def oldest(self) -> Entry | None:
        """The first message of the lowest priority; None if there is none."""
        all_blocks = [blocks for blocks in self.all_blocks if blocks]
        lowest = max((unpack_rank(blocks.last().order) for blocks in all_blocks), default=0)
        return next(all_after(all_blocks, first_order_of_rank(lowest) - 1), None)

    def first_before(self, sequence: int) -> Entry | None:
        """A message that came before that sequence number was given; None if there is none."""
        for blocks in self._by_eligibility.values():
            entry = blocks.first()
            while entry is not None and unpack_sequence(entry.order) >= sequence:
                lower = first_order_of_rank(unpack_rank(entry.order) + 1)
                entry = next(blocks.after(lower - 1), None)
            if entry is not None:
                return entry
        return None

    def clear(self) -> list[SortedBlocks[Entry]]:
        """Remove all messages, and return them."""
        removed = self.all_blocks
        self._open = SortedBlocks[Entry]()
        self._by_eligibility = {ANYONE: self._open}
        self.octets = 0
        return removed
