"""A message that a queue holds, and the lease on it while a link has it.

``queue`` describes what each answer to a lease does; the content says how the answer changes the message.

Knows one message; knows no links.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.timer_heap import Timer

    from .content import Content

__all__ = [
    "ANYONE",
    "BEFORE_ALL",
    "HIGHEST",
    "MOST_GROWTH",
    "SHIFT",
    "Eligibility",
    "Entry",
    "EntryQueue",
    "first_order_of_rank",
    "unpack_rank",
    "unpack_sequence",
]

_log = logging.getLogger("trio_amqp10.container")

HIGHEST: Final = 9
"""The highest priority that counts where a queue names none: ten levels, as JMS has them, which 3.2.1 permits."""
SHIFT: Final = 48
"""Bits of an order (``rank << SHIFT | sequence``) for the place among those of its priority, above which is its rank."""
BEFORE_ALL: Final = -256 << SHIFT
"""Lower than any order."""
MOST_GROWTH: Final = 64 * 1024
"""Octets by which the outcomes of its receivers may make a message larger than it came, all of them together."""


def unpack_sequence(order: int) -> int:
    """Where a message with this order stands among those of its priority."""
    return order & (1 << SHIFT) - 1


def unpack_rank(order: int) -> int:
    """The rank of an order: ``HIGHEST`` less its priority, so it may be negative."""
    return order >> SHIFT


def first_order_of_rank(rank: int) -> int:
    """The lowest order of a rank."""
    return rank << SHIFT


class Eligibility(NamedTuple):
    """Which links may have a message.

    Attributes:
        excluded: the keys of links that may not; see ``refusals``.
        reserved: the key of the only link that may; None for no such reservation.
    """

    excluded: frozenset[object] = frozenset()
    reserved: object = None

    def admits(self, key: object) -> bool:
        """Whether the link of this key may have it."""
        return key not in self.excluded and (self.reserved is None or self.reserved == key)


ANYONE: Final = Eligibility()
"""Of nearly all messages: every link may have them."""


class EntryQueue(Protocol):
    """The queue, as its entries see it."""

    def redelivery_time(self, failures: int, annotations: Mapping[Any, Any] | None) -> float | None:
        """When a message that comes back may be given out again, on the queue's clock.

        Args:
            failures: failed attempts so far; 0 if the last one did not fail.
            annotations: what its receiver adds to it.

        Returns:
            None for at once.
        """
        ...

    def may_grow(self, before: int, size: int) -> bool:
        """Whether a message of ``before`` octets that all consumers take is taken by them with ``size`` octets."""
        ...

    def recount(self, entry: Entry, before: int) -> None:
        """It has another ``length`` than ``before``; no consumer can be given it now."""
        ...

    def put_back(self, entry: Entry) -> None:
        """Its lease has ended, and it is available again, at once or when it is ``due``."""
        ...

    def refuse(self, entry: Entry, key: object) -> None:
        """Keep the message from the receiver of this key, while that receiver is there (3.4.5)."""
        ...

    def drop(self, entry: Entry) -> None:
        """Its lease has ended, and it with it: it was processed."""
        ...

    def reject(self, entry: Entry, condition: str | None, description: str | None) -> None:
        """Its lease has ended, and it with it: it is no good."""
        ...


class EntryStore(Protocol):
    """The stored messages of a queue, as its entries see them."""

    def write(self, entry: Entry) -> None:
        """It has changed."""
        ...

    def erase(self, entry: Entry) -> None:
        """It is gone for good."""
        ...

    def delete_in_commit(self, entry: Entry) -> Callable[[], object]:
        """It goes with the commit that is being prepared; what is returned undoes that."""
        ...


class Entry:
    """A message that a queue holds.

    Attributes:
        order: its place in the queue.
        origin: who sent it, as ``message_origin`` has it; None if that is not known.
        content: the message, as the queue has it now.
        ages: whether its ttl shrinks while it is here.
        available: whether no link has a lease on it.
        ended: whether it is gone for good.
        eligibility: which links may have it.
        group: the messages that it belongs to; None if the queue has no groups.
        size: its octets, as it came.
        length: its octets, as it goes out; they are what counts.
        turn: how often it was leased; one more after a restart, since it may have been leased before.
        failures: failed attempts to deliver it, from here.
        outlet_key: the link that has, or last had, a lease on it.
        deadline: when it expires, in seconds on the queue's clock; None for never.
        due: when it may be given out again, on the same clock; None for at once.
        timer: its place among the messages that expire, once it has one.
        noted: whether a consumer that had passed its place was told to look at it again.
        queue_store: where it is kept on disk, under the key ``row``; None if it is not.
    """

    __slots__ = (
        "_arrived",
        "_queue",
        "_ttl",
        "ages",
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
        "size",
        "timer",
        "turn",
    )

    def __init__(self, queue: EntryQueue, order: int, content: Content, origin: str | None) -> None:
        self._queue = queue
        self._arrived = 0.0
        self._ttl: int | None = None
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
        self.timer: Timer[Entry] | None = None
        self.noted: bool = False
        self.queue_store: EntryStore | None = None
        self.row: int = 0

    def limit(self, now: float, deadline: float, ttl: int | None) -> None:
        """Let it expire."""
        self.deadline = deadline
        self._arrived = now
        self._ttl = ttl
        self.ages = ttl is not None

    @property
    def life(self) -> tuple[float, int | None]:
        """When it came, in seconds on the queue's clock, and its ttl in milliseconds."""
        return self._arrived, self._ttl

    def aged(self, now: float) -> Content:
        """The content with what is left of its ttl, so that it dies even on a way in circles (3.2.1)."""
        assert self._ttl is not None
        left = max(0, self._ttl - round((now - self._arrived) * 1000))
        return self.content if left == self._ttl else self.content.aged(left)

    # -- as a lease -------------------------------------------------------------------------

    @property
    def record(self) -> int | None:
        """As ``Lease.record``: its key in the table of messages."""
        return None if self.queue_store is None else self.row

    @property
    def redelivered(self) -> bool:
        """As ``Lease.redelivered``."""
        return self.turn > 1

    def delete_in_commit(self) -> Callable[[], object] | None:
        """As ``Lease.delete_in_commit``."""
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
        self._acquired(failed=True)  # it counts as an attempt too (3.4.3)
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
        """Have the content note what happened.

        Annotations that make the message too large are left out: of more than ``MOST_GROWTH`` in all, or too large for a consumer.
        """
        self.failures += failed
        self.due = due
        content = self.content.acquired(failed=failed, annotations=annotations)
        if annotations and not self._may_be(content.size):
            _log.warning(
                "%r: annotations of an outcome are left out, because the message would have %d octets, where it came with %d: "
                "a message grows by %d octets at most, and not beyond the max-message-size of a consumer",
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
            if (
                annotations and before != content.size
            ):  # what the container itself notes is not the peer's to answer for
                self.length = content.size
                self._queue.recount(self, before)
        if self.queue_store is not None and (changed or failed or due is not None):
            self.queue_store.write(self)

    def _may_be(self, size: int) -> bool:
        """Whether the message may have so many octets."""
        before = self.length
        return size <= before or (size - self.size <= MOST_GROWTH and self._queue.may_grow(before, size))
