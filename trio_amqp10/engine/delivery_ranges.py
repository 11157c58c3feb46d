"""Dispositions of ranges of deliveries, without a step for each delivery (2.7.6).

A disposition of thirty octets may name 2**31 deliveries, and come again and again. So a range is
never walked twice for the same purpose:

=====================================  ====================================================
the peer's word on the range           what is done
=====================================  ====================================================
no outcome, e.g. ``received``          the range is noted in ``words``; a delivery looks there
                                       when somebody reads its state
an outcome, in a transaction           each delivery gets it, unless the word before was the
                                       same: until the discharge another may follow
an outcome                             each delivery gets it, once; the range is noted as done
settled                                each delivery is forgotten; the range is noted as done
=====================================  ====================================================

Each delivery-id is thus looked at once for each rank, or changed, and a range that changes nothing costs two
bisections. Ranges of a few ids are looked up id by id, which is cheaper and bounded as well.

Ids wrap at 2**32, and order is needed here: so they are turned into positions, which count on.
Knows no link and no delivery state.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from .serial_numbers import MASK, distance

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FEW", "DeliveryRanges", "Rank", "Spans"]

FEW: Final = 64
"""So many ids are looked up one by one."""

_CIRCLE: Final = MASK + 1

D = TypeVar("D")


class Rank(IntEnum):
    """How much a word says: a delivery changes only by a word of a higher rank than the one before."""

    NONE = 0
    """No outcome."""
    IN_TRANSACTION = 1
    """An outcome that counts when its transaction is discharged (4.4)."""
    OUTCOME = 2
    """An outcome, which is terminal (3.4)."""
    SETTLED = 3
    UNKNOWN = 4
    """A state that is not known here, which ends the links of its deliveries."""


class Span(NamedTuple):
    """Positions from ``first`` to ``last``, of which ``value`` holds; ``last`` leads, to bisect by it."""

    last: int
    first: int
    value: Any


class Spans:
    """Disjoint spans in order; neighbours of the same value are one."""

    __slots__ = ("_spans",)

    def __init__(self) -> None:
        self._spans: list[Span] = []

    def __len__(self) -> int:
        return len(self._spans)

    def at(self, position: int) -> Any:
        """What holds of a position, or None."""
        index = bisect_left(self._spans, (position,))
        if index < len(self._spans) and self._spans[index].first <= position:
            return self._spans[index].value
        return None

    def others(self, first: int, last: int, value: Any) -> list[tuple[int, int]]:
        """The positions from ``first`` to ``last`` of which something else holds than ``value``, or nothing."""
        spans, found = self._spans, list[tuple[int, int]]()
        index = bisect_left(spans, (first,))
        while first <= last and index < len(spans):
            span = spans[index]
            index += 1
            if span.value == value:
                if span.first > first:
                    found.append((first, min(span.first - 1, last)))
                first = span.last + 1
        if first <= last:
            found.append((first, last))
        return found

    def put(self, first: int, last: int, value: Any) -> None:
        """From now on ``value`` holds from ``first`` to ``last``; None: nothing does."""
        spans = self._spans
        begin = end = bisect_left(spans, (first - 1,))  # a span that ends just before may become one with it
        made: list[Span] = []
        after: Span | None = None
        while end < len(spans) and spans[end].first <= last + 1:
            span = spans[end]
            end += 1
            if span.value == value:
                first, last = min(first, span.first), max(last, span.last)
                continue
            if span.first < first:
                made.append(Span(min(span.last, first - 1), span.first, span.value))
            if span.last > last:
                after = Span(span.last, max(span.first, last + 1), span.value)
        if value is not None:
            made.append(Span(last, first, value))
        if after is not None:
            made.append(after)
        spans[begin:end] = made

    def keep(self, positions: list[int]) -> None:
        """Drop every span in which none of these positions is; they are in order."""
        self._spans = [
            span
            for span in self._spans
            if (index := bisect_left(positions, span.first)) < len(positions)
            and positions[index] <= span.last
        ]


class DeliveryRanges(Generic[D]):
    """What was said of the deliveries of one direction of a session.

    Args:
        held: the unsettled ones by id, in the order of their ids.

    Attributes:
        words: what was said last where it was no outcome, of any position, held or not; None as long as nothing was.
    """

    __slots__ = ("_done", "_held", "_top", "words")

    def __init__(self, held: dict[int, D]) -> None:
        self._held = held
        self._top = 0  # the position behind the newest delivery
        self._done: dict[Rank, Spans] = {}
        self.words: Spans | None = None

    def reach(self, next_id: int) -> None:
        """Deliveries have come as far as before ``next_id``; to be said at least once in half a circle of ids."""
        self._top += (next_id - self._top) & MASK

    def word(self, delivery_id: int, delivery: D) -> Any:
        """What was said last of this delivery where it was no outcome, or None."""
        if self.words is None or self._held.get(delivery_id) is not delivery:
            return None  # it is on another session, or on none
        return self.words.at(self.position(delivery_id))

    def note(self, first: int, ahead: int, word: Any) -> None:
        """A word that is no outcome, on the id ``first`` and as many more as ``ahead`` says."""
        if not self._held:
            return  # positions mean nothing before the first delivery
        begin, end = self._bounds(first, ahead)
        if self.words is None:
            self.words = Spans()
        self.words.put(begin, end, word)
        self._prune(self.words)

    def forget_word(self, delivery_id: int) -> None:
        """Nothing was said of this delivery after all: what comes next counts anew."""
        position = self.position(delivery_id)
        for spans in (self.words, *self._done.values()):
            if spans is not None:
                spans.put(position, position, None)

    def due(self, first: int, ahead: int, rank: Rank, word: Any = True) -> list[D]:
        """The deliveries that a word of this rank may change: none that was asked for before.

        ``word`` is what is said, where it may be taken back by another of the same rank.
        """
        held = self._held
        if rank is Rank.IN_TRANSACTION:
            pass  # the order of all words counts
        elif ahead == 0:
            return [held[first]] if first in held else []
        elif ahead < FEW:
            return [held[i & MASK] for i in range(first, first + ahead + 1) if i & MASK in held]
        if not held:
            return []
        begin, end = self._bounds(first, ahead)
        done = self._done.get(rank)
        if done is None:
            done = self._done[rank] = Spans()
        others = done.others(begin, end, word)
        if not others:
            return []
        done.put(begin, end, word)
        self._prune(done)
        return [held[i] for each in others for i in self._ids(*each)]

    def _ids(self, first: int, last: int) -> Iterable[int]:
        """The ids held from one position to another, at a cost of the smaller of the two."""
        held = self._held
        if last - first < len(held):
            return [i & MASK for i in range(first, last + 1) if i & MASK in held]
        return [i for i in held if first <= self.position(i) <= last]

    def position(self, delivery_id: int) -> int:
        """Where an id comes in the order of all, once these have been reached."""
        newest = self._top - 1
        return newest - ((newest - delivery_id) & MASK)

    def _bounds(self, first: int, ahead: int) -> tuple[int, int]:
        """The positions that a range of ids names, as far as there can be deliveries."""
        begin = self._top + distance(first, self._top & MASK)
        if begin >= self._top:
            begin -= _CIRCLE  # what is named is yet to come; or the range goes round to what was
        return begin, min(begin + ahead, self._top - 1)

    def _prune(self, spans: Spans) -> None:
        """Of deliveries that are gone nothing need be known. Not each time: spans are few, or held ones many."""
        if len(spans) > FEW + 2 * len(self._held):
            spans.keep([self.position(i) for i in self._held])
