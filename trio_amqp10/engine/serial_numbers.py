"""RFC 1982 serial numbers, which wrap at 2**32 (2.8.10).

They are plain ints for speed; comparing two of them with ``<`` is always a bug, so
everything that compares goes through ``distance``.
"""

from __future__ import annotations

from typing import Final

__all__ = ["HALF", "MASK", "add", "distance"]

MASK: Final = 0xFFFFFFFF
HALF: Final = 0x80000000


def add(serial: int, n: int) -> int:
    """``serial`` moved on by ``n``, wrapped."""
    return (serial + n) & MASK


def distance(later: int, earlier: int) -> int:
    """How far ``later`` is ahead of ``earlier``: negative when it is behind.

    The answer lies in [-2**31, 2**31); at exactly half the circle RFC 1982 leaves the
    order undefined, and we read it as behind.
    """
    return ((later - earlier + HALF) & MASK) - HALF
