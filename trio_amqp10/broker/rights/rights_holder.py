"""The properties of a connected peer that rights and quotas use.

Knows what a peer claims; does not know what is decided about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from trio_amqp10.broker.nodes.node import Peer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import trio

SolePolicy: TypeAlias = Literal["refuse", "close-existing"]
"""The peer's choice for a second connection of the same container.

It is refused, or the first one is closed.
"""


class Subject(Peer, Protocol):
    """A peer whose rights and quotas are checked.

    Equal to itself only; can be referred to weakly.

    Attributes:
        nursery: the nursery of its tasks, once it has entered the container.
    """

    nursery: trio.Nursery | None

    @property
    def host(self) -> str | None:
        """The IP address of the peer; None in memory or on a Unix socket."""
        ...

    @property
    def sole(self) -> SolePolicy | None:
        """The policy that the peer asks for; None if it asks for none.

        Raises:
            RefusedError: it asks for an unknown one.
        """
        ...

    @property
    def closed(self) -> bool:
        """Whether either end has closed the connection."""
        ...

    @property
    def link_count(self) -> int:
        """The number of links that count in its quota."""
        ...

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """Close the connection with this error, without waiting for the peer.

        The dialect translates the error.
        """
        ...
