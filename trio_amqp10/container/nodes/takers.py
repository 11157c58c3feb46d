"""Those who take from a queue: consumers, consumers that select, and browsers.

A consumer with a filter remembers how far it has looked, so that it tests no message twice that lies
still; what comes to lie before that place, because it was given back or is urgent, is noted in its
``early``. So for a consumer that selects, every available message is in one of three states:
behind its ``cursor``, in ``early``, or tested and not wanted.

Knows entries and shelves; a filter is a function.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from .entry import RANKS, Entry, order_of, rank_of
from .shelf import Shelf, all_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.message import Message

    from .node import Outlet

    Wants = Callable[[Message, str | None], bool]

__all__ = ["Browser", "Consumer", "Selector"]

_AT_ONCE: Final = 500
"""Messages that one look tests: the task that reads from all peers must not stand still for long."""
_AHEAD: Final = 200
"""Messages that a browser remembers to show."""


class Consumer:
    """An outlet that takes messages away.

    Attributes:
        outlet: where they go.
        key: names it.
        waits: whether it found nothing, and is to be offered what comes.
    """

    __slots__ = ("key", "outlet", "waits")

    def __init__(self, outlet: Outlet) -> None:
        self.outlet = outlet
        self.key = outlet.key
        self.waits = False


class Selector(Consumer):
    """A consumer that takes only what passes its filter.

    Attributes:
        cursor: the order of the last message that it has looked at.
        early: messages before that, which it has not looked at.
        pauses: whether the last look ended before it had seen all.
        resumes: whether a task is to go on with that.
    """

    __slots__ = ("_wants", "cursor", "early", "pauses", "resumes")

    def __init__(self, outlet: Outlet, wants: Wants) -> None:
        super().__init__(outlet)
        self._wants = wants
        self.cursor = -1
        self.early = Shelf[Entry]()
        self.pauses = False
        self.resumes = False

    def wants(self, entry: Entry) -> bool:
        """Whether a message that it is offered while it waits, having looked at all others, passes."""
        self.cursor = max(self.cursor, entry.order)
        return self._wants(entry.message, entry.origin)

    def find(self, shelves: list[Shelf[Entry]]) -> Entry | None:
        """The first message on these shelves that passes; where it is none, ``pauses`` says if that is final."""
        wants = self._wants
        left = _AT_ONCE
        self.pauses = False
        early = self.early
        while early:
            if not left:
                self.pauses = True
                return None
            left -= 1
            entry = early.pop()
            if wants(entry.message, entry.origin):
                return entry
        for entry in all_after(shelves, self.cursor):
            if not left:
                self.pauses = True
                return None
            left -= 1
            self.cursor = entry.order
            if wants(entry.message, entry.origin):
                return entry
        return None


class Browser:
    """An outlet that only looks: it sees what is available, in order, and then what comes."""

    __slots__ = ("_ahead", "_seen", "_wants", "outlet", "pauses", "resumes")

    def __init__(self, outlet: Outlet, wants: Wants | None) -> None:
        self.outlet = outlet
        self.pauses = False
        self.resumes = False
        self._wants = wants
        self._ahead: deque[Entry] = deque()
        self._seen = [rank_order - 1 for rank_order in sorted(order_of(rank, 0) for rank in range(RANKS))]

    def find(self, shelves: list[Shelf[Entry]]) -> Entry | None:
        """The next message to show; where it is none, ``pauses`` says if that is final."""
        wants = self._wants
        ahead = self._ahead
        left = _AT_ONCE
        self.pauses = False
        while ahead or self._look_ahead(shelves):
            if not left:
                self.pauses = True
                return None
            left -= 1
            entry = ahead.popleft()
            if entry.available and (wants is None or wants(entry.message, entry.origin)):
                return entry
        return None

    def _look_ahead(self, shelves: list[Shelf[Entry]]) -> bool:
        ahead = self._ahead
        seen = self._seen
        for rank in range(RANKS):
            for entry in all_after(shelves, seen[rank]):
                if rank_of(entry.order) != rank:
                    break
                seen[rank] = entry.order
                ahead.append(entry)
                if len(ahead) == _AHEAD:
                    return True
        return bool(ahead)
