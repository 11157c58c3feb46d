"""The messages that a queue holds, until they are accepted or die.

It counts them, knows which are available (``available``), when they expire, and which of them a store has (``message_store``). A
message dies when it is rejected, when its time is over, when it has failed too often, and when it has to make
room; it then goes to the dead-letter address, or nowhere (``deadletters``).

Time comes from the ttl and the expiry of a message, and from the ttl of the queue. A message that a peer has
when it expires dies when it comes back. One that failed may have to wait before it is available again (``delayed``).

Knows no links: the queue is notified of what is gone (``OwningQueue``), and decides who gets what there is.
"""

from __future__ import annotations

import itertools
import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from trio_amqp10.timer_heap import TimerHeap

from .available import AvailableMessages
from .deadletters import DeadLetters, Source
from .entry import ANYONE, HIGHEST, SHIFT, Entry, EntryQueue, unpack_sequence
from .watermark import OVERHEAD, Watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trio_amqp10.container.stores.base import StoreError
    from trio_amqp10.container.stores.group_commit import Journal

    from .clock import Clock
    from .content import Content, Death
    from .message_store import QueueStore
    from .policy import QueuePolicy
    from .sorted_blocks import SortedBlocks

__all__ = ["HeldMessages", "OwningQueue"]

_log = logging.getLogger("trio_amqp10.container")

_CAUSES: Final[dict[Death, str]] = {
    "rejected": "rejected",
    "expired": "expired",
    "delivery-limit": "failed",
    "overflow": "dropped",
    "deleted": "deleted",
}
_FREED: Final = 64
"""Timers that are freed in a step."""
_FIGURES: Final = ("arrived", "refused", "accepted", *_CAUSES.values())


class OwningQueue(EntryQueue, Source, Protocol):
    """The queue, as far as what it holds needs it."""

    policy: QueuePolicy

    def forget_refusals_of(self, entry: Entry) -> None:
        """A message is gone for good, and some receivers had refused it for themselves."""
        ...

    def on_gone(self, entry: Entry) -> None:
        """A message is gone for good: there is more room."""
        ...


