"""The roles of a connection's ends, client and server.

AMQP 0-9-1, 10.3 and AMQP/Fast distinguish them.
"""

from __future__ import annotations

from enum import Enum


class EndpointRole(Enum):
    """The role of an end of a connection, or the roles that may send a method."""

    CLIENT = "client"
    SERVER = "server"
    BOTH = "client or server"

    def permits(self, role: EndpointRole) -> bool:
        """Whether an end with this role may send it."""
        return self is EndpointRole.BOTH or self is role
