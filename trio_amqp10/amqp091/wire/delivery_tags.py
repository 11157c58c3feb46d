"""The delivery tags of one channel and direction (0-9-1, basic.ack).

Tags count from 1. Deliveries, and publishes in confirm mode, each have a ``Tags`` at both ends. The time to
settle is proportional to the number of settled tags. In a transaction settled tags are kept until the commit,
so that a rollback can restore them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container


class Tags:
    """The outstanding tags, in order.

    Attributes:
        last: the highest tag so far, settled or not.
        transactional: whether ``rollback`` restores settled tags.
    """

    __slots__ = ("_may_repeat", "_out", "_settled", "last", "transactional")

    def __init__(self) -> None:
        self._out: dict[int, None] = {}
        self._settled: list[int] | None = None  # None before a transaction has settled one
        self._may_repeat = False  # whether the last tag may come again
        self.last: int = 0
        self.transactional: bool = False

    def __len__(self) -> int:
        return len(self._out)

    def __contains__(self, tag: int) -> bool:
        return tag in self._out

    def add(self, tag: int, settled: bool = False) -> bool:
        """Add a tag; return False if it is not above the last one.

        The tag of a delivery that needs no settlement may come once more: RabbitMQ gives a direct reply the tag
        of the delivery after it.
        """
        if tag < self.last or (tag == self.last and not self._may_repeat):
            return False
        self.last = tag
        self._may_repeat = settled
        if not settled:
            self._out[tag] = None
        return True

    def settle(self, tag: int, multiple: bool, tolerant: bool = False) -> tuple[int, ...] | None:
        """Return the tags that are settled, lowest first; None if ``tag`` is unknown.

        Args:
            tag: the tag; 0 with ``multiple`` for all tags that are outstanding here. The other end may have sent
                further ones.
            multiple: whether all lower tags are settled too.
            tolerant: with ``multiple``, accept any tag up to the last, also one that is settled already.
        """
        if multiple and (tag == 0 or tag in self._out or (tolerant and tag <= self.last)):
            found: list[int] = []
            for each in self._out:
                if tag and each > tag:
                    break
                found.append(each)
        elif not multiple and tag in self._out:
            found = [tag]
        else:
            return None
        for each in found:
            del self._out[each]
        if self.transactional:
            if self._settled is None:
                self._settled = []
            self._settled += found
        return tuple(found)

    def front(self, chosen: Container[int]) -> int:
        """Return the highest tag up to which all outstanding tags are ``chosen``, or 0.

        One settlement with ``multiple`` for this tag settles exactly these. The time is proportional to their
        number.
        """
        found = 0
        for tag in self._out:
            if tag not in chosen:
                break
            found = tag
        return found

    def clear(self) -> None:
        """Drop all outstanding tags; keep the tags that a transaction settled."""
        self._out.clear()

    def commit(self) -> None:
        """Make all settlements since the last commit or rollback final."""
        self._settled = None

    def rollback(self) -> None:
        """Restore all tags that were settled since the last commit or rollback."""
        self._out = dict.fromkeys(sorted((*self._out, *(self._settled or ()))))
        self._settled = None
