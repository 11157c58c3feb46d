"""A memo of what few short keys give, such as the octets of an address that many messages name.

Knows nothing of what it remembers, nor of octets.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any, Final, TypeVar

__all__ = ["LONGEST_KEY", "MOST_KEYS", "BoundedMemo"]

K = TypeVar("K", bound=Sized)
V = TypeVar("V")

MOST_KEYS: Final = 1_024
"""Keys that are remembered. A memo that is full is emptied: keys that do not come again cost little, and stay for a while."""

LONGEST_KEY: Final = 64
"""Characters or octets of a key that is remembered: so a memo holds some 100 KiB at most, whatever a peer sends."""


class BoundedMemo(dict[K, V]):
    """Results of a function, by its argument: ``memo[key]``.

    Args:
        make: makes the result, always the same for equal keys; what it raises, ``memo[key]`` raises, and nothing
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
