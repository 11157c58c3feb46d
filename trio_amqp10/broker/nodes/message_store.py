"""The durable messages of all queues, stored before their senders are answered.

A durable message is accepted, and available to receivers, only once the commit that contains it is done. Later messages of
the same queue wait for it, durable or not. A message that a receiver accepted is deleted, and a message that was returned
with changes is written again. The store has the octets of a message in its present form, its place in the queue, its expiry
time, and its due time if it waits for its next delivery, all as times of day.

A crash can undo two things: that a message was delivered (so ``first-acquirer`` is false when it is returned, and
``redelivered`` is true), and the last changes that were not promised to a peer: an attempt counted, or a receiver's
acceptance.

After a restart the messages of a deep queue are read page by page (``stored_rest``). At the start only a few are read: those that
a link has, those that wait for their next delivery, and the heads of the queues.

Knows entries and rows; knows no link.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.broker.stores.base import Division, Page, PartRows, PartTotals, StoreTable
from trio_amqp10.broker.stores.column_kinds import COUNT, NAME, NUMBER, TEXT, TIME, either, optional, whole
from trio_amqp10.broker.stores.column_kinds import OCTETS as STORED_OCTETS
from trio_amqp10.broker.stores.group_commit import Journal

from .entry import BEFORE_ALL, HIGHEST, SHIFT, Entry, first_order_of_rank
from .form_registry import content_of
from .stored_rest import StoredRest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trio_amqp10.broker.stores.base import Row, Store, StoreError

    from .clock import Clock
    from .content import Content
    from .entry import EntryQueue
    from .node import Lease

    Resume = Callable[[Lease, Any], object]
    """Finds the link that has a message since before a restart.

    It returns the key of the outlet and makes the link answer the lease; it returns None if no link has the message.
    """

_log = logging.getLogger("trio_amqp10.container")

_RECORD: Final = whole(1, 2**62)
_ORDER: Final = whole(BEFORE_ALL, first_order_of_rank(HIGHEST + 1) - 1)
_FORM: Final = whole(-(2**31), 2**32 - 1)
_ATTEMPTS: Final = whole(0, 2**31)
_SELECTION: Final = optional(either(STORED_OCTETS, TEXT))

MESSAGES: Final = StoreTable(
    "messages",
    ("id", "node", "place", "format", "octets", "origin", "arrived", "ttl", "expires", "failures"),
    kinds=(
        *(_RECORD, NAME, _ORDER, _FORM, STORED_OCTETS, optional(TEXT)),
        *(optional(TIME), optional(COUNT), optional(TIME), _ATTEMPTS),
    ),
    division=Division("node", "place", weight="octets", marked="expires", bits=(1 << SHIFT) - 1),
)
DELAYS: Final = StoreTable("delays", ("id", "due"), kinds=(_RECORD, TIME))
"""The due times of messages that wait for redelivery, in milliseconds since 1970."""
SUBSCRIPTIONS: Final = StoreTable(
    "subscriptions",
    ("id", "topic", "name", "owner", "identity", "shared", "lasting", "selection"),
    str,
    (TEXT, TEXT, optional(TEXT), optional(TEXT), optional(TEXT), whole(0, 1), NUMBER, _SELECTION),
)
HIDDEN: Final = "\0"
"""The prefix of addresses of parts of a node, which no node can have."""

_OVERHEAD: Final = 200
HEADS: Final = 10_000
"""Messages of all queues that are read at the start."""
HEAD_OCTETS: Final = 32 * 1024 * 1024
"""Octets of these messages, about."""


class MessageStore:
    """The stored messages of all queues of a container.

    Args:
        store: the store of the container.
        clock: the clock by which messages expire.
        keeps_all: whether a queue stores all its messages by default, not only durable ones.

    Attributes:
        journal: collects the changes, and writes them to the store.
        keeps_all: as given.
        heads_left, head_octets_left: how much more is read at the start.
        first_new: the keys of messages of this process begin here.

    Raises:
        StoreError: the store cannot be read.
    """

    def __init__(self, store: Store, clock: Clock, *, keeps_all: bool = False) -> None:
        self.keeps_all: Final = keeps_all
        self.journal: Final = Journal(store)
        self.clock = clock
        self._totals: dict[str, PartTotals] = {}
        self._ahead: dict[str, dict[int, Row]] = {}
        self._subscriptions: dict[str, list[Row]] = {}
        self._resumes: dict[int | str, Resume] = {}
        self.heads_left: int = HEADS
        self.head_octets_left: int = HEAD_OCTETS
        for address, totals in store.totals(MESSAGES).items():
            if NAME.admits(address):
                self._totals[cast("str", address)] = totals
            else:  # No queue has such rows: they are set aside.
                self.readable(store.read(Page(MESSAGES, address, None, totals.rows)))
        self.first_new: Final = store.last_key(MESSAGES) + 1
        self._last = self.first_new - 1
        self._delays = {cast("int", row[0]): cast("int", row[1]) for row in self.journal.rows(DELAYS)}
        self.read_ahead(self._delays)

        for row in self.journal.rows(SUBSCRIPTIONS):
            self._subscriptions.setdefault(cast("str", row[1]), []).append(row)

    @property
    def addresses(self) -> list[str]:
        """The addresses of stored messages whose nodes do not exist yet."""
        return [address for address in self._totals if not address.startswith(HIDDEN)]

    @property
    def stored(self) -> int:
        """The number of stored messages whose nodes do not exist yet."""
        return sum(totals.rows for totals in self._totals.values())

    @property
    def last_id(self) -> int:
        """The highest key so far."""
        return self._last

    def read_ahead(self, records: Iterable[int]) -> set[int]:
        """Read messages before their turn; return the keys of those that exist.

        Their nodes need them from the beginning. Only before the first write.
        """
        known = {record for rows in self._ahead.values() for record in rows}
        missing = [record for record in records if record not in known]
        found = self.readable(self.journal.store.pick(MESSAGES, missing)) if missing else ()
        for row in found:
            self._ahead.setdefault(cast("str", row[1]), {})[cast("int", row[0])] = row
        return known.union(cast("int", row[0]) for row in found)

    def readable(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows whose cells are of their kinds; the others are set aside, once."""
        aside = self.journal.rows_set_aside.get(MESSAGES, ())
        return self.journal.readable(MESSAGES, [row for row in rows if row[0] not in aside])

    def take_totals(self, address: str) -> PartTotals | None:
        """Return what the store has of this node, once; None if that is nothing."""
        return self._totals.pop(address, None)

    def take_ahead(self, address: str) -> dict[int, Row]:
        """Return the messages of this node that were read before their turn, once."""
        return self._ahead.pop(address, {})

    def take_delay(self, record: int) -> int | None:
        """Return the stored due time of a message, or None, once."""
        return self._delays.pop(record, None)

    def take_subscriptions(self, topic: str) -> list[Row]:
        """Return the stored subscriptions of this topic, once."""
        return self._subscriptions.pop(topic, [])

    def resume_by(self, record: int | str, resume: Resume) -> None:
        """Call ``resume`` when the node of this message recovers it."""
        self._resumes[record] = resume

    def resume_lease(self, lease: Lease, content: Content | Any) -> object | None:
        """See ``ContainerPeer.resume_lease``."""
        record = lease.record
        resume = None if record is None else self._resumes.pop(record, None)
        return None if resume is None else resume(lease, content)

    def next_id(self) -> int:
        """Return a new key; keys grow, so that rows are added at the end."""
        self._last += 1
        return self._last


