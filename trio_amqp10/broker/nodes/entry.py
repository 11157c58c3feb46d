"""A message that a queue holds, which is also the lease on it while a link has it.

``queue`` describes the effect of each answer to a lease; the content decides how the answer changes the message.

Knows one message; knows no links.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.core.timer_heap import Timer

    from .content import Content
    from .message_store import QueueStore

_log = logging.getLogger("trio_amqp10.container")

HIGHEST: Final = 9
"""The highest priority that counts by default (3.2.1).

Ten levels, as in JMS.
"""
SHIFT: Final = 48
"""The bits of the sequence number in an order, ``rank << SHIFT | sequence``."""
BEFORE_ALL: Final = -256 << SHIFT
"""Lower than any order."""
MOST_GROWTH: Final = 64 * 1024
"""The octets by which all outcomes together may enlarge a message."""


def unpack_sequence(order: int) -> int:
    """Return the place of a message with this order among those of its priority."""
    return order & (1 << SHIFT) - 1


def unpack_rank(order: int) -> int:
    """Return the rank of an order: ``HIGHEST`` minus its priority, perhaps negative."""
    return order >> SHIFT


def first_order_of_rank(rank: int) -> int:
    """Return the lowest order of a rank."""
    return rank << SHIFT


class Eligibility(NamedTuple):
    """The links that may have a message.

    Attributes:
        excluded: the keys of links that may not have it; see ``refusals``.
        reserved: the key of the only link that may have it; None for no reservation.
    """

    excluded: frozenset[object] = frozenset()
    reserved: object = None

    def admits(self, key: object) -> bool:
        """Whether the link of this key may have the message."""
        return key not in self.excluded and (self.reserved is None or self.reserved == key)


ANYONE: Final = Eligibility()
"""The eligibility of nearly all messages: every link may have them."""


class EntryQueue(Protocol):
    """The methods of a queue that its entries call."""

    def redelivery_time(self, failures: int, annotations: Mapping[Any, Any] | None) -> float | None:
        """Return when a returned message may be delivered again, on the queue's clock.

        Args:
            failures: failed attempts so far; 0 if the last one did not fail.
            annotations: what its receiver adds to it.

        Returns:
            None for at once.
        """
        ...

    def may_grow(self, before: int, size: int) -> bool:
        """Whether a message may grow from ``before`` to ``size`` octets.

        False if a consumer that takes the smaller message would not take the larger one.
        """
        ...

    def recount(self, entry: Entry, before: int) -> None:
        """Count the changed ``length`` of a message, which is not available."""
        ...

    def put_back(self, entry: Entry) -> None:
        """Make a message available after its lease, at once or when it is ``due``."""
        ...

    def refuse(self, entry: Entry, key: object) -> None:
        """Keep the message from the receiver with this key while that exists (3.4.5)."""
        ...

    def drop(self, entry: Entry) -> None:
        """Remove a message, because its receiver accepted it."""
        ...

    def reject(self, entry: Entry, condition: str | None, description: str | None) -> None:
        """Remove a message, because its receiver rejected it."""
        ...


class Entry:
    """A message that a queue holds.

    Attributes:
        order: its place in the queue.
        origin: its sender, as in ``message_origin``; None if that is not known.
        content: the message in its present state.
        arrived: when it arrived, in seconds on the queue's clock; only of a message that may expire.
        ttl: in milliseconds, since ``arrived``; None for no limit.
        ages: whether its ttl shrinks while it is here.
        available: whether it is among the available messages; False while it is leased, delayed, or being stored.
        ended: whether it has left the queue.
        eligibility: which links may have it.
        group: the name of its group; None if the queue has no groups.
        size: its octets on arrival.
        length: its octets as delivered, which limits count.
        turn: how often it was leased; one more after a restart, because it may have been leased before.
        failures: failed attempts to deliver it from this queue.
        outlet_key: the link that has, or last had, a lease on it.
        deadline: when it expires, in seconds on the queue's clock; None for never.
        due: when it may be delivered again, on the same clock; None for at once.
        since: the time of arrival in this queue, in seconds since 1970. A message that an earlier version stored without a ttl
            has the time when it was read.
        timer: its place among the messages that expire, once it has one.
        noted: whether a search that had passed its place noted it (``Search.early``).
        queue_store: keeps it on disk under the key ``row``; None if it is not stored.
    """

    __slots__ = (
        "_queue",
        "ages",
        "arrived",
        "available",
        "content",
        "deadline",
        "due",
        "eligibility",
        "ended",
        "failures",
        "group",
        "length",
        "noted",
        "order",
        "origin",
        "outlet_key",
        "queue_store",
        "row",
        "since",
        "size",
        "timer",
        "ttl",
        "turn",
    )

    def __init__(self, queue: EntryQueue, order: int, content: Content, origin: str | None) -> None:
        self._queue = queue
        self.arrived: float = 0.0
        self.ttl: int | None = None
        self.ages: bool = False
        self.order: int = order
        self.content: Content = content
        self.origin: str | None = origin
        self.available: bool = False
        self.ended: bool = False
        self.eligibility: Eligibility = ANYONE
        self.group: str | None = None
        self.length: int = content.size
        self.size: int = content.size
        self.turn: int = 0
        self.failures: int = 0
        self.outlet_key: object = None
        self.deadline: float | None = None
        self.due: float | None = None
        self.since: float = 0.0
        self.timer: Timer[Entry] | None = None
        self.noted: bool = False
        self.queue_store: QueueStore | None = None
        self.row: int = 0

    def limit(self, now: float, deadline: float, ttl: int | None) -> None:
        """Let the message expire at ``deadline``."""
        self.deadline = deadline
        self.arrived = now
        self.ttl = ttl
        self.ages = ttl is not None

    def aged(self, now: float) -> Content:
        """Return the content with its remaining ttl.

        So a message expires even if it is forwarded in a circle (3.2.1).
        """
        assert self.ttl is not None
        left = max(0, self.ttl - round((now - self.arrived) * 1000))
        return self.content if left == self.ttl else self.content.aged(left)

    # -- as a lease -------------------------------------------------------------------------

    @property
    def record(self) -> int | None:
        """Its key in the table of messages; see ``Lease.record``."""
        return None if self.queue_store is None else self.row

    @property
    def redelivered(self) -> bool:
        """Whether it may have been delivered before; see ``Lease.redelivered``."""
        return self.turn > 1

    def delete_in_commit(self) -> Callable[[], object] | None:
        """See ``Lease.delete_in_commit``."""
        return None if self.queue_store is None else self.queue_store.delete_in_commit(self)

    def accepted(self) -> None:
        self._queue.drop(self)

    def rejected(
        self,
        condition: str | None,
        description: str | None,
        info: Mapping[Any, Any] | None = None,  # noqa: ARG002
    ) -> None:
        _log.debug("%r: a message was rejected, %.100s: %.1000s", self._queue, condition, description)
        self._acquired(failed=True)  # A rejection counts as an attempt, too (3.4.3).
        self._queue.reject(self, condition, description)

    def released(self) -> None:
        self._acquired()
        self._queue.put_back(self)

    def modified(
        self, *, failed: bool, undeliverable_here: bool, annotations: Mapping[Any, Any] | None
    ) -> None:
        due = self._queue.redelivery_time(self.failures + 1 if failed else 0, annotations)
        self._acquired(failed=failed, annotations=annotations, due=due)
        if undeliverable_here:
            self._queue.refuse(self, self.outlet_key)
        self._queue.put_back(self)

    def lost(self) -> None:
        self._acquired(failed=True, due=self._queue.redelivery_time(self.failures + 1, None))
        self._queue.put_back(self)

    def _acquired(
        self, *, failed: bool = False, annotations: Mapping[Any, Any] | None = None, due: float | None = None
    ) -> None:
        """Update the content after a lease.

        Annotations are left out if they would add more than ``MOST_GROWTH`` octets in all, or make the message too large for a
        consumer.
        """
        self.failures += failed
        self.due = due
        content = self.content.acquired(failed=failed, annotations=annotations)
        if annotations and not self._may_be(content.size):
            _log.warning(
                "%r: the annotations of an outcome were left out, because the message would grow to %d octets from %d: "
                "a message may grow by %d octets at most, and not beyond the max-message-size of a consumer",
                self._queue,
                content.size,
                self.size,
                MOST_GROWTH,
            )
            content = self.content.acquired(failed=failed)
        changed = content is not self.content
        if changed:
            self.content = content
            before = self.length
            # Changes that the container itself makes do not count: the peer cannot avoid them.
            if annotations and before != content.size:
                self.length = content.size
                self._queue.recount(self, before)
        if self.queue_store is not None and (changed or failed or due is not None):
            self.queue_store.write(self)

    def _may_be(self, size: int) -> bool:
        """Whether the message may have so many octets."""
        before = self.length
        return size <= before or (size - self.size <= MOST_GROWTH and self._queue.may_grow(before, size))
