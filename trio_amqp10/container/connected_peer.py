"""What a container knows of a connection, and a dialect of the container.

``ConnectedPeer`` is what a dialect makes of each connection; ``ConnectedPeerBase`` (``connected_peer_base``) is most of it.
``ServingContainer`` is what the container is to a dialect.

Knows accounts and permissions; knows no link and no octet of any dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .rights.rights_holder import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import trio

    from .background_tasks import TaskRunner
    from .broker.topology import Topology
    from .nodes.clock import Clock
    from .nodes.node import Node, RefusedError
    from .nodes.watermark import Watermark
    from .rights.guard import Guard
    from .rights.quotas import Account, Accounts
    from .stores.group_commit import Journal

__all__ = ["ConnectedPeer", "LinkView", "ServingContainer"]


class LinkView(NamedTuple):
    """A link, a channel's consumer, or whatever else a dialect calls it, as management shows it.

    Attributes:
        role: ``"sender"`` if the container sends on it, else ``"receiver"``.
        name: unique among those of its role on the connection.
        statistics: makes its live figures by name; ``state`` and ``address`` are among them.
    """

    role: str
    name: str
    statistics: Callable[[], Mapping[str, Any]]


class ConnectedPeer(Subject, Protocol):
    """One peer, for as long as its connection lasts and tasks work for it. See ``Subject`` for what it says of itself.

    Attributes:
        number: of the connection, unique among all that the container has had; given by ``Container.enter``.
        resting: whether nothing new is to be taken from the peer or given to it, because the container finishes.
        open: whether the connection lasts, so that tasks of the container may run here.
        leases: deliveries that the peer was given and that have no outcome yet.
        working: tasks that run for the peer.
        account: what its identity has; None without quotas.
        guard: knows what the peer may do.
    """

    number: int
    resting: bool
    open: bool
    leases: int
    working: int
    account: Account | None
    guard: Guard

    def links(self) -> Iterator[LinkView]:
        """The links that there are now."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """Live figures by name; those named in ``peer.statistics.TOTALS`` only grow, and outlast it in ``Container.past``."""
        ...

    def begin(self, nursery: trio.Nursery) -> None:
        """Tasks run in ``nursery`` from now on; called by ``Container.enter``."""
        ...

    def ended(self) -> None:
        """The connection is over: give back what is unsettled and cannot outlast it; called by ``Container.leave``."""
        ...


class ServingContainer(Protocol):
    """A container, as a dialect sees it. See ``Container``."""

    @property
    def name(self) -> str:
        """What peers see as its container-id."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes that there are, by address."""
        ...

    @property
    def broker(self) -> Topology | None:
        """Its exchanges, bindings and declared queues, if it has any."""
        ...

    @property
    def clock(self) -> Clock:
        """By which messages expire."""
        ...

    @property
    def watermark(self) -> Watermark:
        """Counts what messages take."""
        ...

    @property
    def journal(self) -> Journal | None:
        """What is on its way to the store; None without one."""
        ...

    @property
    def accounts(self) -> Accounts | None:
        """What each identity has; None without quotas."""
        ...

    @property
    def max_unsettled_octets(self) -> int | None:
        """Octets that one connection may hold unsettled; None for any number."""
        ...

    @property
    def resting(self) -> bool:
        """Whether the container finishes."""
        ...

    def add_broker(self, *, queue_address: Callable[[str], str] = str) -> Topology:
        """Have exchanges and bindings too."""
        ...

    def find(self, address: str) -> Node:
        """The node of this address, or raise ``RefusedError``; see ``Container.find``."""
        ...

    def forget_unused(self, node: Node) -> None:
        """A link to ``node`` is over, or did not come to be."""
        ...

    def guard_for(self, peer: Subject) -> Guard:
        """What knows what this peer may do."""
        ...

    def admit(self, peer: ConnectedPeer) -> RefusedError | None:
        """See ``Container.admit``."""
        ...

    def enter(self, peer: ConnectedPeer, nursery: trio.Nursery) -> None:
        """See ``Container.enter``."""
        ...

    def leave(self, peer: ConnectedPeer) -> None:
        """See ``Container.leave``."""
        ...

    def check_idle(self, runner: TaskRunner) -> None:
        """See ``Container.check_idle``."""
        ...
