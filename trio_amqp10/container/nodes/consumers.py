"""The consumers and browsers of a queue, and what each of them can take.

A consumer that does not take every message, because of its filter or because of the largest message that its
peer takes (2.7.3), has a ``Search``. It remembers how far it has looked, so that it tests no message twice that
lies still; what comes to lie before that place, because it was given back or is urgent, is noted in its
``early``. So for such a consumer, every available message is in one of three states: behind its ``cursor``, in
``early``, or tested and not taken. A consumer without a filter has a search only after it met a message that is
too large for its peer: until then it takes the first message there is.

Messages that are passed over for their size are remembered in ``too_large``. When nothing else is left for a
consumer or browser, the queue ends its link; see ``queue``. A message that an outlet could not take when it was given
(``NotTakenError``) is remembered too, and not offered to that consumer again.

Knows entries and sorted lists; a filter is a function.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from .entry import BEFORE_ALL, Entry, first_order_of_rank, unpack_rank
from .sorted_blocks import SortedBlocks, all_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from .form_registry import Wants
    from .node import Outlet

__all__ = ["QueueBrowser", "QueueConsumer", "QueueReader", "Search"]

_AHEAD: Final = 200
"""Messages that a browser remembers to show."""
_STALE: Final = 64
"""Messages in ``too_large`` that may be gone already, above as many as there were when it was last cleaned."""


class QueueReader:
    """What consumers and browsers have in common.

    Args:
        outlet: where messages go.
        wants: its filter; None for all.

    Attributes:
        outlet: as given.
        key: names the outlet.
        limit: octets of the largest message that the peer takes; None for any.
        resumes: whether a task is about to look again.
    """

    __slots__ = ("_kept", "_not_taken", "_too_large", "_wants", "key", "limit", "outlet", "resumes")

    def __init__(self, outlet: Outlet, wants: Wants | None) -> None:
        self.outlet: Outlet = outlet
        self.key: Final = outlet.key
        self.limit: int | None = outlet.max_message_size
        self.resumes: bool = False
        self._wants = wants
        self._too_large: list[Entry] = []
        self._not_taken: dict[Entry, None] | None = None  # as long as there are any
        self._kept = _STALE

    def passes(self, entry: Entry) -> bool:
        """Whether it wants this message, and its peer takes it."""
        if self._not_taken is not None and entry in self._not_taken:
            return False
        if self._wants is not None and not self._wants(entry.content, entry.origin):
            return False
        if self.limit is not None and entry.length > self.limit:
            self.pass_over(entry)
            return False
        return True

    def note_not_taken(self, entry: Entry) -> None:
        """Remember a message that the peer cannot take, as was found when it was given."""
        if self._not_taken is None:
            self._not_taken = {}
        elif len(self._not_taken) >= self._kept:
            self._not_taken = {each: None for each in self._not_taken if not each.ended}
            self._kept = 2 * len(self._not_taken) + _STALE
        self._not_taken[entry] = None

    def pass_over(self, entry: Entry) -> None:
        """Remember a message that is too large for the peer."""
        passed = self._too_large
        if len(passed) >= self._kept:
            passed[:] = [each for each in passed if each.available]
            self._kept = 2 * len(passed) + _STALE
        passed.append(entry)

    def has_passed(self, entry: Entry) -> bool:
        """Whether this is the last message that it passed over for its size."""
        return bool(self._too_large) and self._too_large[-1] is entry

    @property
    def too_large(self) -> Entry | None:
        """A message that is available to it, and too large for its peer; None if there is none."""
        passed = self._too_large
        while passed:
            entry = passed[-1]
            if entry.available and self._may_have(entry):
                return entry
            passed.pop()
        return None

    def _may_have(self, entry: Entry) -> bool:  # noqa: ARG002
        """Whether an available message is for it; a browser sees them all."""
        return True


class QueueConsumer(QueueReader):
    """An outlet that takes messages away.

    Attributes:
        priority: those of a higher one are offered messages first.
        waits: whether it found nothing, and is to be offered what comes.
        search: how far it has looked; None if it takes the first message there is.
    """

    __slots__ = ("priority", "search", "waits")

    def __init__(self, outlet: Outlet, wants: Wants | None) -> None:
        super().__init__(outlet, wants)
        self.priority: Final = outlet.subscription_terms.priority
        self.waits: bool = False
        self.search: Search | None = None if wants is None else Search(self)

    def _may_have(self, entry: Entry) -> bool:
        return entry.eligibility.admits(self.key)

    def takes(self, entry: Entry) -> bool:
        """Whether it takes a message that it is offered while it waits, having looked at all others."""
        if self.search is not None:
            self.search.cursor = max(self.search.cursor, entry.order)
        return self.passes(entry)


class Search:
    """How far a consumer has looked that does not take every message.

    Attributes:
        cursor: the order of the last message that it has looked at.
        early: messages before that, which it has not looked at.
        pauses: whether the last look ended before it had seen all.
    """

    __slots__ = ("_consumer", "cursor", "early", "pauses")

    def __init__(self, consumer: QueueConsumer) -> None:
        self._consumer = consumer
        self.cursor: int = BEFORE_ALL
        self.early: Final = SortedBlocks[Entry]()
        self.pauses: bool = False

    def find(self, all_blocks: list[SortedBlocks[Entry]], is_over: Callable[[], bool]) -> Entry | None:
        """The first message of these lists that is taken; if there is none, ``pauses`` says if that is final.

        It looks at one at least, and at no more once the turn ``is_over``.
        """
        takes = self._consumer.passes
        self.pauses = False
        early = self.early
        while early:
            entry = early.pop()
            if takes(entry):
                return entry
            if is_over():
                self.pauses = True
                return None
        for entry in all_after(all_blocks, self.cursor):
            self.cursor = entry.order
            if takes(entry):
                return entry
            if is_over():
                self.pauses = True
                return None
        return None


class QueueBrowser(QueueReader):
    """An outlet that only looks: it sees what is available, in order, and then what comes.

    Attributes:
        pauses: whether the last look ended before it had seen all.
    """

    __slots__ = ("_ahead", "_seen", "pauses")

    def __init__(self, outlet: Outlet, wants: Wants | None) -> None:
        super().__init__(outlet, wants)
        self.pauses: bool = False
        self._ahead: deque[Entry] = deque()
        self._seen: dict[int, int] = {}  # by rank, the order up to which this has looked

    def find(self, all_blocks: list[SortedBlocks[Entry]], is_over: Callable[[], bool]) -> Entry | None:
        """The next message to show; if there is none, ``pauses`` says if that is final. As ``Search.find``."""
        ahead = self._ahead
        self.pauses = False
        while ahead or self._look_ahead(all_blocks):
            entry = ahead.popleft()
            if entry.available and self.passes(entry):
                return entry
            if is_over():
                self.pauses = True
                return None
        return None

    def _look_ahead(self, all_blocks: list[SortedBlocks[Entry]]) -> bool:
        ahead, seen = self._ahead, self._seen
        first = next(all_after(all_blocks, BEFORE_ALL), None)
        while first is not None:
            rank = unpack_rank(first.order)
            first = None
            for entry in all_after(all_blocks, seen.get(rank, first_order_of_rank(rank) - 1)):
                if unpack_rank(entry.order) != rank:
                    first = entry
                    break
                seen[rank] = entry.order
                ahead.append(entry)
                if len(ahead) == _AHEAD:
                    return True
        return bool(ahead)
