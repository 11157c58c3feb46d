"""A reading that all instruments of one collection share.

An SDK calls one function for each instrument, and does not mark the beginning of a collection. But it calls each function once.

Knows a clock; does not know what is read.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")

_FRESH: Final = 5.0
"""Seconds after which a reading is not used any more."""


class Collection(Generic[T]):
    """Reads something once for all instruments of a collection.

    Args:
        read: reads it. It may be called in any thread.
    """

    __slots__ = ("_found", "_read", "_readers", "_until")

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._found: T | None = None
        self._until = 0.0
        self._readers: set[Hashable] = set()

    def reading_for(self, reader: Hashable) -> T:
        """Return the reading, a new one if this reader has had it.

        A reader that asks again belongs to a new collection.

        Args:
            reader: identifies an instrument.
        """
        now = monotonic()
        if self._found is None or reader in self._readers or now > self._until:
            self._readers.clear()
            self._found = self._read()
            self._until = now + _FRESH
        self._readers.add(reader)
        return self._found
