"""The messages of a queue that are in the store alone, and are read by pages.

After a restart a queue has the first page of its messages in memory. The next page is read when nearly all of these are taken, or
when a search, a browser or the expiry of messages needs it. Pages come in the order of the queue, so all messages up to the last
one read, the *horizon* (``available``), are in memory. A message that arrives behind the horizon and is stored is left to the
store. The last page ends that: then all messages are in memory again. A queue that becomes very deep gets such a rest, too.

Some messages behind the horizon are in memory all the same: those that a link has had since before the restart, those that wait
for their next delivery, and new ones that expire, that are not stored, or that came while a page was read. Their rows are
skipped when their page comes (``ahead``).

Knows rows and pages; knows no consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.broker.stores.base import Page, PartTotals

from .entry import SHIFT, unpack_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio_amqp10.broker.stores.base import Found, Position, Row, Store, StoreTable

    from .entry import Entry

PAGE: Final = 500
"""Messages of a page: a few milliseconds of work."""
PAGE_OCTETS: Final = 1024 * 1024
"""Octets of a page; a single message may be larger."""

DEEP: Final = 100_000
DEEP_OCTETS: Final = 64 * 1024 * 1024
"""The messages, or their octets, after which a queue leaves new ones to the store."""


class StoredRest:
    """The rest of a queue.

    Args:
        store: the store of the container.
        table: the table of messages.
        address: the address of the queue.
        totals: what the store has of it.

    Attributes:
        count: the number of messages.
        octets: their octets in the store.
        ahead: the keys of messages that are in memory, or that were, and whose page has not come.
        position: the position of the last row that was read; None before the first page.
        is_read: whether the last page has come.
        reading: identifies the page that is being read; None if there is none.
        run: identifies the ``trio.run`` in which that began.
        rank: the rank of all its messages; None if they have several.
        expires: when the first of those that the store had at the start expires, in milliseconds since 1970; 0 if that is damaged;
            None if none of them expires.
        has_expired: whether that time has passed, so that all pages are read.
        highest: the highest sequence number of a message that the store had at the start.
    """

    __slots__ = (
        "_address",
        "_store",
        "_table",
        "ahead",
        "count",
        "expires",
        "has_expired",
        "highest",
        "is_read",
        "octets",
        "position",
        "rank",
        "reading",
        "run",
    )

    def __init__(self, store: Store, table: StoreTable, address: str, totals: PartTotals) -> None:
        self._store = store
        self._table = table
        self._address = address
        self.count: int = totals.rows
        self.octets: int = totals.octets
        self.ahead: set[int] = set()
        self.position: Position | None = None
        self.is_read: bool = False
        self.reading: object | None = None
        self.run: object | None = None
        self.rank: int | None = _rank_of(totals)
        lowest = totals.lowest
        self.expires: int | None = lowest if lowest is None or isinstance(lowest, int) else 0
        self.has_expired: bool = False
        # A damaged place may have any number here; no valid one is as large as this limit.
        self.highest: int = min(totals.highest, 1 << SHIFT - 1)

    @classmethod
    def behind(cls, store: Store, table: StoreTable, address: str, order: int, ahead: set[int]) -> StoredRest:
        """Return a rest without messages, which begins at this order.

        ``ahead`` are the keys of its messages in memory.
        """
        rest = cls(store, table, address, PartTotals(0, 0, None, order, order, 0))
        rest.ahead = ahead
        rest.position = order, 0
        return rest

    def begin_page(self) -> object:
        """Begin to read a page, in place of one that is being read; return its identity."""
        self.reading = page = object()
        self.run = trio.lowlevel.current_trio_token()
        return page

    def has_passed(self, order: int) -> bool:
        """Whether no later page has a message of this order."""
        place = None if self.position is None else self.position[0]
        # A store has NULL before all numbers, and texts behind them: such a place is of a damaged row.
        return place is not None and (not isinstance(place, int | float) or order < place)

    @property
    def is_under_way(self) -> bool:
        """Whether a page is being read; one of an earlier ``trio.run`` never comes."""
        return self.reading is not None and self.run is trio.lowlevel.current_trio_token()

    def read(self, most: int | None = None) -> Sequence[Row]:
        """Return the next page of so many messages at most; wait for a write before it.

        Raises:
            StoreError: it cannot be read.
        """
        return self._note_end(self._store.read(self._page(most)), most)

    def fetch(self, found: Found) -> None:
        """Read the next page, and call ``found`` later.

        Raises:
            StoreError: the store is closed.
        """
        page = self.reading

        def on_rows(rows: Sequence[Row], failure: Any) -> None:
            if self.reading is page:
                found(rows if failure is not None else self._note_end(rows, None), failure)

        self._store.fetch(self._page(None), on_rows)

    def _page(self, most: int | None) -> Page:
        return Page(self._table, self._address, self.position, PAGE if most is None else most, PAGE_OCTETS)

    def _note_end(self, rows: Sequence[Row], most: int | None) -> Sequence[Row]:
        is_full = len(rows) == (PAGE if most is None else most) or sum(map(size_of, rows)) > PAGE_OCTETS
        self.is_read = not is_full
        return rows

    def may_take(self, entry: Entry, *, drops_oldest: bool) -> bool:
        """Whether a stored message behind the horizon can be left to the store.

        Args:
            entry: the message.
            drops_oldest: whether the queue drops the oldest message of the lowest priority. Then the rest has one rank, so that
                this message is known.
        """
        if self.is_read or self.reading is not None or entry.deadline is not None:
            return False
        if self.has_passed(entry.order):  # The last rows that were read may be damaged.
            return False
        return not drops_oldest or unpack_rank(entry.order) == self.rank

    def enter(self, entry: Entry) -> None:
        """Leave a message to the store."""
        self.ahead.discard(entry.row)
        if unpack_rank(entry.order) != self.rank:
            self.rank = None
        self.count += 1
        self.octets += entry.content.size

    def leave(self, row: Row) -> None:
        """Count a message less, which is in memory now or cannot be read."""
        self.count -= 1
        self.octets -= size_of(row)


def size_of(row: Row) -> int:
    """Return the octets of a message in the store; 0 if its row is damaged."""
    octets = row[4]
    return len(octets) if isinstance(octets, bytes) else 0


def _rank_of(totals: PartTotals) -> int | None:
    first, last = totals.first, totals.last
    if not isinstance(first, int) or not isinstance(last, int):
        return None
    return unpack_rank(first) if unpack_rank(first) == unpack_rank(last) else None
