"""A limit on the incomplete messages of all connections of a listener.

A limit for each connection does not help if there are many connections. A ``Pool`` counts the octets of all its members, in any
protocol, and if they are more than its limit, the member with the most octets must drop its largest message, whichever member
added the last octets. So a single peer cannot fill the pool and lock the others out.

Members are engines, and the store of interrupted messages (``interrupted_transfers``).
Knows octets; knows no protocol.
"""

from __future__ import annotations

from typing import Protocol


class PoolMember(Protocol):
    """A connection, or another object that holds incomplete messages."""

    pool: Pool | None
    """The pool that counts this member; set by ``Pool.join`` and ``Pool.leave``.

    The member must add each change of ``partial_octets`` to ``pool.octets``.
    """

    @property
    def partial_octets(self) -> int:
        """Octets of its incomplete messages."""
        ...

    def drop_largest(self, limit: str) -> bool:
        """Drop the largest incomplete message; return False if none can be dropped.

        If it returns True, ``partial_octets`` is smaller already, whatever the peer does next.

        Args:
            limit: the limit that all messages exceed, for the error.
        """
        ...


class Pool:
    """The count of the octets of incomplete messages.

    Args:
        limit: octets of all members together.

    Attributes:
        limit: as given.
        octets: the current number.
    """

    __slots__ = ("_members", "limit", "octets")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.octets: int = 0
        self._members: dict[PoolMember, None] = {}

    def __str__(self) -> str:
        return f"{self.limit} octets on all connections of the listener"

    def join(self, member: PoolMember) -> None:
        """Count the octets of a member from now on."""
        if member not in self._members:
            self._members[member] = None
            self.octets += member.partial_octets
            member.pool = self

    def leave(self, member: PoolMember) -> None:
        """Stop counting a member; do nothing if it is not one."""
        if member in self._members:
            del self._members[member]
            self.octets -= member.partial_octets
            member.pool = None

    def relieve(self, last: PoolMember) -> bool:
        """Let the members with the most octets drop messages until the limit is kept.

        Args:
            last: the member that added the last octets.

        Returns:
            False if ``last`` must drop a message itself: it has the most octets, or the member with the most octets has no message
            that it can drop.
        """
        while self.octets > self.limit:
            greediest = max(self._members, key=_octets_of)
            if greediest is last or not greediest.drop_largest(str(self)):
                return False
        return True


def _octets_of(member: PoolMember) -> int:
    return member.partial_octets
