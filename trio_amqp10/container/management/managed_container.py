"""The container as management sees it.

Knows the names of what a container has; see ``Container``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trio_amqp10.broker.peer_interfaces import ServingContainer

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Sequence

    from trio_amqp10.broker.nodes.node import ContainerPeer
    from trio_amqp10.broker.nodes.queue import Queue
    from trio_amqp10.broker.nodes.topic import Topic
    from trio_amqp10.broker.peer_interfaces import ConnectedPeer
    from trio_amqp10.broker.rights.access import Authorise
    from trio_amqp10.broker.stores.node_settings import NodeSettings
    from trio_amqp10.broker.stores.queue_redirects import QueueRedirects
    from trio_amqp10.broker.stores.write_probe import WriteProbe
    from trio_amqp10.net.listener import Listener

    from .frame_watch import FrameWatch


class ManagedContainer(ServingContainer, Protocol):
    """A container that can be managed. See ``Container``."""

    authorise: Authorise | None
    frame_watches: list[FrameWatch]
    redirects: QueueRedirects
    settings: NodeSettings | None
    probe: WriteProbe | None
    virtual_hosts: tuple[str, ...]

    @property
    def past_messages(self) -> Counter[str]:
        """Totals of the messages of nodes that were deleted."""
        ...

    @property
    def entered(self) -> int:
        """The number of connections so far."""
        ...

    @property
    def connected(self) -> Sequence[ConnectedPeer]:
        """The peers that are connected now, oldest first."""
        ...

    @property
    def past(self) -> Counter[str]:
        """Totals of the connections that have ended."""
        ...

    @property
    def listeners(self) -> Sequence[Listener]:
        """The addresses at which it listens now."""
        ...

    @property
    def known_users(self) -> Collection[str]:
        """The users that may log in, if ``serve`` has a list of them."""
        ...

    @property
    def nodes_peer(self) -> ContainerPeer:
        """The container as a peer of its own nodes."""
        ...

    @property
    def add_queue(self) -> Callable[..., Queue]:
        """Adds a queue."""
        ...

    @property
    def add_topic(self) -> Callable[..., Topic]:
        """Adds a topic."""
        ...

    def remove_node(self, address: str) -> None:
        """Delete a node and its messages."""
        ...

    def resolve(self, address: str) -> str:
        """Return the address of the node that ``address`` means."""
        ...

    def statistics(self) -> dict[str, int]:
        """Return live figures by name."""
        ...
