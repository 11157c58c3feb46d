"""Pool: the octets of deliveries in progress on several connections together, such as all that one listener accepted.

A bound for each connection bounds nothing where there are many. When the pool is full, the largest delivery of the connection that
has most goes, whichever connection brought the last octets. Knows connections; knows no delivery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .context import Context

__all__ = ["Pool"]


class _Pooled(Protocol):
    """A connection, as far as it is known here."""

    @property
    def context(self) -> Context: ...


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
        self._members: dict[Context, None] = {}

    def join(self, connection: _Pooled) -> None:
        """Count what this connection has; at its begin."""
        context = connection.context
        self._members[context] = None
        self.octets += context.partial_octets
        context.pool = self

    def leave(self, connection: _Pooled) -> None:
        """It is over; nothing happens if it does not count here."""
        context = connection.context
        if context in self._members:
            del self._members[context]
            self.octets -= context.partial_octets
            context.pool = None

    def greediest(self) -> Context:
        """The context of the connection with most octets; there is one."""
        return max(self._members, key=_octets_of)


def _octets_of(context: Context) -> int:
    return context.partial_octets
