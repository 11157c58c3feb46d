"""The interfaces between a container and the connections of a dialect.

A dialect makes a ``ConnectedPeer`` of each connection; ``ConnectedPeerBase`` (``connected_peer_base``) has most of it. A dialect
sees the container as a ``ServingContainer``.

Knows accounts and permissions; knows no link and no octet of any dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .rights.rights_holder import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import trio

    from trio_amqp10.net.pump import Pump

    from .background_tasks import TaskRunner
    from .exchanges.topology import Topology
    from .nodes.clock import Clock
    from .nodes.node import Node, RefusedError
    from .nodes.watermark import Watermark
    from .rights.guard import Guard
    from .rights.quotas import Account, Accounts
    from .stores.group_commit import Journal
    from .transactions import Transaction


class LinkView(NamedTuple):
    """A link, or a channel's consumer, as management shows it.

    Attributes:
        role: ``"sender"`` if the container sends on it, otherwise ``"receiver"``.
        name: unique among those of its role on the connection.
        statistics: returns its current figures by name; ``state`` and ``address`` are among them.
        close: ends it, for a condition and a description.
    """

    role: str
    name: str
    statistics: Callable[[], Mapping[str, Any]]
    close: Callable[[str, str], object]


class ChannelView(NamedTuple):
    """A session, or a channel, as management shows it.

    Attributes:
        number: its number on the connection.
        statistics: returns its current figures by name; ``state`` is among them.
    """

    number: int
    statistics: Callable[[], Mapping[str, Any]]


class ConnectedPeer(Subject, Protocol):
    """One peer, while its connection lasts and tasks work for it; see ``Subject``.

    Attributes:
        number: identifies the connection among all that the container has had; set by ``Container.enter``.
        since: when it entered, in seconds since 1970; set by ``Container.enter``.
        resting: whether nothing new may be taken from the peer or given to it, because the container finishes.
        open: whether the connection lasts, so that tasks of the container may run here.
        leases: deliveries to the peer that have no outcome yet.
        working: the number of tasks that run for the peer.
        account: the account of its identity; None without quotas.
        guard: checks the permissions of the peer.
        pump: moves the octets of its connection.
    """

    number: int
    since: float
    resting: bool
    open: bool
    leases: int
    working: int
    account: Account | None
    guard: Guard
    pump: Pump

    def links(self) -> Iterator[LinkView]:
        """Iterate over the present links."""
        ...

    def channel_views(self) -> Iterator[ChannelView]:
        """Iterate over the present sessions or channels."""
        ...

    def transactions(self) -> Iterator[Transaction]:
        """Iterate over the transactions that are not over."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """Return the current figures by name.

        Those of ``amqp10.peer.statistics.totals_of`` only grow, and are kept in ``Container.past`` after the connection.
        """
        ...

    def begin(self, nursery: trio.Nursery) -> None:
        """Run tasks in ``nursery`` from now on; called by ``Container.enter``."""
        ...

    def ended(self) -> None:
        """Give back the unsettled deliveries that cannot outlast the connection.

        Called by ``Container.leave``.
        """
        ...


class ServingContainer(Protocol):
    """A container, as a dialect sees it. See ``Container``."""

    @property
    def name(self) -> str:
        """Its container-id."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The present nodes, by address."""
        ...

    @property
    def strict(self) -> bool:
        """Whether peers reach only nodes that the program added."""
        ...

    @property
    def broker(self) -> Topology | None:
        """Its exchanges, bindings and declared queues, if it has any."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock by which messages expire."""
        ...

    @property
    def watermark(self) -> Watermark:
        """Counts the memory of all messages."""
        ...

    @property
    def journal(self) -> Journal | None:
        """The way to the store; None without a store."""
        ...

    @property
    def accounts(self) -> Accounts | None:
        """The accounts of all identities; None without quotas."""
        ...

    @property
    def max_unsettled_octets(self) -> int | None:
        """Unsettled octets that one connection may hold; None for any number."""
        ...

    @property
    def resting(self) -> bool:
        """Whether the container finishes, and takes nothing new."""
        ...

    def add_broker(
        self, *, queue_address: Callable[[str], str] = str, like_rabbitmq: bool = False
    ) -> Topology:
        """Add exchanges and bindings."""
        ...

    def find(self, address: str) -> Node:
        """Return the node of this address, or raise ``RefusedError``.

        See ``Container.find``.
        """
        ...

    def forget_unused(self, node: Node) -> None:
        """Remove a temporary node whose last link has ended, or was not attached."""
        ...

    def guard_for(self, peer: Subject) -> Guard:
        """Return the guard that checks the permissions of this peer."""
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
