"""Client and server, where a protocol tells its two ends apart: AMQP 0-9-1, 10.3 and AMQP/Fast."""

from __future__ import annotations

from enum import Enum

__all__ = ["EndpointRole"]


class EndpointRole(Enum):
    """Client or server: what an end of a connection is, and which ends may send a method or command."""

    CLIENT = "client"
    SERVER = "server"
    BOTH = "client or server"

    def permits(self, role: EndpointRole) -> bool:
        """Whether the end with this role may send it."""
        return self is EndpointRole.BOTH or self is role
