"""The durable messages of all queues, stored before their senders are answered.

A durable message is accepted once the commit that holds it is done, and no receiver has it before;
what comes behind it on the same queue waits its turn, durable or not. A message that a receiver
accepted is deleted, and one that came back changed is written again. What is stored of a
message is its octets as the queue has them, its place, and the times of day by which it expires, and when it is due if it waits
for its next delivery.

What a crash can undo: that a message was given out (so ``first-acquirer`` is false when it comes
back, and ``redelivered`` true), and the last changes that no peer was promised: an attempt counted, or a receiver's acceptance.

Knows entries and rows; knows no link.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.container.stores.base import StoreTable
from trio_amqp10.container.stores.cells import COUNT, NAME, NUMBER, TEXT, TIME, either, optional, whole
from trio_amqp10.container.stores.cells import OCTETS as STORED_OCTETS
from trio_amqp10.container.stores.group_commit import Journal

from .entry import BEFORE_ALL, HIGHEST, Entry, first_order_of_rank
from .form_registry import content_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trio_amqp10.container.stores.base import Row, Store, StoreError

    from .clock import Clock
    from .content import Content
    from .entry import EntryQueue
    from .node import Lease

    Resume = Callable[[Lease, Any], object]
    """Returns the key of the link that has a message, and has that link answer the lease; None if there is none."""

__all__ = ["DELAYS", "HIDDEN", "MESSAGES", "SUBSCRIPTIONS", "MessageStore", "QueueStore"]

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
"""When messages that wait for their next delivery are due, in milliseconds since 1970."""
SUBSCRIPTIONS: Final = StoreTable(
    "subscriptions",
    ("id", "topic", "name", "owner", "identity", "shared", "lasting", "selection"),
    str,
    (TEXT, TEXT, optional(TEXT), optional(TEXT), optional(TEXT), whole(0, 1), NUMBER, _SELECTION),
)
HIDDEN: Final = "\0"
"""Addresses of what is no node of its own, but part of one, begin so."""

_OVERHEAD: Final = 200


class MessageStore:
    """The messages of all queues of a container that are to survive it.

    Args:
        store: where they are kept.
        clock: what they expire by.
        keeps_all: whether a queue that does not say otherwise keeps all its messages, not only those that ask to survive.

    Attributes:
        journal: through which all goes to the store.
        keeps_all: as given.

    Raises:
        StoreError: what the store has cannot be read.
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
        # What cannot be read is not overwritten by a new message.
        aside = self.journal.rows_set_aside.get(MESSAGES, ())
        self._last = max([self._last, *(key for key in aside if isinstance(key, int))])
        self._delays = {cast("int", row[0]): cast("int", row[1]) for row in self.journal.rows(DELAYS)}

        for row in self.journal.rows(SUBSCRIPTIONS):
            self._subscriptions.setdefault(cast("str", row[1]), []).append(row)

    @property
    def addresses(self) -> list[str]:
        """Of nodes that have messages here, and that do not exist yet."""
        return [address for address in self._rows if not address.startswith(HIDDEN)]

    @property
    def records(self) -> set[int]:
        """The keys of all messages whose nodes do not exist yet."""
        return {cast("int", row[0]) for rows in self._rows.values() for row in rows}

    def take_rows(self, address: str) -> list[Row]:
        """What the store had of this node; once."""
        return self._rows.pop(address, [])

    def take_delay(self, record: int) -> int | None:
        """When the message is due, in milliseconds since 1970, as the store had it; None if it did not wait."""
        return self._delays.pop(record, None)

    def take_subscriptions(self, topic: str) -> list[Row]:
        """The durable subscriptions that the store had of this topic; once."""
        return self._subscriptions.pop(topic, [])

    def resume_by(self, record: int | str, resume: Resume) -> None:
        """Have ``resume`` asked which link has this message, when its node takes it back."""
        self._resumes[record] = resume

    def resume_lease(self, lease: Lease, content: Content | Any) -> object | None:
        """As ``ContainerPeer.resume_lease``."""
        record = lease.record
        resume = None if record is None else self._resumes.pop(record, None)
        return None if resume is None else resume(lease, content)

    def next_id(self) -> int:
        """A key for one more message; they grow with time, so that rows are added at the end."""
        self._last += 1
        return self._last


