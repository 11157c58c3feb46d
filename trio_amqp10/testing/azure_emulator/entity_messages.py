"""EntityMessages: the messages of an entity, with locks and their deadlines.

A message is in one of three states, and may be locked in the first two:

=============  =========================================  ==============================================
state          receiver                                   how the message leaves the state
=============  =========================================  ==============================================
active         the next receiver                          completed, dead, expired, or deferred
deferred       a receiver that requests its number        completed, dead, or expired
scheduled      none                                       active with a new number when due, or cancelled
=============  =========================================  ==============================================

A lock lasts until the message is settled, or until its time ends, even if the link of the delivery ends before: a peer that has
the token may settle it. A message that is not completed becomes available again at its old place, and becomes a dead letter after
``max_delivery_count`` attempts. Messages of a session have their own lane; their locks end with the lock of the session.

There is no timer here: each call first removes what has expired, and ``next_deadline`` returns when that may matter to
others. Knows records and times; knows no links.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.timer_heap import TimerHeap

from .constants import DESCRIPTION, LOCK_LOST, NOT_FOUND, REASON
from .message_locks import ACTIVE, DEFERRED, SCHEDULED, LockableMessage, MessageLock

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator, Mapping

    from trio_amqp10.broker.nodes.clock import Clock

    from .entity import Entity
    from .entity_options import EntityOptions
    from .stored_message import StoredMessage

_EXPIRED: Final = "TTLExpiredException"
_TOO_OFTEN: Final = "MaxDeliveryCountExceeded"


class EntityMessages:
    """The messages of one entity.

    Args:
        options: the rules of the entity.
        clock: the clock for locks and expiry.
        on_available: called with a lane when it has one more message.
        grave: the dead-letter queue; None for an entity without one, whose messages never become dead letters.
    """

    def __init__(
        self,
        options: EntityOptions,
        clock: Clock,
        on_available: Callable[[str | None], object],
        grave: Entity | None,
    ) -> None:
        self.options = options
        self._clock = clock
        self._on_available = on_available
        self._grave = grave
        self._numbers = itertools.count(1)
        self._held: dict[int, LockableMessage] = {}
        self._lanes: dict[str | None, list[int]] = {}
        self._small: dict[tuple[str | None, int], list[int]] = {}  # free messages of a lane up to a size
        self._locks: dict[
            uuid.UUID, MessageLock
        ] = {}  # all locks last equally long, so the first one ends next
        self._timers: TimerHeap[LockableMessage] = TimerHeap()  # for scheduled messages and those that expire

    def __len__(self) -> int:
        return len(self._held)

    @property
    def locked(self) -> int:
        """The number of locked messages."""
        return len(self._locks)

    # -- in ---------------------------------------------------------------------------------

    def enqueue(self, record: StoredMessage) -> int:
        """Store a message, active now or when it is due; return its sequence number."""
        record.number = next(self._numbers)
        record.origin = record.origin or record.number
        now = self._clock.now()
        wall = self._clock.wall() * 1000
        record.enqueued = record.enqueued or round(wall)
        held = self._held[record.number] = LockableMessage(record, ACTIVE)
        if record.due is not None and record.due > wall:
            held.state = SCHEDULED
            held.timer = self._timers.add(now + (record.due - wall) / 1000, held)
        else:
            self._begin(held, now)
        return record.number

    def _begin(self, held: LockableMessage, now: float) -> None:
        """Make a message active, and start its time to live."""
        record = held.record
        if self._grave is not None:
            limit = self.options.default_message_time_to_live
            if limit is not None:
                most = round(limit * 1000)
                record.ttl = most if record.ttl is None else min(record.ttl, most)
            if record.ttl is not None:
                held.expires = now + record.ttl / 1000
                held.timer = self._timers.add(held.expires, held)
        self._put(held)

    def cancel(self, numbers: list[int]) -> None:
        """Delete scheduled messages.

        Raises:
            RefusedError: there is no scheduled message for one of the numbers; then none was deleted.
        """
        for held in self._expect(numbers, SCHEDULED):
            self._remove(held)

    # -- out --------------------------------------------------------------------------------

    def take(self, lane: str | None, limit: int | None = None) -> LockableMessage | None:
        """Remove the next message from its lane, or return None if there is none.

        The caller must lock or delete the message.

        Args:
            lane: the lane.
            limit: the largest message, in octets, that the receiver accepts; None for any. Larger messages stay for other receivers.
        """
        small = None if limit is None else self._small.get((lane, limit))
        if small is not None:
            return self._pop(small)
        numbers = self._lanes.get(lane, [])
        held = self._pop(numbers)
        if held is not None and limit is not None and held.size > limit:
            heapq.heappush(numbers, held.record.number)
            small = self._small[lane, limit] = [each for each in numbers if self._is_small(each, limit)]
            heapq.heapify(small)
            return self._pop(small)
        if held is None:
            self._lanes.pop(lane, None)
        return held

    def _pop(self, numbers: list[int]) -> LockableMessage | None:
        while numbers:
            held = self._held.get(heapq.heappop(numbers))
            if held is not None and held.is_free:
                return held
        return None

    def _is_small(self, number: int, limit: int) -> bool:
        held = self._held.get(number)
        return held is not None and held.is_free and held.size <= limit

    def first(self, lane: str | None) -> LockableMessage | None:
        """Return the next message, which stays in its lane."""
        held = self.take(lane)
        if held is not None:
            heapq.heappush(self._lanes.setdefault(lane, []), held.record.number)
        return held

    def forget_limit(self, limit: int) -> None:
        """Forget the index of a size limit that no receiver has now."""
        for key in [key for key in self._small if key[1] == limit]:
            del self._small[key]

    def lock(self, held: LockableMessage) -> MessageLock:
        """Lock a message for one receiver."""
        lock = held.lock = MessageLock(self, held)
        self._locks[lock.token] = lock
        self._last(lock)
        return lock

    def _last(self, lock: MessageLock) -> None:
        if not self.options.requires_session:
            duration = self.options.lock_duration
            lock.expires_at = self._clock.now() + duration
            lock.wall = round((self._clock.wall() + duration) * 1000)

    def defer_out(
        self, numbers: list[int], *, locking: bool, session: str | None = None
    ) -> list[LockableMessage]:
        """Lock or delete the deferred messages with these numbers, and return them.

        Args:
            numbers: their sequence numbers.
            locking: whether they are locked; otherwise they are deleted.
            session: the session that they are in; None for any message of an entity without sessions.

        Raises:
            RefusedError: there is no unlocked deferred message for one of the numbers; then nothing has changed.
        """
        found = self._expect(numbers, DEFERRED, session)
        for held in found:
            if locking:
                self.lock(held)
            else:
                self._remove(held)
        return found

    def _expect(self, numbers: list[int], state: int, session: str | None = None) -> list[LockableMessage]:
        self.sweep()
        found: list[LockableMessage] = []
        for number in dict.fromkeys(numbers):
            held = self._held.get(number)
            if (
                held is None
                or held.state != state
                or held.lock is not None
                or session not in (None, held.record.session)
            ):
                kind = "deferred" if state == DEFERRED else "scheduled"
                raise RefusedError(NOT_FOUND, f"no {kind} message with sequence number {number}")
            found.append(held)
        return found

    def peek(self, number: int, session: str | None) -> Iterator[LockableMessage]:
        """Iterate over messages in any state, in order, from this number on.

        Without ``session``, the messages of all sessions.
        """
        self.sweep()
        for held in list(self._held.values()):
            record = held.record
            if record.number >= number and session in (None, record.session):
                yield held

    @property
    def lanes(self) -> list[str | None]:
        """The lanes with unlocked messages, the lane with the oldest message first."""
        first: dict[str | None, int] = {}
        for lane in list(self._lanes):
            held = self.first(lane)
            if held is not None:
                first[lane] = held.record.number
        return sorted(first, key=first.__getitem__)

    def available(self, lane: str | None) -> int:
        """Return roughly how many messages of a lane are available."""
        return len(self._lanes.get(lane, ()))

    # -- back -------------------------------------------------------------------------------

    def find(self, token: uuid.UUID) -> MessageLock:
        """Return the lock with this token.

        Raises:
            RefusedError: the lock has ended.
        """
        self.sweep()
        lock = self._locks.get(token)
        if lock is None:
            raise RefusedError(LOCK_LOST, f"the lock {token} has ended")
        return lock

    def renew(self, lock: MessageLock) -> None:
        """Restart the time of a lock."""
        self._locks[lock.token] = self._locks.pop(lock.token)
        self._last(lock)

    def complete(self, lock: MessageLock) -> None:
        """Delete a message that was processed.

        Raises:
            RefusedError: the lock has ended.
        """
        self._remove(self._unlock(lock))

    def abandon(
        self, lock: MessageLock, properties: Mapping[Any, Any] | None = None, *, failed: bool = True
    ) -> None:
        """Make a message available again.

        Raises:
            RefusedError: the lock has ended.
        """
        held = self._unlock(lock)
        held.record.change(properties or {})
        held.record.failures += failed
        self._put(held)

    def defer(self, lock: MessageLock, properties: Mapping[Any, Any] | None = None) -> None:
        """Defer a message, until a receiver requests its number.

        Raises:
            RefusedError: the lock has ended.
        """
        held = self._unlock(lock)
        held.record.change(properties or {})
        held.record.failures += 1
        held.state = DEFERRED
        self._put(held)

    def bury(
        self, lock: MessageLock, reason: Any, description: Any, properties: Mapping[Any, Any] | None = None
    ) -> None:
        """Move a message to the dead-letter queue.

        Raises:
            RefusedError: the lock has ended.
        """
        held = self._unlock(lock)
        held.record.change(properties or {})
        if self._grave is None:
            self._put(held)
        else:
            self._end(held, reason, description)

    def _unlock(self, lock: MessageLock) -> LockableMessage:
        held = self.find(lock.token).held
        del self._locks[lock.token]
        held.lock = None
        return held

    def release_session(self, session: str, *, failed: bool) -> None:
        """Make the locked messages of a session available, because its lock has ended."""
        for lock in [each for each in self._locks.values() if each.held.record.session == session]:
            self.abandon(lock, failed=failed)

    def _put(self, held: LockableMessage) -> None:
        """Make an unlocked message available, unless it has expired or failed too often."""
        record = held.record
        if self._grave is not None and held.expires <= self._clock.now():
            self._expire(held)
        elif self._grave is not None and record.failures >= self.options.max_delivery_count:
            self._end(held, _TOO_OFTEN, f"delivered {record.failures} times and never completed")
        elif held.state == ACTIVE:
            lane = record.session if self.options.requires_session else None
            heapq.heappush(self._lanes.setdefault(lane, []), record.number)
            for (its, limit), small in self._small.items():
                if its == lane and held.size <= limit:
                    heapq.heappush(small, record.number)
            self._on_available(lane)

    def _expire(self, held: LockableMessage) -> None:
        if self.options.dead_lettering_on_message_expiration:
            self._end(held, _EXPIRED, "the message has expired")
        else:
            self._remove(held)

    def _remove(self, held: LockableMessage) -> None:
        del self._held[held.record.number]
        if held.timer is not None:
            held.timer.cancel()

    def _end(self, held: LockableMessage, reason: Any, description: Any) -> None:
        assert self._grave is not None
        self._remove(held)
        record = held.record
        record.change({REASON: reason, DESCRIPTION: description})
        self._grave.receive(record)

    # -- time -------------------------------------------------------------------------------

    def sweep(self) -> None:
        """End the locks, and move or delete the messages, whose time is over."""
        now = self._clock.now()
        for lock in list(itertools.takewhile(lambda each: each.expires_at <= now, self._locks.values())):
            del self._locks[lock.token]
            lock.held.lock = None
            lock.held.record.failures += 1
            self._put(lock.held)
        for held in self._timers.pop_due(now):
            if held.state == SCHEDULED:
                self._remove(held)
                self._awaken(held.record)
            elif held.lock is None:
                self._expire(held)

    def _awaken(self, record: StoredMessage) -> None:
        """Store a scheduled message again, as if it had been sent now."""
        record.due = None
        record.enqueued = 0
        self.enqueue(record)

    def next_deadline(self) -> float:
        """Return when ``sweep`` may have work; infinite if never."""
        locks = next(iter(self._locks.values()), None)
        return min(math.inf if locks is None else locks.expires_at, self._timers.next())
