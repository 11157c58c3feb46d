"""What several peers do to one container, or one peer to a program of ours, as octets that a file can keep.

A script is a row of moves: one octet for what is done, one for the connection that does it, four for a length, and so
many octets. Any octets are a script: a move that is cut short ends it.

=========  ===========================================================================================
``WRITE``  the peer writes; what it writes next may come in the same read
``SAY``    the peer writes, and all that follows from it happens
``CUT``    the connection is gone at once, in both directions
``EOF``    the peer writes no more, and reads on
``DEAF``   the peer does not read any more
``CLOCK``  time passes: the milliseconds are the four octets of a number
=========  ===========================================================================================
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

CONNECTIONS: Final = 4
_HEAD: Final = struct.Struct(">BBI")
_LONGEST: Final = 3_600_000
"""Milliseconds that may pass in one move."""


class Act(IntEnum):
    """What is done in a move."""

    WRITE = 0
    SAY = 1
    CUT = 2
    EOF = 3
    DEAF = 4
    CLOCK = 5


class Move(NamedTuple):
    """One thing that one connection does."""

    act: Act
    connection: int
    octets: bytes = b""

    @property
    def seconds(self) -> float:
        """How much time passes, for ``CLOCK``."""
        return min(int.from_bytes(self.octets[:4], "big"), _LONGEST) / 1000


def pack(moves: Iterable[Move]) -> bytes:
    """As octets."""
    return b"".join(_HEAD.pack(move.act, move.connection, len(move.octets)) + move.octets for move in moves)


def unpack(octets: bytes) -> list[Move]:
    """The moves; whatever the octets are, there are some or none."""
    moves: list[Move] = []
    at = 0
    while at + _HEAD.size <= len(octets):
        act, connection, size = _HEAD.unpack_from(octets, at)
        at += _HEAD.size
        moves.append(Move(Act(act % len(Act)), connection % CONNECTIONS, octets[at : at + size]))
        at += size
    return moves