class QueueStore:
    """The messages of one queue that are in the store, or on their way there.

    Args:
        message_store: the store of all messages.
        address: the address of the queue.
        everything: whether all messages of the queue are stored, not only durable ones; None for the default of
            ``message_store``.

    Attributes:
        everything: whether all messages of the queue are stored.
        journal: collects the changes, and writes them to the store.
        rest: its messages that are in the store alone; None if all are in memory.
    """

    __slots__ = ("_address", "_delayed", "_message_store", "_open", "everything", "journal", "rest")

    def __init__(self, message_store: MessageStore, address: str, *, everything: bool | None = None) -> None:
        self._message_store = message_store
        self._address = address
        self.everything: Final = message_store.keeps_all if everything is None else everything
        self.journal: Final = message_store.journal
        self._open: set[int] = set()
        self._delayed: set[int] = set()
        self.rest: StoredRest | None = None

    # -- in ---------------------------------------------------------------------------------

    def keeps(self, content: Content) -> bool:
        """Whether a message is stored."""
        return self.everything or content.durable

    def enter(self, entry: Entry, stored: Callable[[StoreError | None], object], *, behind: bool) -> bool:
        """Write a new message to the store, if it must be stored.

        Args:
            entry: the message.
            stored: called when the message may be delivered, in the order of the calls; with the error if it could not be stored:
                the caller then calls ``give_up``.
            behind: whether an earlier message of the queue is on its way to the store.

        Returns:
            False if the message need not wait, and ``stored`` is not called: it is not stored, it is not ``behind``, and it is not
            part of a transaction.
        """
        if self.keeps(entry.content):
            entry.queue_store = self
            entry.row = self._message_store.next_id()
            self._open.add(entry.row)
            if self.rest is not None and not self.rest.has_passed(entry.order):
                self.rest.ahead.add(entry.row)
            self.write(entry)
        elif not self.journal.committing:
            if behind:  # It only waits for earlier ones, so their failure does not concern it.
                self.journal.after(lambda _failure: stored(None))
            return behind
        # A message of a transaction that is not stored is refused if the others are.
        self.journal.after(stored)
        return True

    def give_up(self, entry: Entry) -> None:
        """Forget a new message that could not be stored."""
        self._open.discard(entry.row)
        entry.queue_store = None

    def write(self, entry: Entry) -> None:
        """Write a message in its present form, unless its queue was deleted."""
        if entry.row not in self._open:
            return
        clock = self._message_store.clock
        content = entry.content
        ttl = entry.ttl
        row: Row = (
            entry.row,
            self._address,
            entry.order,
            content.number,
            content.octets,
            entry.origin,
            round(entry.since * 1000) if ttl is None else clock.to_wall(entry.arrived),
            ttl,
            None if entry.deadline is None else clock.to_wall(entry.deadline),
            entry.failures,
        )
        self.journal.note(MESSAGES, entry.row, row, content.size + _OVERHEAD)
        if entry.due is not None:
            self._delayed.add(entry.row)
            self.journal.note(DELAYS, entry.row, (entry.row, clock.to_wall(entry.due)))
        elif self._delayed:  # Most queues have none: tested here, to save a call for each message.
            self._drop_delay(entry.row)

    # -- out --------------------------------------------------------------------------------

    def erase(self, entry: Entry) -> None:
        """Delete a message from the store."""
        self._open.discard(entry.row)
        self.journal.drop(MESSAGES, entry.row)
        if self._delayed:
            self._drop_delay(entry.row)
        entry.queue_store = None

    def _drop_delay(self, record: int) -> None:
        if record in self._delayed:
            self._delayed.discard(record)
            self.journal.drop(DELAYS, record)

    def delete_in_commit(self, entry: Entry) -> Callable[[], object]:
        """Delete the message in the next commit. Return a function that cancels that."""
        self._open.discard(entry.row)
        self.journal.note(MESSAGES, entry.row, None)
        self._drop_delay(entry.row)
        entry.queue_store = None

        def undo() -> None:
            entry.queue_store = self
            self._open.add(entry.row)

        return undo

    def close(self) -> None:
        """Delete all messages of a deleted queue."""
        for record in self._message_store.take_ahead(self._address):
            self._take_delay(record)
            self._open.add(record)
        if self.rest is not None or self._message_store.take_totals(self._address) is not None:
            self.erase_rest()
        for record in self._open:
            self.journal.drop(MESSAGES, record)
            self._drop_delay(record)
        self._open.clear()

    def erase_rest(self) -> None:
        """Delete the messages that are in the store alone, in one commit."""
        store, rest, self.rest = self._message_store, self.rest, None
        if rest is not None:
            rest.reading = None  # A page that is on its way is of no use any more.
        aside: list[Any] = store.journal.rows_set_aside.get(MESSAGES, [])
        ahead = () if rest is None else rest.ahead
        after = None if rest is None else rest.position
        store.journal.drop(MESSAGES, PartRows(self._address, after, store.last_id, (*ahead, *aside)))

    # -- after a restart --------------------------------------------------------------------

    def resume_lease(self, entry: Entry) -> bool:
        """Whether a link has a lease on a recovered message, and will answer it."""
        content = entry.aged(self._message_store.clock.now()) if entry.ages else entry.content
        key = self._message_store.resume_lease(entry, content)
        if key is not None:
            entry.outlet_key = key
        return key is not None

    def recover(self, queue: EntryQueue) -> Iterator[Entry]:
        """Yield the stored messages that are read before their turn, in order.

        The others are the ``rest``. Only under trio.
        """
        ahead = self._message_store.take_ahead(self._address)
        totals = self._message_store.take_totals(self._address)
        if totals is not None:
            self.rest = StoredRest(self.journal.store, MESSAGES, self._address, totals)
            self.rest.ahead.update(ahead)
        for row in sorted(ahead.values(), key=_order_of):
            if self.rest is not None:
                self.rest.leave(row)
            entry = self.entry_of(queue, row)
            if entry is not None:
                yield entry

    def entry_of(self, queue: EntryQueue, row: Row) -> Entry | None:
        """Return a stored message; None if it cannot be read, and is set aside."""
        clock = self._message_store.clock
        values: Any = row
        record, _, place, number, octets, origin, arrived, ttl, expires, failures = values
        is_new = record >= self._message_store.first_new
        readable: list[Content] = []
        with self.journal.reading(MESSAGES, record):
            content = content_of(number, octets)
            # It may have been leased before a restart: that is not written.
            readable.append(content if is_new else content.acquired())
        if not readable:
            return None
        entry = Entry(queue, place, readable[0], origin)
        entry.queue_store, entry.row, entry.failures = self, record, failures
        entry.turn = 0 if is_new else 1
        entry.since = clock.wall() if arrived is None else arrived / 1000
        if expires is not None:
            now = clock.now()
            since = now if arrived is None else min(now, clock.from_wall(arrived))
            entry.limit(since, clock.from_wall(expires), ttl)
        due = self._take_delay(record)
        if due is not None:
            entry.due = clock.from_wall(due)
        self._open.add(record)
        return entry

    def is_readable(self, row: Row) -> bool:
        """Whether the cells of a row are of their kinds; otherwise it is set aside."""
        return bool(self._message_store.readable((row,)))

    def begin_rest(self, order: int) -> None:
        """Begin to leave messages to the store; those before this order stay."""
        store = self.journal.store
        self.rest = StoredRest.behind(store, MESSAGES, self._address, order, set(self._open))

    def page_out(self, entry: Entry) -> None:
        """Leave a message to the store alone, which has it."""
        assert self.rest is not None
        self._open.discard(entry.row)
        self.rest.enter(entry)

    def take_head(self, most: int, octets: int) -> int:
        """Return how many messages are read at the start, and count them.

        ``octets`` is their size, about.
        """
        store = self._message_store
        taken = min(most, store.heads_left) if store.head_octets_left > 0 else 0
        store.heads_left -= taken
        store.head_octets_left -= octets if taken else 0
        return taken

    def _take_delay(self, record: int) -> int | None:
        due = self._message_store.take_delay(record)
        if due is not None:
            self._delayed.add(record)
        return due


def _order_of(row: Row) -> int:
    return cast("int", row[2])
