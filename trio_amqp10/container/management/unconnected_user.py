"""UnconnectedUser: an identity without a connection, whose permissions are asked.

Knows an identity; knows no connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import trio

    from trio_amqp10.sasl import Identity


class UnconnectedUser:
    """The subject of permissions of an identity without a connection; a ``Subject``.

    Args:
        identity: the authenticated identity; None for one that is not authenticated.
        container_id: the name by which ``authorise`` sees it.
        host: its IP address; None if it is not known.
    """

    __slots__ = ("__weakref__", "container_id", "host", "identity", "nursery")

    sole = None
    closed = False
    link_count = 0

    def __init__(self, identity: Identity | None, container_id: str, host: str | None = None) -> None:
        self.identity: Any = identity
        self.container_id: str = container_id
        self.host: str | None = host
        self.nursery: trio.Nursery | None = None

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Fail: management waits for each answer itself."""
        raise NotImplementedError

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """Do nothing: there is no connection."""
