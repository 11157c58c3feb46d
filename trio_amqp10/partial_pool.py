"""The octets of incomplete messages on all connections of a listener, whatever protocol each connection speaks.

A bound for each connection bounds nothing where there are many. A ``Pool`` counts what all its members hold, and if that is
more than its limit, the member that holds most has to drop its largest message, whichever member brought the last octets. So
a single peer cannot hold the pool and shut the others out.

Members are engines, and what keeps messages that were broken off for a sender that comes again (``interrupted_transfers``).
Knows octets; knows no protocol.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Pool", "PoolMember"]


class PoolMember(Protocol):
    """A connection, or anything else that holds incomplete messages."""

    pool: Pool | None
    """Set by ``Pool.join`` and ``Pool.leave``. A member adds each change of ``partial_octets`` to ``pool.octets``."""

    @property
    def partial_octets(self) -> int:
        """Octets of the incomplete messages that it holds."""
        ...

    def drop_largest(self, limit: str) -> bool:
        """Drop its largest incomplete message, because all messages take more than ``limit``. False if it has none to drop."""
        ...


class Pool:
    """Counts octets of messages that have begun and are not complete.

    Args:
        limit: octets of all members together.

    Attributes:
        limit: as given.
        octets: counted now.
    """

    __slots__ = ("_members", "limit", "octets")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.octets: int = 0
        self._members: dict[PoolMember, None] = {}

    def __str__(self) -> str:
        return f"{self.limit} octets on all connections of the listener"

    def join(self, member: PoolMember) -> None:
        """Count what a member holds, from now on."""
        if member not in self._members:
            self._members[member] = None
            self.octets += member.partial_octets
            member.pool = self

    def leave(self, member: PoolMember) -> None:
        """Stop counting a member. Nothing happens if it is not one."""
        if member in self._members:
            del self._members[member]
            self.octets -= member.partial_octets
            member.pool = None

    def relieve(self, last: PoolMember) -> bool:
        """Have the members that hold most drop messages until the pool is within its limit.

        Args:
            last: the member that brought the last octets.

        Returns:
            False if ``last`` has to drop a message of its own: it holds most, or what holds most has nothing that it can drop.
        """
        while self.octets > self.limit:
            greediest = max(self._members, key=_octets_of)
            if greediest is last or not greediest.drop_largest(str(self)):
                return False
        return True


def _octets_of(member: PoolMember) -> int:
    return member.partial_octets
