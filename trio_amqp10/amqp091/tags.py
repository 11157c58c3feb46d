"""Delivery tags of one channel and direction: which are out, which one settles what (0-9-1, basic.ack).

Tags count from 1. Publishes in confirm mode and deliveries each have a ``Tags`` at both ends. Settling costs as many steps
as it settles tags. In a transaction what was settled is remembered until the commit, so that a rollback can undo it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

__all__ = ["Tags"]


class Tags:
    """The tags that are out, in their order.

    Attributes:
        last: the highest tag so far, settled or not.
        transactional: whether settling is undone by ``rollback``.
    """

    __slots__ = ("_free", "_out", "_settled", "last", "transactional")

    def __init__(self) -> None:
        self._out: dict[int, None] = {}
        self._settled: list[int] = []
        self._free = False  # whether the last tag may come again
        self.last: int = 0
        self.transactional: bool = False

    def __len__(self) -> int:
        return len(self._out)

    def __contains__(self, tag: int) -> bool:
        return tag in self._out

    def number(self, tag: int, settled: bool = False) -> bool:
        """A tag is given out; False if it is not above the last one.

        The tag of a delivery that needs no settling may come once more: RabbitMQ gives a direct reply the tag of the
        delivery after it.
        """
        if tag < self.last or (tag == self.last and not self._free):
            return False
        self.last = tag
        self._free = settled
        if not settled:
            self._out[tag] = None
        return True

    def settle(self, tag: int, multiple: bool, tolerant: bool = False) -> tuple[int, ...] | None:
        """The tags that this one settles, lowest first; None if it is unknown.

        Args:
            tag: the one named; 0 with ``multiple`` for all that are out. The other end may know more that are out.
            multiple: whether all below it are settled too.
            tolerant: with ``multiple``, take any tag that was given out, also one that is settled already.
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
            self._settled += found
        return tuple(found)

    def front(self, chosen: Container[int]) -> int:
        """The highest tag up to which all tags that are out are ``chosen``; 0 if the lowest is not.

        One settling with ``multiple`` for this tag settles these and no others. Costs as many steps as it passes tags.
        """
        found = 0
        for tag in self._out:
            if tag not in chosen:
                break
            found = tag
        return found

    def clear(self) -> None:
        """All that was out is no longer; what a transaction settled stays with it."""
        self._out.clear()

    def commit(self) -> None:
        """What was settled stays so."""
        self._settled.clear()

    def rollback(self) -> None:
        """What was settled since the last commit or rollback is out again."""
        self._out = dict.fromkeys(sorted((*self._out, *self._settled)))
        self._settled.clear()
