"""A cache of a function's results for few short keys, such as encoded addresses."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any, Final, TypeVar

K = TypeVar("K", bound=Sized)
V = TypeVar("V")

MOST_KEYS: Final = 1_024
"""The maximum number of keys.

A full memo is emptied: keys that do not recur stay only for a while, and cost little.
"""

LONGEST_KEY: Final = 64
"""The longest key that is remembered, in characters or octets.

It limits a memo to about 100 KiB, whatever a peer sends.
"""


class BoundedMemo(dict[K, V]):
    """Results of a function, by its argument: ``memo[key]``.

    Args:
        make: computes the result, which must be the same for equal keys. An exception propagates from ``memo[key]``, and nothing
            is remembered.
    """

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[Any], V]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: K) -> V:
        made = self._make(key)
        if len(key) <= LONGEST_KEY:
            if len(self) >= MOST_KEYS:
                self.clear()
            self[key] = made
        return made
