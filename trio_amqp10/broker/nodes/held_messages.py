"""The messages that a queue holds, until they are accepted or die.

Counts them, and knows which are available (``available``), when they expire, and which of them a store has
(``message_store``). A message dies when it is rejected, has expired, has failed too often, or must make room for another
one; it then goes to the dead-letter address, if there is one (``deadletters``).

The deadline comes from the ttl and the expiry of a message, and from the ttl of the queue. A message that expires while it
is leased dies when it is returned. A failed message may have to wait before it is available again (``delayed``).

Knows no links: it notifies the queue of messages that are gone; the queue decides which link gets a message.
"""

from __future__ import annotations

import itertools
import logging
import math
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, cast

from trio_amqp10.core.timer_heap import TimerHeap

from . import stored_rest
from .available import AvailableMessages
from .deadletters import DeadLetters
from .entry import ANYONE, HIGHEST, SHIFT, Entry
from .stored_rest import size_of
from .watermark import OVERHEAD, Watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trio_amqp10.broker.stores.base import Row, StoreError
    from trio_amqp10.broker.stores.group_commit import Journal

    from .clock import Clock
    from .content import Content, Death
    from .message_store import QueueStore
    from .queue import Queue
    from .sorted_blocks import SortedBlocks
    from .stored_rest import StoredRest

_log = logging.getLogger("trio_amqp10.container")

CAUSES: Final[dict[Death, str]] = {
    "rejected": "rejected",
    "expired": "expired",
    "delivery-limit": "failed",
    "overflow": "dropped",
    "deleted": "deleted",
}
"""The name of the figure that counts the messages that died of each cause."""
_FREED: Final = 64
"""The number of timers that are freed in one step."""
_FIGURES: Final = ("arrived", "refused", "accepted", *CAUSES.values())


