"""Items counted by owner, to find the owner with the most items.

Every operation takes constant time. Knows neither the meaning of the items nor of the owners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

T = TypeVar("T", bound="Hashable")


class OwnerShares(Generic[T]):
    """Items by owner, oldest first."""

    __slots__ = ("_by_count", "_length", "_things")

    def __init__(self) -> None:
        self._things: dict[str, dict[T, None]] = {}
        self._by_count: list[dict[str, None]] = [{}]
        """Owners by the number of their items; the last dict is empty only if alone."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def count(self, owner: str) -> int:
        """Return how many items the owner has."""
        return len(self._things.get(owner, ()))

    def add(self, owner: str, thing: T) -> None:
        """Add an item as the owner's newest; it must not be present yet."""
        things = self._things.setdefault(owner, {})
        self._by_count[len(things)].pop(owner, None)
        things[thing] = None
        if len(things) == len(self._by_count):
            self._by_count.append({})
        self._by_count[len(things)][owner] = None
        self._length += 1

    def discard(self, owner: str, thing: T) -> None:
        """Remove an item; do nothing if it is not present."""
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
        """Return the owner with the most items; None if there is no item.

        Of several, it is the owner that has had this number longest.
        """
        return next(iter(self._by_count[-1]), None)

    def oldest(self, owner: str) -> T:
        """Return the oldest item of an owner that has at least one."""
        return next(iter(self._things[owner]))
