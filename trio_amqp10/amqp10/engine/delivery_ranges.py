"""Apply dispositions to ranges of deliveries, without a step for each (2.7.6).

A disposition of thirty octets may name 2**31 deliveries, and may be repeated. So a range is never walked
twice for the same purpose:

=====================================  ====================================================
state that the peer gives the range     effect
=====================================  ====================================================
no outcome, e.g. ``received``           the range is noted in ``words``; a delivery looks
                                        there when its state is read
an outcome, in a transaction            each delivery gets it, unless the state before was
                                        the same: until the discharge another may follow
an outcome                              each delivery gets it, once; the range is noted as
                                        done
settled                                 each delivery is forgotten; the range is noted as
                                        done
=====================================  ====================================================

Thus each delivery-id is looked at once for each rank, or is changed; a range that changes nothing costs two
bisections. Ranges of a few ids are looked up id by id, which is cheaper and bounded as well.

Ids wrap at 2**32, but spans need an order, so ids are converted to *positions*, which do not wrap. Knows no
link and no delivery state.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from .serial_numbers import MASK, distance

if TYPE_CHECKING:
    from collections.abc import Iterable

FEW: Final = 64
"""The largest number of ids that are looked up one by one."""

_CIRCLE: Final = MASK + 1

D = TypeVar("D")


class Rank(IntEnum):
    """The finality of a state: no state undoes one of a higher rank."""

    NONE = 0
    """No outcome."""
    IN_TRANSACTION = 1
    """An outcome that takes effect when its transaction is discharged (4.4)."""
    OUTCOME = 2
    """An outcome, which is final (3.4)."""
    SETTLED = 3
    """Settled by the peer (2.6.12)."""
    UNKNOWN = 4
    """A state of an unknown type: it ends the links of its deliveries."""


class Span(NamedTuple):
    """Positions from ``first`` to ``last`` that share ``value``.

    ``last`` is the first field, so that spans can be bisected by it.
    """

    last: int
    first: int
    value: Any


class Spans:
    """Disjoint spans in order. Neighbours with the same value are joined."""

    __slots__ = ("_spans",)

    def __init__(self) -> None:
        self._spans: list[Span] = []

    def __len__(self) -> int:
        return len(self._spans)

    def at(self, position: int) -> Any:
        """Return the value at a position, or None."""
        index = bisect_left(self._spans, (position,))
        if index < len(self._spans) and self._spans[index].first <= position:
            return self._spans[index].value
        return None

    def others(self, first: int, last: int, value: Any) -> list[tuple[int, int]]:
        """Return the parts of a range that do not have ``value`` yet, as (first, last)."""
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
        """Set the value of the positions from ``first`` to ``last``; None removes it."""
        spans = self._spans
        begin = end = bisect_left(
            spans, (first - 1,)
        )  # including a span that ends just before: it may be joined
        made: list[Span] = []
        after: Span | None = None
        while end < len(spans) and spans[end].first <= last + 1:
            span = spans[end]
            end += 1
            if span.value == value:
                # The same value: the new span absorbs this one.
                first, last = min(first, span.first), max(last, span.last)
                continue
            if span.first < first:
                # The part of another span before the range stays.
                made.append(Span(min(span.last, first - 1), span.first, span.value))
            if span.last > last:
                # The part of another span after the range stays.
                after = Span(span.last, max(span.first, last + 1), span.value)
        if value is not None:
            made.append(Span(last, first, value))
        if after is not None:
            made.append(after)
        spans[begin:end] = made

    def keep(self, positions: list[int]) -> None:
        """Drop every span that contains none of ``positions``, which are in order."""
        self._spans = [
            span
            for span in self._spans
            if (index := bisect_left(positions, span.first)) < len(positions)
            and positions[index] <= span.last
        ]


class DeliveryRanges(Generic[D]):
    """The states that dispositions gave to the deliveries of one direction.

    Args:
        held: the unsettled deliveries by id, in the order of their ids.

    Attributes:
        words: the last state that is no outcome, for any position, held or not; None before the first one.
    """

    __slots__ = ("_done", "_held", "_top", "words")

    def __init__(self, held: dict[int, D]) -> None:
        self._held = held
        self._top = 0  # the position after the newest delivery
        self._done: dict[Rank, Spans] | None = None  # None before the first long range
        self.words: Spans | None = None

    def reach(self, next_id: int) -> None:
        """Note that all deliveries before ``next_id`` exist.

        This must be called at least once in 2**31 deliveries, because ids wrap.
        """
        self._top += (next_id - self._top) & MASK

    def word(self, delivery_id: int, delivery: D) -> Any:
        """Return the last state of this delivery that is no outcome, or None."""
        if self.words is None or self._held.get(delivery_id) is not delivery:
            return None  # it is on another session, or on none
        return self.words.at(self.position(delivery_id))

    def note(self, first: int, ahead: int, word: Any) -> None:
        """Note a state that is no outcome, for id ``first`` and ``ahead`` more."""
        if not self._held:
            return  # no delivery is unsettled, so the state concerns none
        begin, end = self._bounds(first, ahead)
        if self.words is None:
            self.words = Spans()
        self.words.put(begin, end, word)
        self._prune(self.words)

    def forget_word(self, delivery_id: int) -> None:
        """Forget all states of this delivery, so that the next one takes effect."""
        position = self.position(delivery_id)
        for spans in (self.words, *(self._done or {}).values()):
            if spans is not None:
                spans.put(position, position, None)

    def due(self, first: int, ahead: int, rank: Rank, word: Any = True) -> list[D]:
        """Return the deliveries that a state of ``rank`` changes, each at most once.

        ``word`` is the state, if another state of the same rank may replace it.
        """
        held = self._held
        if rank is Rank.IN_TRANSACTION:
            pass  # another outcome may follow, so even a short range must be noted
        elif ahead == 0:
            # One delivery, which is the most frequent disposition: nothing needs to be noted.
            return [held[first]] if first in held else []
        elif ahead < FEW:
            # A short range: look up each id. The cost is bounded by ``FEW``, however often it is repeated.
            return [held[i & MASK] for i in range(first, first + ahead + 1) if i & MASK in held]
        if not held:
            return []
        # A long range: only the parts that no state of this rank has named before are walked.
        begin, end = self._bounds(first, ahead)
        if self._done is None:
            self._done = {}
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
        """Return the ids held between two positions.

        The cost is the number of positions or of held deliveries, whichever is smaller.
        """
        held = self._held
        if last - first < len(held):
            return [i & MASK for i in range(first, last + 1) if i & MASK in held]
        return [i for i in held if first <= self.position(i) <= last]

    def position(self, delivery_id: int) -> int:
        """Return the position of an id, which must not be beyond the newest delivery."""
        newest = self._top - 1
        return newest - ((newest - delivery_id) & MASK)

    def _bounds(self, first: int, ahead: int) -> tuple[int, int]:
        """Return the positions that a range of ids names, up to the newest delivery."""
        begin = self._top + distance(first, self._top & MASK)
        if begin >= self._top:
            begin -= _CIRCLE  # the range begins beyond the newest id, so it can only reach ids by wrapping
        return begin, min(begin + ahead, self._top - 1)

    def _prune(self, spans: Spans) -> None:
        """Drop the spans without deliveries, if the spans outnumber the deliveries."""
        if len(spans) > FEW + 2 * len(self._held):
            spans.keep([self.position(i) for i in self._held])
