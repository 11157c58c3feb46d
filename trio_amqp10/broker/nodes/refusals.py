"""Messages of a queue that a receiver refused for itself (``undeliverable-here``).

A refusal (3.4.5) holds for one receiver: a link endpoint of AMQP 1.0, or a channel of 10.3. It ends with that receiver. A link
whose terminus is kept keeps its refusals too, until the terminus expires. A receiver that attaches again under the same name is a
new receiver, and may have the message.

Knows entries and receivers; knows no links.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from .entry import ANYONE, Eligibility

if TYPE_CHECKING:
    from .available import AvailableMessages
    from .entry import Entry
    from .queue import Queue

MOST_REFUSERS: Final = 64
"""The most receivers that one message is kept from at a time.

If one more refuses it, the others are forgotten, and may have it again.
"""
_AT_ONCE: Final = 500
"""Messages that one call readmits: the task that reads from peers must not block."""


class OutletKey:
    """The identity of one receiver, as queues remember it.

    Attributes:
        over: whether the receiver has ended, so that its refusals are not remembered.
    """

    __slots__ = ("_queues", "over")

    def __init__(self) -> None:
        self.over: bool = False
        self._queues: set[Queue] | None = None  # None if empty: most receivers refuse nothing.

    def remember_in(self, queue: Queue) -> None:
        """Make this queue forget the refusals when the receiver ends."""
        if self._queues is None:
            self._queues = set()
        self._queues.add(queue)

    def forget_queue(self, queue: Queue) -> None:
        """Remove a queue that remembers no refusal of the receiver."""
        if self._queues is not None:
            self._queues.discard(queue)

    def end(self) -> None:
        """End the receiver: all queues forget its refusals. Calling it again does nothing."""
        self.over = True
        queues, self._queues = self._queues, None
        for queue in queues or ():
            queue.forget_refusals_by(self)


class Refusals:
    """The refusals of one queue.

    Args:
        queue: the queue.
        available: the messages of the queue that are not leased.
    """

    __slots__ = ("_available", "_by_key", "_over", "_queue")

    def __init__(self, queue: Queue, available: AvailableMessages) -> None:
        self._queue = queue
        self._available = available
        self._by_key: dict[OutletKey, dict[Entry, None]] = {}
        self._over: deque[tuple[OutletKey, dict[Entry, None]]] | None = None  # an empty one is 624 octets

    def __len__(self) -> int:
        """The number of receivers that are remembered."""
        return len(self._by_key) + len(self._over or ())

    @property
    def unfinished(self) -> bool:
        """Whether messages that a former receiver refused must still be readmitted."""
        return bool(self._over)

    def add(self, entry: Entry, key: object) -> None:
        """Keep a message, which is not available, from a receiver."""
        excluded = entry.eligibility.excluded
        if isinstance(key, OutletKey):
            if key.over:
                return
            if key not in self._by_key:
                self._by_key[key] = {}
                key.remember_in(self._queue)
            self._by_key[key][entry] = None
        if len(excluded) >= MOST_REFUSERS:
            for other in excluded - {key}:
                self._drop(entry, other)
            excluded = frozenset[object]()
        entry.eligibility = Eligibility(excluded | {key}, entry.eligibility.reserved)

    def remove(self, entry: Entry) -> None:
        """Forget the refusals of a message that is gone."""
        for key in entry.eligibility.excluded:
            self._drop(entry, key)

    def _drop(self, entry: Entry, key: object) -> None:
        if not isinstance(key, OutletKey):
            return
        refused = self._by_key.get(key)
        if refused is None:
            for over, left in self._over or ():
                if over is key:
                    left.pop(entry, None)
            return
        refused.pop(entry, None)
        if not refused:
            del self._by_key[key]
            key.forget_queue(self._queue)

    def forget(self, key: OutletKey) -> None:
        """Forget a receiver that has ended; ``go_on`` readmits the messages it refused."""
        refused = self._by_key.pop(key, None)
        if refused:
            if self._over is None:
                self._over = deque()
            self._over.append((key, refused))

    def go_on(self) -> None:
        """Readmit some of the messages that former receivers refused."""
        left = _AT_ONCE
        while self._over and left:
            key, refused = self._over[0]
            while refused and left:
                left -= 1
                self._readmit(refused.popitem()[0], key)
            if not refused:
                self._over.popleft()
        if not self._over:
            self._over = None

    def _readmit(self, entry: Entry, key: OutletKey) -> None:
        available = entry.available
        if available:
            self._available.remove(entry)
        excluded, reserved = entry.eligibility
        excluded -= {key}
        entry.eligibility = Eligibility(excluded, reserved) if excluded or reserved is not None else ANYONE
        if available:
            self._available.add(entry)  # It need not be offered: the receiver of this key has ended.

    def clear(self) -> None:
        """Forget all refusals of a deleted queue."""
        for key in self._by_key:
            key.forget_queue(self._queue)
        self._by_key.clear()
        self._over = None
