"""Make a script smaller, as long as it fails in the same way: moves are left out, many at a time and then one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .judge import failure_of
from .script import Move, pack, unpack

if TYPE_CHECKING:
    from .target import FuzzTarget


def shrunk(target: FuzzTarget, octets: bytes) -> bytes:
    """The script without the moves that its failure does not need; itself, if it does not fail."""
    found = failure_of(target, octets)
    if found is None:
        return octets
    where = found[0]

    def fails(moves: list[Move]) -> bool:
        again = failure_of(target, pack(moves))
        return again is not None and again[0] == where

    moves = unpack(octets)
    size = max(1, len(moves) // 2)
    while size:
        at = 0
        while at < len(moves):
            fewer = moves[:at] + moves[at + size :]
            if fails(fewer):
                moves = fewer
            else:
                at += size
        size //= 2
    return pack(moves)
