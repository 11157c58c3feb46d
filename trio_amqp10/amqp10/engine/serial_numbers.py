"""Serial numbers, which wrap at 2**32 (2.8.10, RFC 1982).

They are plain ints for speed. Comparing two of them with ``<`` is always a bug: use ``distance``.
"""

from __future__ import annotations

from typing import Final

MASK: Final = 0xFFFFFFFF
HALF: Final = 0x80000000


def add(serial: int, n: int) -> int:
    """Return ``serial`` advanced by ``n``, wrapped."""
    return (serial + n) & MASK


def distance(later: int, earlier: int) -> int:
    """Return how far ``later`` is ahead of ``earlier``; negative if it is behind.

    The result is in [-2**31, 2**31). At exactly half the circle RFC 1982 leaves the order undefined; here it
    is behind.
    """
    return ((later - earlier + HALF) & MASK) - HALF