class HeldMessages:
    """The messages of one queue.

    Args:
        owner: the queue.
        clock: what messages expire by.
        queue_store: what keeps messages that are to survive; None for a queue that is gone with the process.

    Attributes:
        queue_store: as given.
        length: messages, those under lease among them.
        octets: of these messages.
        available: those that no link has a lease on.
        figures: how many messages arrived, how many were accepted, died of each cause, or were refused.
        deadlines: the messages that expire, by when they do; those that a link has are among them.
        delayed: the messages that wait for their next delivery, by when they are due; they are neither available nor leased.
        watermark: counts the octets, with those of other nodes.
        closed: whether the queue is deleted.
    """

    __slots__ = (
        "_coming",
        "_coming_octets",
        "_dying",
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
        "watermark",
    )

    def __init__(self, owner: OwningQueue, clock: Clock, queue_store: QueueStore | None) -> None:
        self._owner = owner
        self.clock: Final = clock
        self.queue_store: QueueStore | None = queue_store
        self.length: int = 0
        self.octets: int = 0
        self.available: AvailableMessages = AvailableMessages()
        self.figures: Final = dict.fromkeys(_FIGURES, 0)
        self.deadlines: TimerHeap[Entry] = TimerHeap()
        self.delayed: TimerHeap[Entry] = TimerHeap()
        self.watermark: Watermark = Watermark()
        self.closed: bool = False
        self._dying = 0
        self._coming = 0
        self._coming_octets = 0
        self._sequence = itertools.count()
        self._letters: DeadLetters | None = None

    @property
    def leased(self) -> int:
        """Messages that a link has a lease on."""
        return self.length - len(self.available) - len(self.delayed) - self._dying - self._coming

    @property
    def bound_for_death(self) -> int:
        """Dead letters that no other node has accepted yet."""
        return self._dying

    def is_full(self, length: int = 0, octets: int = 0) -> bool:
        """Whether the queue takes no more, with so much more than there is."""
        policy = self._owner.policy
        if policy.bound == "ready":
            length += len(self.available)
            octets += self.available.octets
            if policy.rejects:  # those on their way to the disk have been promised their room
                length += self._coming
                octets += self._coming_octets
            return policy.is_full(length, octets)
        return policy.is_full(self.length + length, self.octets + octets)

    def statistics(self) -> dict[str, int]:
        """Live figures by name."""
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
        """Count there from now on, with what is held already."""
        self.unweigh_all()
        self.watermark = watermark
        watermark.add(self.octets, self.length)

    def weigh(self, entry: Entry) -> None:
        """A message is held. As ``watermark.add``, without another call for each message."""
        mark = self.watermark
        mark.octets += entry.length + OVERHEAD
        if mark.octets > mark.rise_at:
            mark.rise()

    def unweigh(self, entry: Entry) -> None:
        """It is not any more."""
        mark = self.watermark
        mark.octets -= entry.length + OVERHEAD
        if mark.octets < mark.fall_at:
            mark.fall()

    def recount(self, entry: Entry, before: int) -> None:
        """A message that is not available has another length than before."""
        if not self.closed:
            self.octets += entry.length - before
            self.reweigh(entry, before)

    def reweigh(self, entry: Entry, before: int) -> None:
        """A message that had this length before weighs what it does now."""
        if entry.length > before:
            self.watermark.add(entry.length - before, 0)
        else:
            self.watermark.remove(before - entry.length, 0)

    def unweigh_all(self) -> None:
        """Nothing is held any more."""
        self.watermark.remove(self.octets, self.length)

    # -- in ---------------------------------------------------------------------------------

    def enter(self, content: Content, origin: str | None) -> Entry:
        """Answer for a message that came from this origin; the queue says next who gets it."""
        policy = self._owner.policy
        priority, ttl, expiry, group = content.terms
        highest = HIGHEST if policy.max_priority is None else policy.max_priority
        if priority > highest:
            priority = highest
        entry = Entry(self._owner, (HIGHEST - priority) << SHIFT | next(self._sequence), content, origin)
        if group is not None and policy.grouped:
            entry.group = group
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
        """Keep a message that came, if it is to survive; False if it need not wait for the store.

        Otherwise ``stored`` is called when it may be given out, or could not be stored: then it is gone.
        """
        if self.queue_store is None or not self.queue_store.enter(
            entry, partial(self._on_stored, entry, stored)
        ):
            return False
        self._promise_room(entry)
        return True

    def await_commit(
        self, journal: Journal, entry: Entry, stored: Callable[[StoreError | None], object]
    ) -> None:
        """Keep the place of a message that the store does not keep, until the transaction that it is part of is decided."""
        self._promise_room(entry)
        journal.after(partial(self._on_stored, entry, stored))

    def _promise_room(self, entry: Entry) -> None:
        self._coming += 1
        self._coming_octets += entry.size

    def _on_stored(
        self, entry: Entry, stored: Callable[[StoreError | None], object], failure: StoreError | None
    ) -> None:
        if not self.closed:
            self._coming -= 1
            self._coming_octets -= entry.size
            if failure is not None:
                self.figures["refused"] += 1
                self.forget(entry)
        stored(failure)

    def recover(self) -> Iterator[tuple[Entry, bool]]:
        """Take back what was on disk when the process started: each message, and whether a link has a lease on it."""
        if self.queue_store is None:
            return
        last = next(self._sequence)
        entries = list(self.queue_store.recover(self._owner))
        for entry in entries:
            last = max(last, unpack_sequence(entry.order) + 1)
            if self._owner.policy.grouped:
                entry.group = entry.content.terms.group
            self.length += 1
            self.octets += entry.length
            self.weigh(entry)
        self._sequence = itertools.count(last)
        leased = {entry for entry in entries if self.queue_store.resume_lease(entry)}
        yield from ((entry, True) for entry in entries if entry in leased)
        # Now that all are counted: the first to expire must not leave an empty queue.
        yield from ((entry, False) for entry in entries if entry not in leased)

    # -- out --------------------------------------------------------------------------------

    def end(
        self, entry: Entry, reason: Death, condition: str | None = None, description: str | None = None
    ) -> None:
        """A message dies that no link has any more, and that is not available."""
        self.figures[_CAUSES[reason]] += 1
        owner = self._owner
        letters = self._letters_to(owner.policy.dead_letter)
        if letters is None:
            _log.debug("%r: a message died: %s, %.100s: %.1000s", owner, reason, condition, description)
            self.forget(entry)
            return
        self._dying += 1
        self._end(entry)

        def done(gone: bool) -> None:
            if gone and not self.closed:
                self._dying -= 1
                self.forget(entry)

        delete_in_commit = (
            None if entry.queue_store is None else partial(entry.queue_store.delete_in_commit, entry)
        )
        letters.send(entry.content, reason, condition, description, done, delete_in_commit)

    def turn_away(self, content: Content) -> None:
        """A message was rejected because the queue is full: a copy of it goes to the dead-letter address, if there is one."""
        letters = self._letters_to(self._owner.policy.dead_letter)
        if letters is not None:
            letters.send(content, "overflow", None, None, _ignore, None)

    def _letters_to(self, address: str | None) -> DeadLetters | None:
        if address is not None and (self._letters is None or self._letters.address != address):
            self._letters = DeadLetters(self._owner, address)
        return None if address is None else self._letters

    def forget(self, entry: Entry) -> None:
        """A message is gone for good."""
        self._end(entry)
        if entry.queue_store is not None:
            entry.queue_store.erase(entry)
        self.length -= 1
        self.octets -= entry.length
        self.unweigh(entry)
        self._owner.on_gone(entry)

    def _end(self, entry: Entry) -> None:
        """Nothing becomes of it any more, and it does not expire."""
        entry.ended = True
        if entry.timer is not None:
            entry.timer.cancel()
        if entry.eligibility is not ANYONE:
            self._owner.forget_refusals_of(entry)

    # -- time -------------------------------------------------------------------------------

    def schedule(self, entry: Entry) -> bool:
        """Remember when a message expires that has a deadline; False if that is over."""
        deadline = entry.deadline
        assert deadline is not None
        if deadline < self.clock.now():
            return False
        entry.timer = self.deadlines.add(deadline, entry)
        return True

    def schedule_leased(self, entry: Entry) -> None:
        """The same for a message that a link has: that it has expired is looked at when it comes back."""
        assert entry.deadline is not None
        entry.timer = self.deadlines.add(entry.deadline, entry)

    def expired(self) -> Iterator[Entry]:
        """Those that have expired and are available."""
        return (entry for entry in self.deadlines.pop_due(self.clock.now()) if entry.available)

    def delay(self, entry: Entry) -> float:
        """Have a message wait until it is due, or expires; returns when that is, in seconds on the clock."""
        due, deadline = entry.due, entry.deadline
        assert due is not None
        until = due if deadline is None else min(due, deadline)
        self.delayed.add(until, entry)
        return until

    def next_deadline(self) -> float:
        """When the next message expires or is due, in seconds on the clock; infinite for never."""
        return min(self.deadlines.next(), self.delayed.next())

    # -- the end ----------------------------------------------------------------------------

    def next_sequence(self) -> int:
        """A number above those of all messages that are here, and below those of all that come."""
        return next(self._sequence)

    def close(self) -> Iterator[None]:
        """The queue is deleted, and all that it holds with it; what is returned frees the memory, in steps."""
        self.closed = True
        removed = self.available.clear()
        heaps, self.deadlines, self.delayed = (self.deadlines, self.delayed), TimerHeap(), TimerHeap()
        self.unweigh_all()
        self.length = self._dying = self._coming = self._coming_octets = self.octets = 0
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


def _ignore(gone: bool) -> None:
    """Nothing waits for it."""
