"""Stock: the messages of a queue that no link has a lease on, and which links may have them.

They lie on one shelf for each *place*: a set of links that may not have what is there, and perhaps the
one link that it is reserved for. Nearly always there is one shelf. The next message for a consumer is
the first of those on the shelves that are open to it; a consumer that does not take every message looks for
it behind the place that it has looked at (``takers``).

Knows entries and consumers; knows no leases, and no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .entry import EVERYWHERE, RANKS, Entry, order_of, rank_of
from .shelf import Shelf, all_after
from .takers import Search

if TYPE_CHECKING:
    from .entry import Place
    from .takers import Consumer

__all__ = ["Stock"]


class Stock:
    """What a queue could give.

    Attributes:
        octets: of all that is here.
        searches: of the consumers that do not take every message.
    """

    __slots__ = ("_open", "_shelves", "octets", "searches")

    def __init__(self) -> None:
        self.octets = 0
        self._open = Shelf[Entry]()
        self._shelves: dict[Place, Shelf[Entry]] = {EVERYWHERE: self._open}
        self.searches: dict[Consumer, Search] = {}

    def __len__(self) -> int:
        return sum(map(len, self._shelves.values()))

    @property
    def shelves(self) -> list[Shelf[Entry]]:
        """All of them, for those who only look."""
        return list(self._shelves.values())

    def add(self, entry: Entry) -> None:
        """Make available what nobody who waits may have."""
        entry.available = True
        self.octets += entry.size
        place = entry.place
        if place is EVERYWHERE:
            self._open.add(entry)
        else:
            shelf = self._shelves.get(place)
            if shelf is None:
                shelf = self._shelves[place] = Shelf()
            shelf.add(entry)
        for consumer, search in self.searches.items():
            # A consumer that waits has just been offered it.
            if not consumer.waits and entry.order <= search.cursor and place.admits(consumer.key):
                search.early.add(entry)
                entry.noted = True

    def take(self, consumer: Consumer) -> Entry | None:
        """Take out the first that the consumer may have, and takes."""
        shelves, search, limit = self._shelves, consumer.search, consumer.limit
        entry: Entry | None = None
        if search is None and len(shelves) == 1:
            entry = self._open.first()
            if entry is None or limit is None or entry.length <= limit:
                if entry is not None:
                    self._open.pop()
                    self.octets -= entry.size
                return entry
        mine = [shelf for place, shelf in shelves.items() if place.admits(consumer.key)]
        if search is None:
            firsts = [first for shelf in mine if (first := shelf.first()) is not None]
            entry = min(firsts, key=lambda first: first.order, default=None)
            if entry is not None and limit is not None and entry.length > limit:
                search = self.begin_search(consumer)
        if search is not None:
            entry = search.find(mine)
        if entry is not None:
            self._take_down(entry)
        return entry

    def begin_search(self, consumer: Consumer) -> Search:
        """From now on the consumer looks for messages that it takes."""
        search = consumer.search = consumer.search or Search(consumer)
        self.searches[consumer] = search
        return search

    def remove(self, entry: Entry) -> None:
        """Take out this one."""
        entry.available = False
        self._take_down(entry)
        if entry.noted:
            self.forget_note(entry)

    def _take_down(self, entry: Entry) -> None:
        shelf = self._shelves[entry.place]
        shelf.remove(entry)
        self.octets -= entry.size
        if not shelf and shelf is not self._open:
            del self._shelves[entry.place]

    def forget_note(self, entry: Entry) -> None:
        """No consumer is to look at it again."""
        entry.noted = False
        for search in self.searches.values():
            search.early.remove(entry)

    def oldest(self) -> Entry | None:
        """The one that came first among the least urgent; None if nothing is here."""
        shelves = self.shelves
        for rank in reversed(range(RANKS)):
            entry = next(all_after(shelves, order_of(RANKS - 1 - rank, 0) - 1), None)
            if entry is not None and rank_of(entry.order) == rank:
                return entry
        return None

    def clear(self) -> None:
        """All of it is gone."""
        self._shelves = {EVERYWHERE: self._open}
        self._open.clear()
        self.octets = 0
