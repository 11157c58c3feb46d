"""Things by owner, and which owner has the most.

Adding, removing and asking cost the same whatever there is. Knows neither what the things are nor who owns them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["OwnerShares"]

T = TypeVar("T", bound="Hashable")


class OwnerShares(Generic[T]):
    """Things by owner, oldest first."""

    __slots__ = ("_by_count", "_length", "_things")

    def __init__(self) -> None:
        self._things: dict[str, dict[T, None]] = {}
        self._by_count: list[dict[str, None]] = [{}]
        """Owners by the number of their things; the last is not empty, but for the first."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def count(self, owner: str) -> int:
        """How many things the owner has."""
        return len(self._things.get(owner, ()))

    def add(self, owner: str, thing: T) -> None:
        """One more thing of this owner, its youngest; it has not been there."""
        things = self._things.setdefault(owner, {})
        self._by_count[len(things)].pop(owner, None)
        things[thing] = None
        if len(things) == len(self._by_count):
            self._by_count.append({})
        self._by_count[len(things)][owner] = None
        self._length += 1

    def discard(self, owner: str, thing: T) -> None:
        """Remove a thing; nothing happens if it is not there."""
        things = self._things.get(owner)
        if things is None or thing not in things:
            return
        del self._by_count[len(things)][owner]
        del things[thing]
        if things:
            self._by_count[len(things)][owner] = None
        else:
            del self._things[owner]
        while len(self._by_count) > 1 and not self._by_count[-1]:
            self._by_count.pop()
        self._length -= 1

    def greediest(self) -> str | None:
        """The owner with most things, of several the one that has had so many for longest; None if there are none."""
        return next(iter(self._by_count[-1]), None)

    def oldest(self, owner: str) -> T:
        """The oldest thing of an owner that has any."""
        return next(iter(self._things[owner]))
