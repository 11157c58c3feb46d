"""The durable messages of all queues, stored before their senders are answered.

A durable message is accepted, and available to receivers, only once the commit that contains it is done. Later messages of
the same queue wait for it, durable or not. A message that a receiver accepted is deleted, and a message that was returned
with changes is written again. The store has the octets of a message in its present form, its place in the queue, its expiry
time, and its due time if it waits for its next delivery, all as times of day.

A crash can undo two things: that a message was delivered (so ``first-acquirer`` is false when it is returned, and
``redelivered`` is true), and the last changes that were not promised to a peer: an attempt counted, or a receiver's
acceptance.

Knows entries and rows; knows no link.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.broker.stores.base import StoreTable
from trio_amqp10.broker.stores.column_kinds import COUNT, NAME, NUMBER, TEXT, TIME, either, optional, whole
from trio_amqp10.broker.stores.column_kinds import OCTETS as STORED_OCTETS
from trio_amqp10.broker.stores.group_commit import Journal

from .entry import BEFORE_ALL, HIGHEST, Entry, first_order_of_rank
from .form_registry import content_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


class MessageStore:
    """The stored messages of all queues of a container.

    Args:
        store: the store of the container.
        clock: the clock by which messages expire.
        keeps_all: whether a queue stores all its messages by default, not only durable ones.

    Attributes:
        journal: collects the changes, and writes them to the store.
        keeps_all: as given.

    Raises:
        StoreError: the store cannot be read.
    """

    def __init__(self, store: Store, clock: Clock, *, keeps_all: bool = False) -> None:
        self.keeps_all: Final = keeps_all
        self.journal: Final = Journal(store)
        self.clock = clock
        self._rows: dict[str, list[Row]] = {}
        self._subscriptions: dict[str, list[Row]] = {}
        self._resumes: dict[int | str, Resume] = {}
        self._last = 0
        for row in self.journal.rows(MESSAGES):
            self._last = cast("int", row[0])
            self._rows.setdefault(cast("str", row[1]), []).append(row)
        # New messages must not overwrite rows that could not be read.
        aside = self.journal.rows_set_aside.get(MESSAGES, ())
        self._last = max([self._last, *(key for key in aside if isinstance(key, int))])
        self._delays = {cast("int", row[0]): cast("int", row[1]) for row in self.journal.rows(DELAYS)}

        for row in self.journal.rows(SUBSCRIPTIONS):
            self._subscriptions.setdefault(cast("str", row[1]), []).append(row)

    @property
    def addresses(self) -> list[str]:
        """The addresses of stored messages whose nodes do not exist yet."""
        return [address for address in self._rows if not address.startswith(HIDDEN)]

    @property
    def records(self) -> set[int]:
        """The keys of all stored messages whose nodes do not exist yet."""
        return {cast("int", row[0]) for rows in self._rows.values() for row in rows}

    def take_rows(self, address: str) -> list[Row]:
        """Return the stored messages of this node, once."""
        return self._rows.pop(address, [])

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
    """

    __slots__ = ("_address", "_delayed", "_message_store", "_open", "_pending", "everything")

    def __init__(self, message_store: MessageStore, address: str, *, everything: bool | None = None) -> None:
        self._message_store = message_store
        self._address = address
        self.everything: Final = message_store.keeps_all if everything is None else everything
        self._pending = 0
        self._open: set[int] = set()
        self._delayed: set[int] = set()

    # -- in ---------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """Collects the changes, and writes them to the store."""
        return self._message_store.journal

    @property
    def crowded(self) -> bool:
        """Whether the queue should take no more until the store has caught up."""
        return self._message_store.journal.crowded

    def keeps(self, content: Content) -> bool:
        """Whether a message is stored."""
        return self.everything or content.durable

    def when_roomy(self, call: Callable[[], object]) -> None:
        """Call ``call`` once when the store is not ``crowded`` any more."""
        self._message_store.journal.when_roomy(call)

    def enter(self, entry: Entry, stored: Callable[[StoreError | None], object]) -> bool:
        """Write a new message to the store, if it must be stored.

        Returns:
            False if the message need not wait: it is not stored, no earlier message of the queue is on its way to the store, and
            it is not part of a transaction. Otherwise ``stored`` is called when it may be delivered, in the order of the calls.
        """
        keeps = self.keeps(entry.content)
        committing = self._message_store.journal.committing
        if not keeps and not self._pending and not committing:
            return False
        if keeps:
            entry.queue_store = self
            entry.row = self._message_store.next_id()
            self._open.add(entry.row)
            self.write(entry)
        self._pending += 1

        def after(failure: StoreError | None) -> None:
            self._pending -= 1
            if failure is not None and keeps:
                self._open.discard(entry.row)
                entry.queue_store = None
            # A message that is not stored only waited for earlier ones, so their failure does not concern it. In a
            # transaction it does: all messages of that are refused together.
            stored(failure if keeps or committing else None)

        self._message_store.journal.after(after)
        return True

    def write(self, entry: Entry) -> None:
        """Write a message in its present form, unless its queue was deleted."""
        if entry.row not in self._open:
            return
        clock = self._message_store.clock
        content = entry.content
        arrived, ttl = entry.life
        row: Row = (
            entry.row,
            self._address,
            entry.order,
            content.number,
            content.octets,
            entry.origin,
            None if ttl is None else clock.to_wall(arrived),
            ttl,
            None if entry.deadline is None else clock.to_wall(entry.deadline),
            entry.failures,
        )
        self._message_store.journal.note(MESSAGES, entry.row, row, content.size + _OVERHEAD)
        if entry.due is not None:
            self._delayed.add(entry.row)
            self._message_store.journal.note(DELAYS, entry.row, (entry.row, clock.to_wall(entry.due)))
        else:
            self._drop_delay(entry.row)

    # -- out --------------------------------------------------------------------------------

    def erase(self, entry: Entry) -> None:
        """Delete a message from the store."""
        self._open.discard(entry.row)
        self._message_store.journal.drop(MESSAGES, entry.row)
        self._drop_delay(entry.row)
        entry.queue_store = None

    def _drop_delay(self, record: int) -> None:
        if record in self._delayed:
            self._delayed.discard(record)
            self._message_store.journal.drop(DELAYS, record)

    def delete_in_commit(self, entry: Entry) -> Callable[[], object]:
        """Delete the message in the next commit. Return a function that cancels that."""
        self._open.discard(entry.row)
        self._message_store.journal.note(MESSAGES, entry.row, None)
        self._drop_delay(entry.row)
        entry.queue_store = None

        def undo() -> None:
            entry.queue_store = self
            self._open.add(entry.row)

        return undo

    def close(self) -> None:
        """Delete all messages of a deleted queue."""
        for row in self._message_store.take_rows(self._address):
            self._take_delay(cast("int", row[0]))
            self._open.add(cast("int", row[0]))
        for record in self._open:
            self._message_store.journal.drop(MESSAGES, record)
            self._drop_delay(record)
        self._open.clear()

    # -- after a restart --------------------------------------------------------------------

    def resume_lease(self, entry: Entry) -> bool:
        """Whether a link has a lease on a recovered message, and will answer it."""
        content = entry.aged(self._message_store.clock.now()) if entry.ages else entry.content
        key = self._message_store.resume_lease(entry, content)
        if key is not None:
            entry.outlet_key = key
        return key is not None

    def recover(self, queue: EntryQueue) -> Iterator[Entry]:
        """Yield the messages of the last process in order; only under trio."""
        clock = self._message_store.clock
        rows: list[Any] = self._message_store.take_rows(self._address)
        for row in sorted(rows, key=_order_of):
            record, _, place, number, octets, origin, arrived, ttl, expires, failures = row
            readable: list[Content] = []
            with self._message_store.journal.reading(MESSAGES, record):
                # It may have been leased before the restart: that is not written.
                readable.append(content_of(number, octets).acquired())
            if not readable:
                continue
            entry = Entry(queue, place, readable[0], origin)
            entry.queue_store, entry.row, entry.failures = self, record, failures
            entry.turn = 1
            entry.since = clock.wall() if arrived is None else arrived / 1000
            if expires is not None:
                now = clock.now()
                since = now if arrived is None else min(now, clock.from_wall(arrived))
                entry.limit(since, clock.from_wall(expires), ttl)
            due = self._take_delay(record)
            if due is not None:
                entry.due = clock.from_wall(due)
            self._open.add(record)
            yield entry

    def _take_delay(self, record: int) -> int | None:
        due = self._message_store.take_delay(record)
        if due is not None:
            self._delayed.add(record)
        return due


def _order_of(row: Row) -> int:
    return cast("int", row[2])
