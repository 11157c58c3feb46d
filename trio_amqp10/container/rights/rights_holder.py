"""A connected peer, as far as its rights and quotas need to know it.

Knows what a peer says of itself; does not know what is decided about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from trio_amqp10.container.nodes.node import Peer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import trio

__all__ = ["SolePolicy", "Subject"]

SolePolicy: TypeAlias = Literal["refuse", "close-existing"]
"""What is to happen to a second connection of the same container: it is refused, or the first is closed."""


class Subject(Peer, Protocol):
    """A peer whose rights and quotas are checked. Equal to itself alone; can be referred to weakly.

    Attributes:
        nursery: where its tasks run, from the time that it has entered the container.
    """

    nursery: trio.Nursery | None

    @property
    def host(self) -> str | None:
        """The IP address that the peer dialled from; None in memory or on a Unix socket."""
        ...

    @property
    def sole(self) -> SolePolicy | None:
        """What the peer wants to happen to other connections of its container; None if it does not say.

        Raises:
            RefusedError: it asks in a way that there is not.
        """
        ...

    @property
    def closed(self) -> bool:
        """Whether the connection is over, by either end."""
        ...

    @property
    def link_count(self) -> int:
        """Links that count in its quota."""
        ...

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """Close the connection with this error, without waiting for the peer; the dialect finds the words for it."""
        ...
