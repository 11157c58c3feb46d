"""The consumers and browsers of a queue, and which messages each of them can take.

A consumer that does not take every message, because of its filter or because of the largest message that its peer takes
(2.7.3), has a ``Search``. The search remembers its place, so that it tests no message twice. A message that becomes
available before that place, because it was returned or is urgent, is noted in ``early``. So for such a consumer every
available message is in one of three states: after its ``cursor``, in ``early``, or tested and refused. A consumer without
a filter gets a search only when it meets a message that is too large for its peer; until then it takes the first message.

Messages that a consumer or browser skipped because of their size are remembered in ``too_large``. If only such messages are
left for it, the queue ends its link (see ``queue``). A message that an outlet could not take when it was given
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

_AHEAD: Final = 200
"""The number of messages that a browser looks ahead."""
_STALE: Final = 64
"""How many remembered messages may be gone, beyond twice those that were there.

The list is cleaned when it grows beyond this limit.
"""


class QueueReader:
    """The common part of a consumer and a browser.

    Args:
        outlet: the outlet that messages are given to.
        wants: its filter; None for all messages.

    Attributes:
        outlet: as given.
        key: identifies the outlet.
        limit: the largest message that the peer takes, in octets; None for any size.
        resumes: whether a later turn will search again.
    """

    __slots__ = ("_kept", "_not_taken", "_too_large", "_wants", "key", "limit", "outlet", "resumes")

    def __init__(self, outlet: Outlet, wants: Wants | None) -> None:
        self.outlet: Outlet = outlet
        self.key: Final = outlet.key
        self.limit: int | None = outlet.max_message_size
        self.resumes: bool = False
        self._wants = wants
        self._too_large: list[Entry] = []
        self._not_taken: dict[Entry, None] | None = None  # None if empty.
        self._kept = _STALE

    def passes(self, entry: Entry) -> bool:
        """Whether the filter passes this message and the peer can take it."""
        if self._not_taken is not None and entry in self._not_taken:
            return False
        if self._wants is not None and not self._wants(entry.content, entry.origin):
            return False
        if self.limit is not None and entry.length > self.limit:
            self.pass_over(entry)
            return False
        return True

    def note_not_taken(self, entry: Entry) -> None:
        """Remember a message that the peer refused as impossible when it was given."""
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
        """Whether this is the last message that was skipped because of its size."""
        return bool(self._too_large) and self._too_large[-1] is entry

    @property
    def too_large(self) -> Entry | None:
        """An available message for this reader that is too large for its peer, or None."""
        passed = self._too_large
        while passed:
            entry = passed[-1]
            if entry.available and self._may_have(entry):
                return entry
            passed.pop()
        return None

    def _may_have(self, entry: Entry) -> bool:  # noqa: ARG002
        """Whether an available message may go to this reader; always True for a browser."""
        return True


class QueueConsumer(QueueReader):
    """An outlet that removes messages from the queue.

    Attributes:
        priority: consumers of a higher priority are offered messages first.
        waits: whether it found no message and waits to be offered one.
        search: the place of its search; None if it takes the first message.
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
        """Whether a waiting consumer, which has tested all other messages, takes this one."""
        if self.search is not None:
            self.search.cursor = max(self.search.cursor, entry.order)
        return self.passes(entry)


class Search:
    """The progress of a consumer that does not take every message.

    Attributes:
        cursor: the order of the last message that was tested.
        early: messages before the cursor that were not tested.
        pauses: whether the last search stopped before the end, because its turn was over.
    """

    __slots__ = ("_consumer", "cursor", "early", "pauses")

    def __init__(self, consumer: QueueConsumer) -> None:
        self._consumer = consumer
        self.cursor: int = BEFORE_ALL
        self.early: Final = SortedBlocks[Entry]()
        self.pauses: bool = False

    def find(self, all_blocks: list[SortedBlocks[Entry]], is_over: Callable[[], bool]) -> Entry | None:
        """Return the first message of these lists that the consumer takes.

        Return None if there is none, or if the turn ``is_over``, which sets ``pauses``. At least one message is tested.
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
    """An outlet that gets copies of all available messages in order, then of new ones.

    Attributes:
        pauses: whether the last search stopped before the end, because its turn was over.
    """

    __slots__ = ("_ahead", "_seen", "pauses")

    def __init__(self, outlet: Outlet, wants: Wants | None) -> None:
        super().__init__(outlet, wants)
        self.pauses: bool = False
        self._ahead: deque[Entry] = deque()
        self._seen: dict[int, int] = {}  # For each rank, the order of the last message in ``_ahead``.

    def find(self, all_blocks: list[SortedBlocks[Entry]], is_over: Callable[[], bool]) -> Entry | None:
        """Return the next message to show, or None; see ``Search.find``."""
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
