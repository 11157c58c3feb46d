"""Pool: the octets of deliveries in progress on several connections together, such as all that one listener accepted.

A bound for each connection bounds nothing where there are many. When the pool is full, the largest delivery of the connection that
has most goes, whichever connection brought the last octets. Knows connections; knows no delivery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .connection import Connection

__all__ = ["Pool"]


class Pool:
    """Counts octets of deliveries that began and are not complete, and of streamed ones that are not read.

    Args:
        limit: octets on all connections together.

    Attributes:
        limit: as given.
        octets: counted now.
    """

    __slots__ = ("_members", "limit", "octets")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.octets = 0
        self._members: dict[Connection, None] = {}

    def join(self, connection: Connection) -> None:
        """Count what this connection has; at its begin."""
        self._members[connection] = None
        self.octets += connection.partial_octets
        connection.pool = self

    def leave(self, connection: Connection) -> None:
        """It is over; nothing happens if it does not count here."""
        if connection in self._members:
            del self._members[connection]
            self.octets -= connection.partial_octets
            connection.pool = None

    def greediest(self) -> Connection:
        """The connection with most octets; there is one."""
        return max(self._members, key=_octets_of)


def _octets_of(connection: Connection) -> int:
    return connection.partial_octets