class HeldMessages:
    """The messages of one queue.

    Args:
        owner: the queue.
        clock: the clock by which messages expire.
        queue_store: stores durable messages; None for a queue that is lost with the process.

    Attributes:
        queue_store: as given.
        length: the number of messages, leased ones included.
        octets: the size of these messages.
        available: the messages that are neither leased nor delayed.
        figures: how many messages arrived, were accepted, were refused, and died of each cause.
        redelivered: how many deliveries were not the first of their message.
        returned: how many deliveries ended, and their message stayed or died of that.
        deadlines: the messages that expire, by deadline, leased ones included.
        delayed: the messages that wait for their next delivery, by due time; they are neither available nor leased.
        watermark: counts the octets, together with those of other nodes.
        closed: whether the queue is deleted.
    """

    __slots__ = (
        "_coming",
        "_coming_octets",
        "_dying",
        "_dying_octets",
        "_letters",
        "_owner",
        "_sequence",
        "available",
        "clock",
        "closed",
        "deadlines",
        "delayed",
        "figures",
        "length",
        "octets",
        "queue_store",
        "redelivered",
        "returned",
        "watermark",
    )

    available_class: ClassVar[type[AvailableMessages]] = AvailableMessages

    def __init__(self, owner: Queue, clock: Clock, queue_store: QueueStore | None) -> None:
        self._owner = owner
        self.clock: Final = clock
        self.queue_store: QueueStore | None = queue_store
        self.length: int = 0
        self.octets: int = 0
        self.available: AvailableMessages = self.available_class()
        self.figures: Final = dict.fromkeys(_FIGURES, 0)
        self.redelivered: int = 0
        self.returned: int = 0
        self.deadlines: TimerHeap[Entry] = TimerHeap()
        self.delayed: TimerHeap[Entry] = TimerHeap()
        self.watermark: Watermark = Watermark()
        self.closed: bool = False
        self._dying = self._dying_octets = 0
        self._coming = 0
        self._coming_octets = 0
        self._sequence = itertools.count()
        self._letters: DeadLetters | None = None

    @property
    def leased(self) -> int:
        """The number of messages that a link has a lease on."""
        if not self.length:
            return 0
        return self.length - len(self.available) - len(self.delayed) - self._dying - self._coming

    @property
    def bound_for_death(self) -> int:
        """The number of dead letters that no other node has accepted yet."""
        return self._dying

    @property
    def letters_wait(self) -> bool:
        """Whether a dead letter waits for room at its address.

        Then dropping more messages would make no room here.
        """
        return self._dying > 0 and self._letters is not None and self._letters.wait_for_room

    @property
    def awaits_store(self) -> bool:
        """Whether new messages wait for the store."""
        return self._coming > 0

    @property
    def delivered(self) -> int:
        """The number of deliveries to consumers, those that are not settled included."""
        return self.figures["accepted"] + self.figures["rejected"] + self.returned + self.leased

    @property
    def deaths(self) -> dict[Death, int]:
        """How many messages died of each cause."""
        return {cause: self.figures[name] for cause, name in CAUSES.items()}

    def is_full(self, length: int = 0, octets: int = 0) -> bool:
        """Whether the queue is full with so many more messages and octets than it holds."""
        policy = self._owner.policy
        if policy.bound == "ready":
            length += len(self.available)
            octets += self.available.octets
            if (
                policy.rejects
            ):  # Messages on their way to the disk are not available yet, but have been admitted.
                length += self._coming
                octets += self._coming_octets
            return policy.is_full(length, octets)
        if self._dying and policy.overflow == "drop-oldest" and not self.letters_wait:
            length -= self._dying  # The letters on their way, for example to the disk, leave soon.
            octets -= self._dying_octets
        return policy.is_full(self.length + length, self.octets + octets)

    @property
    def is_untouched(self) -> bool:
        """Whether all totals are 0: most queues of a large container are idle."""
        return not (self.length or self.returned or any(self.figures.values()))

    def totals(self) -> dict[str, int]:
        """Return the figures that only grow, by name; a closed queue keeps them."""
        return self.figures | {"delivered": self.delivered, "redelivered": self.redelivered}

    def statistics(self) -> dict[str, int]:
        """Return the current figures by name."""
        held = {
            "messages": self.length,
            "octets": self.octets,
            "available": len(self.available),
            "leased": self.leased,
            "delayed": len(self.delayed),
        }
        return held | self.figures

    # -- what it weighs ---------------------------------------------------------------------

    def count_in(self, watermark: Watermark) -> None:
        """Use another watermark, and count there all that is held."""
        self.unweigh_all()
        self.watermark = watermark
        watermark.add(*self._in_memory)

    def weigh(self, entry: Entry) -> None:
        """Count a message in the watermark, without a call of ``watermark.add`` for each."""
        mark = self.watermark
        mark.octets += entry.length + OVERHEAD
        if mark.octets > mark.rise_at:
            mark.rise()

    def unweigh(self, entry: Entry) -> None:
        """Remove a message from the watermark."""
        mark = self.watermark
        mark.octets -= entry.length + OVERHEAD
        if mark.octets < mark.fall_at:
            mark.fall()

    def recount(self, entry: Entry, before: int) -> None:
        """Count the changed length of a message that is not available."""
        if not self.closed:
            self.octets += entry.length - before
            self.reweigh(entry, before)

    def reweigh(self, entry: Entry, before: int) -> None:
        """Count the changed length of a message in the watermark."""
        if entry.length > before:
            self.watermark.add(entry.length - before, 0)
        else:
            self.watermark.remove(before - entry.length, 0)

    def unweigh_all(self) -> None:
        """Remove all messages from the watermark."""
        self.watermark.remove(*self._in_memory)

    @property
    def _in_memory(self) -> tuple[int, int]:
        """The octets and the number of the messages that are not in the store alone."""
        rest = self.rest
        return (
            (self.octets, self.length)
            if rest is None
            else (self.octets - rest.octets, self.length - rest.count)
        )

    # -- in ---------------------------------------------------------------------------------

    def enter(self, content: Content, origin: str | None) -> Entry:
        """Hold a new message of this origin; the queue then decides which link gets it."""
        policy = self._owner.policy
        priority, ttl, expiry, group = content.terms
        highest = HIGHEST if policy.max_priority is None else policy.max_priority
        if priority > highest:
            priority = highest
        entry = Entry(self._owner, (HIGHEST - priority) << SHIFT | next(self._sequence), content, origin)
        if group is not None and policy.grouped:
            entry.group = group
        entry.since = self.clock.wall()
        self.figures["arrived"] += 1
        self.length += 1
        self.octets += entry.length
        self.weigh(entry)
        limit = policy.ttl
        if ttl is not None or expiry is not None or limit is not None:
            now = self.clock.now()
            entry.limit(now, self.clock.deadline(now, ttl, expiry, limit), ttl)
        return entry

    def store(self, entry: Entry, stored: Callable[[StoreError | None], object]) -> bool:
        """Write a new message to the store, if it must be stored.

        Returns:
            False if it need not wait for the store. Otherwise ``stored`` is called when it may be delivered, or could not be
            stored, and must call ``end_wait``.
        """
        if self.queue_store is None or not self.queue_store.enter(entry, stored, behind=self._coming > 0):
            return False
        self._promise_room(entry)
        return True

    def await_commit(
        self, journal: Journal, entry: Entry, stored: Callable[[StoreError | None], object]
    ) -> None:
        """Hold a message that is not stored until its transaction is decided.

        ``stored`` is called then, as for ``store``.
        """
        self._promise_room(entry)
        journal.after(stored)

    def _promise_room(self, entry: Entry) -> None:
        self._coming += 1
        self._coming_octets += entry.size

    def end_wait(self, entry: Entry, failure: StoreError | None) -> None:
        """Count a message that waited for the store; after a failure it is gone."""
        if failure is not None and entry.queue_store is not None:
            entry.queue_store.give_up(entry)
        if not self.closed:
            self._coming -= 1
            self._coming_octets -= entry.size
            if failure is not None:
                self.figures["refused"] += 1
                self.forget(entry)

    def recover(self) -> Iterator[tuple[Entry, bool]]:
        """Hold the stored messages again.

        Yield those that are read before their turn, and whether each is leased to a link. ``page_in`` yields the others.
        """
        if self.queue_store is None:
            return
        entries = list(self.queue_store.recover(self._owner))
        rest = self.queue_store.rest
        if rest is None:
            return
        self._sequence = itertools.count(max(next(self._sequence), rest.highest + 1))
        self.length += rest.count
        self.octets += rest.octets
        self.available.page_out(rest.count, rest.octets)
        for entry in entries:
            self.length += 1
            self.octets += entry.length
            self._take_up(entry)
        leased = {entry for entry in entries if self.queue_store.resume_lease(entry)}
        yield from ((entry, True) for entry in entries if entry in leased)
        # All are counted before the first is handed over. Otherwise, if that one has expired, the queue would seem to
        # be empty, and a temporary queue would be deleted.
        yield from ((entry, False) for entry in entries if entry not in leased)

    def _take_up(self, entry: Entry) -> None:
        """Weigh a stored message that is in memory now, and find its group."""
        if self._owner.policy.grouped:
            entry.group = entry.content.terms.group
        self.weigh(entry)

    # -- messages that are in the store alone -----------------------------------------------

    @property
    def rest(self) -> StoredRest | None:
        """The messages that are in the store alone; None if all are in memory."""
        return None if self.queue_store is None else self.queue_store.rest

    @property
    def is_low(self) -> bool:
        """Whether so few messages are in memory that the next page should be read."""
        available, rest = self.available, self.rest
        return (
            rest is not None
            and len(available) - available.paged_out < stored_rest.PAGE
            and available.octets - rest.octets < stored_rest.PAGE_OCTETS
        )

    def take_head(self) -> int:
        """Return how many messages are read at the start, and count them."""
        rest = self.rest
        assert rest is not None
        assert self.queue_store is not None
        # One more shows that there are no others.
        most = min(stored_rest.PAGE, rest.count + len(rest.ahead) + 1)
        return self.queue_store.take_head(most, min(rest.octets, stored_rest.PAGE_OCTETS))

    def page_in(self, rows: Sequence[Row], page: object) -> Iterator[Entry | None]:
        """Take a page into memory, and after the last page the messages behind it.

        Yield each that the queue must offer next, and None between two of those that it has offered before. The rows that are
        left when another page is begun, or when the rest is deleted, are not read.
        """
        store, rest, available = self.queue_store, self.rest, self.available
        assert store is not None
        if rest is None:
            return
        for row in rows:
            if rest.reading is not page:
                return
            rest.position = row[2], row[0]
            if row[0] in rest.ahead:
                rest.ahead.discard(cast("int", row[0]))
                available.raise_horizon(cast("int", row[2]))
            else:
                readable = store.is_readable(row)
                entry = store.entry_of(self._owner, row) if readable else None
                if readable:
                    available.raise_horizon(cast("int", row[2]))
                self._count_in(rest, row, entry)
                if entry is not None:
                    self._take_up(entry)
                    yield entry
        while rest.reading is page and rest.is_read and (order := available.nearest_beyond) is not None:
            available.raise_horizon(order)
            yield None
        if rest.reading is page:
            rest.reading = None
            if rest.is_read:
                self._end_paging(rest)

    def _count_in(self, rest: StoredRest, row: Row, entry: Entry | None) -> None:
        """Count a message that was in the store alone; None if it cannot be read."""
        rest.leave(row)
        self.available.page_in(size_of(row))
        self.octets += (0 if entry is None else entry.length) - size_of(row)
        if entry is None:
            self.length -= 1

    def _end_paging(self, rest: StoredRest) -> None:
        """Note that all messages are in memory.

        If another program has changed the file, the totals of the rest were wrong: what is left of them does not exist.
        """
        assert self.queue_store is not None
        self.queue_store.rest = None
        self.length -= rest.count
        self.octets -= rest.octets
        self.available.end_paging(rest.count, rest.octets)

    @property
    def is_deep(self) -> bool:
        """Whether so many messages are in memory that new ones go to the store alone."""
        available = self.available
        return (
            self.queue_store is not None
            and self.queue_store.rest is None
            and (len(available) > stored_rest.DEEP or available.octets > stored_rest.DEEP_OCTETS)
        )

    def begin_rest(self, entry: Entry) -> bool:
        """Begin to leave messages to the store with this one, if it is the last."""
        if entry.queue_store is None or entry.deadline is not None or entry.order < self.available.last_order:
            return False
        entry.queue_store.begin_rest(entry.order)
        self.available.horizon = entry.order - 1
        return True

    def page_out(self, entry: Entry) -> bool:
        """Leave a message behind the horizon to the store, if that is possible."""
        rest = self.rest
        drops_oldest = self._owner.policy.overflow == "drop-oldest"
        if entry.queue_store is None or rest is None or not rest.may_take(entry, drops_oldest=drops_oldest):
            return False
        self.octets += entry.content.size - entry.length
        self.unweigh(entry)
        entry.queue_store.page_out(entry)
        self.available.page_out(1, entry.content.size)
        return True

    def erase_rest(self) -> int:
        """Delete the rest; return the number of its messages."""
        rest = self.rest
        assert rest is not None
        assert self.queue_store is not None
        self.queue_store.erase_rest()
        self._end_paging(rest)
        return rest.count

    # -- out --------------------------------------------------------------------------------

    def end(
        self, entry: Entry, reason: Death, condition: str | None = None, description: str | None = None
    ) -> None:
        """Let a message die that is neither leased nor available."""
        self.figures[CAUSES[reason]] += 1
        owner = self._owner
        letters = self._letters_to(owner.policy.dead_letter)
        if letters is None:
            _log.debug("%r: a message died: %s, %.100s: %.1000s", owner, reason, condition, description)
            self.forget(entry)
            return
        # The message still counts until another node has accepted the letter: it is in memory, and perhaps on disk.
        self._dying += 1
        self._dying_octets += entry.length
        self._end(entry)

        def done(gone: bool) -> None:
            # If the letter could not be stored, the message stays in the store and keeps its room.
            if gone and not self.closed:
                self._dying -= 1
                self._dying_octets -= entry.length
                self.forget(entry)

        delete_in_commit = (
            None if entry.queue_store is None else partial(entry.queue_store.delete_in_commit, entry)
        )
        letters.send(entry.content, reason, condition, description, done, delete_in_commit)

    def turn_away(self, content: Content) -> None:
        """Send a copy of a message rejected for lack of room to the dead-letter address."""
        letters = self._letters_to(self._owner.policy.dead_letter)
        if letters is not None:
            letters.send(content, "overflow", None, None, _ignore, None)

    def _letters_to(self, address: str | None) -> DeadLetters | None:
        if address is not None and (self._letters is None or self._letters.address != address):
            self._letters = DeadLetters(self._owner, address)
        return None if address is None else self._letters

    def forget(self, entry: Entry) -> None:
        """Remove a message that is gone: accepted, dead or dropped."""
        self._end(entry)
        if entry.queue_store is not None:
            entry.queue_store.erase(entry)
        self.length -= 1
        self.octets -= entry.length
        self.unweigh(entry)
        self._owner.on_gone(entry)

    def _end(self, entry: Entry) -> None:
        """Mark the message as gone and cancel its timer."""
        entry.ended = True
        if entry.timer is not None:
            entry.timer.cancel()
        if entry.eligibility is not ANYONE:
            self._owner.forget_refusals_of(entry)

    # -- time -------------------------------------------------------------------------------

    def schedule(self, entry: Entry) -> bool:
        """Remember the deadline of a message; return False if it has expired."""
        deadline = entry.deadline
        assert deadline is not None
        if deadline < self.clock.now():
            return False
        entry.timer = self.deadlines.add(deadline, entry)
        return True

    def schedule_leased(self, entry: Entry) -> None:
        """Remember the deadline of a leased message, even if it has expired.

        ``Queue.put_back`` checks it when the lease ends.
        """
        assert entry.deadline is not None
        entry.timer = self.deadlines.add(entry.deadline, entry)

    def expired(self) -> Iterator[Entry]:
        """Iterate over the available messages that have expired."""
        return (entry for entry in self.deadlines.pop_due(self.clock.now()) if entry.available)

    def delay(self, entry: Entry) -> float:
        """Let a message wait until it is due or expires; return that time."""
        due, deadline = entry.due, entry.deadline
        assert due is not None
        until = due if deadline is None else min(due, deadline)
        self.delayed.add(until, entry)
        return until

    # -- the end ----------------------------------------------------------------------------

    def next_sequence(self) -> int:
        """Return a number above those of all present messages, and below all later ones."""
        return next(self._sequence)

    def close(self) -> Iterator[None]:
        """Drop all messages of a deleted queue; return steps that free the memory."""
        self.closed = True
        self.returned += self.leased  # They were delivered, and have no lease any more.
        removed = self.available.clear()
        heaps, self.deadlines, self.delayed = (self.deadlines, self.delayed), TimerHeap(), TimerHeap()
        self.unweigh_all()
        self.length = self._dying = self._dying_octets = self._coming = self._coming_octets = self.octets = 0
        if self.queue_store is not None:
            self.queue_store.close()
        if self._letters is not None:
            self._letters.close()
        return _free(removed, heaps)


def _free(removed: list[SortedBlocks[Entry]], heaps: tuple[TimerHeap[Entry], ...]) -> Iterator[None]:
    for heap in heaps:
        for number, _ in enumerate(heap.pop_due(math.inf), 1):
            if not number % _FREED:
                yield
    for blocks in removed:
        while blocks:
            blocks.drop_some()
            yield


def _ignore(gone: bool) -> None: ...