class QueueStore:
    """The messages of one queue that are on disk, or on their way there.

    Args:
        message_store: that it is part of.
        address: of the queue.
        everything: whether it has all messages of the queue, not only those that ask to survive; None for what
            ``message_store`` does with a queue that does not say.

    Attributes:
        everything: whether it has all messages of the queue.
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
        """Through which all goes to the store."""
        return self._message_store.journal

    @property
    def crowded(self) -> bool:
        """Whether the queue should take no more until the store has caught up."""
        return self._message_store.journal.crowded

    def keeps(self, content: Content) -> bool:
        """Whether a message is written, and not only held."""
        return self.everything or content.durable

    def when_roomy(self, call: Callable[[], object]) -> None:
        """Call back, once, when that is over."""
        self._message_store.journal.when_roomy(call)

    def enter(self, entry: Entry, stored: Callable[[StoreError | None], object]) -> bool:
        """Keep a message that came, if it wants to be kept.

        Returns:
            False where it need not wait: it is not to survive, and nothing before it is on its
            way, nor is it part of a transaction. Otherwise ``stored`` is called, in the order of calls, when it may be given out.
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
            # What is not to survive shares the fate of others only in a transaction.
            stored(failure if keeps or committing else None)

        self._message_store.journal.after(after)
        return True

    def write(self, entry: Entry) -> None:
        """Write a message as it is now; nothing, where its queue was deleted and its lease ends after that."""
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
        """It is gone for good."""
        self._open.discard(entry.row)
        self._message_store.journal.drop(MESSAGES, entry.row)
        self._drop_delay(entry.row)
        entry.queue_store = None

    def _drop_delay(self, record: int) -> None:
        if record in self._delayed:
            self._delayed.discard(record)
            self._message_store.journal.drop(DELAYS, record)

    def delete_in_commit(self, entry: Entry) -> Callable[[], object]:
        """Delete it in this commit or not at all; what is returned undoes that where the commit has failed."""
        self._open.discard(entry.row)
        self._message_store.journal.note(MESSAGES, entry.row, None)
        self._drop_delay(entry.row)
        entry.queue_store = None

        def undo() -> None:
            entry.queue_store = self
            self._open.add(entry.row)

        return undo

    def close(self) -> None:
        """The queue was deleted, and its messages with it."""
        for row in self._message_store.take_rows(self._address):
            self._take_delay(cast("int", row[0]))
            self._open.add(cast("int", row[0]))
        for record in self._open:
            self._message_store.journal.drop(MESSAGES, record)
            self._drop_delay(record)
        self._open.clear()

    # -- after a restart --------------------------------------------------------------------

    def resume_lease(self, entry: Entry) -> bool:
        """Whether a link has a lease on a message that comes back: what its receiver says of it is awaited."""
        content = entry.aged(self._message_store.clock.now()) if entry.ages else entry.content
        key = self._message_store.resume_lease(entry, content)
        if key is not None:
            entry.outlet_key = key
        return key is not None

    def recover(self, queue: EntryQueue) -> Iterator[Entry]:
        """What was here when the last process ended, in order; needs trio to run."""
        clock = self._message_store.clock
        rows: list[Any] = self._message_store.take_rows(self._address)
        for row in sorted(rows, key=_order_of):
            record, _, place, number, octets, origin, arrived, ttl, expires, failures = row
            readable: list[Content] = []
            with self._message_store.journal.reading(MESSAGES, record):
                readable.append(content_of(number, octets).acquired())  # perhaps, before the restart
            if not readable:
                continue
            entry = Entry(queue, place, readable[0], origin)
            entry.queue_store, entry.row, entry.failures = self, record, failures
            entry.turn = 1  # it may have been given out: that is not written
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
