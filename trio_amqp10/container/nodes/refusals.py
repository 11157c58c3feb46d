"""Which receivers have refused which messages of a queue for themselves (``undeliverable-here``, 3.4.5).

A refusal speaks of one receiver: a link endpoint of AMQP 1.0, a channel of 10.3. It ends with that receiver. A link whose
terminus is kept keeps its refusals too, until the terminus expires. A receiver that comes back under the same name is another
one, and may have the message.

Knows entries and receivers; knows no links.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from .entry import ANYONE, Eligibility

if TYPE_CHECKING:
    from .available import AvailableMessages
    from .entry import Entry

__all__ = ["MOST_REFUSERS", "OutletKey", "Refusals"]

MOST_REFUSERS: Final = 64
"""Receivers at the same time that one message is kept from. If one more refuses it, it is offered to the others again."""
_AT_ONCE: Final = 500
"""Messages that one call readmits: the task that reads from all peers must not stand still for long."""


class _Remembering(Protocol):
    """A queue that remembers refusals."""

    def forget_refusals_by(self, key: OutletKey) -> None:
        """The receiver is gone."""
        ...


class OutletKey:
    """The identity of one receiver, as queues remember it.

    Attributes:
        over: whether the receiver is gone, so that nothing is remembered of it any more.
    """

    __slots__ = ("_queues", "over")

    def __init__(self) -> None:
        self.over: bool = False
        self._queues: set[_Remembering] | None = None  # most receivers refuse nothing

    def remember_in(self, queue: _Remembering) -> None:
        """Have this queue forget the refusals when the receiver ends."""
        if self._queues is None:
            self._queues = set()
        self._queues.add(queue)

    def forget_queue(self, queue: _Remembering) -> None:
        """Forget a queue that remembers nothing of the receiver any more."""
        if self._queues is not None:
            self._queues.discard(queue)

    def end(self) -> None:
        """End the receiver: all queues forget its refusals. Nothing happens the second time."""
        self.over = True
        queues, self._queues = self._queues, None
        for queue in queues or ():
            queue.forget_refusals_by(self)


class Refusals:
    """The refusals of one queue.

    Args:
        queue: whose they are.
        available: the messages of the queue that are not leased.
    """

    __slots__ = ("_available", "_by_key", "_over", "_queue")

    def __init__(self, queue: _Remembering, available: AvailableMessages) -> None:
        self._queue = queue
        self._available = available
        self._by_key: dict[OutletKey, dict[Entry, None]] = {}
        self._over: deque[tuple[OutletKey, dict[Entry, None]]] = deque()

    def __len__(self) -> int:
        """The receivers that are remembered."""
        return len(self._by_key) + len(self._over)

    @property
    def unfinished(self) -> bool:
        """Whether messages are left that a receiver refused which is gone."""
        return bool(self._over)

    def add(self, entry: Entry, key: object) -> None:
        """Keep a message that is not available from a receiver."""
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
        """A message is gone for good."""
        for key in entry.eligibility.excluded:
            self._drop(entry, key)

    def _drop(self, entry: Entry, key: object) -> None:
        if not isinstance(key, OutletKey):
            return
        refused = self._by_key.get(key)
        if refused is None:
            for over, left in self._over:
                if over is key:
                    left.pop(entry, None)
            return
        refused.pop(entry, None)
        if not refused:
            del self._by_key[key]
            key.forget_queue(self._queue)

    def forget(self, key: OutletKey) -> None:
        """A receiver is gone; ``go_on`` readmits what it refused."""
        refused = self._by_key.pop(key, None)
        if refused:
            self._over.append((key, refused))

    def go_on(self) -> None:
        """Readmit some of the messages that receivers refused which are gone."""
        left = _AT_ONCE
        while self._over and left:
            key, refused = self._over[0]
            while refused and left:
                left -= 1
                self._readmit(refused.popitem()[0], key)
            if not refused:
                self._over.popleft()

    def _readmit(self, entry: Entry, key: OutletKey) -> None:
        available = entry.available
        if available:
            self._available.remove(entry)
        excluded, reserved = entry.eligibility
        excluded -= {key}
        entry.eligibility = Eligibility(excluded, reserved) if excluded or reserved is not None else ANYONE
        if available:
            self._available.add(entry)  # no consumer that waits has this key

    def clear(self) -> None:
        """The queue is deleted."""
        for key in self._by_key:
            key.forget_queue(self._queue)
        self._by_key.clear()
        self._over.clear()
