"""A connected peer: what a container knows of one connection, whatever dialect is spoken on it.

``ConnectedPeer`` is the interface. ``ServedPeer`` has all of it that no dialect changes: a dialect subclasses that, adds who the
peer is and how its connection is closed, and has ``Container.enter`` and ``Container.leave`` called.

Knows accounts and permissions; knows no link and no octet of any dialect.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import trio

from .host import Host
from .nodes.node import Peer
from .nodes.origins import user_of
from .transactions import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .nodes.node import Interest, Node, Owner
    from .nodes.watermark import Watermark
    from .rights.guard import Guard
    from .rights.quotas import Account
    from .rights.sole import SolePolicy
    from .service import Container

__all__ = ["ConnectedPeer", "LinkView", "ServedPeer", "Wakeable"]

_log = logging.getLogger("trio_amqp10.container")


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


class ConnectedPeer(Peer, Protocol):
    """One peer, for as long as its connection lasts and tasks work for it. Equal to itself alone; can be referred to weakly.

    Attributes:
        number: of the connection, unique among all that the container has had; given by ``Container.enter``.
        resting: whether nothing new is to be taken from the peer or given to it, because the container finishes.
        open: whether the connection lasts, so that tasks of the container may run here.
        nursery: where tasks run; given by ``Container.enter``.
        leases: deliveries that the peer was given and that have no outcome yet.
        working: tasks that run for the peer.
        account: what its identity has; None without quotas.
        guard: knows what the peer may do.
    """

    number: int
    resting: bool
    open: bool
    nursery: trio.Nursery | None
    leases: int
    working: int
    account: Account | None
    guard: Guard

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

    def links(self) -> Iterator[LinkView]:
        """The links that there are now."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """Live figures by name; those named in ``peer.statistics.TOTALS`` only grow, and outlast it in ``Container.past``."""
        ...

    def begin(self, nursery: trio.Nursery) -> None:
        """Tasks run in ``nursery`` from now on; called by ``Container.enter``."""
        ...

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """Close the connection with this error, without waiting for the peer; the dialect finds the words for it."""
        ...

    def ended(self) -> None:
        """The connection is over: give back what is unsettled and cannot outlast it; called by ``Container.leave``."""
        ...


class Wakeable(Protocol):
    """An outlet that waits for room."""

    def wake(self) -> None:
        """There may be room."""
        ...


class ServedPeer(Host):
    """The parts of a ``ConnectedPeer`` that are the same in each dialect: tasks, permissions, and what the peer has unsettled.

    A subclass adds ``container_id``, ``identity``, ``closed``, ``close``, ``statistics`` and ``links``, and what else its dialect can tell.

    Args:
        container: that serves it.
    """

    def __init__(self, container: Container) -> None:
        super().__init__(container)
        self.number = 0
        self.resting = container.resting
        self.account: Account | None = None
        self.guard: Guard = container.guard_for(self)
        self._retained = 0
        self._waiting: dict[Wakeable, None] = {}

    def serves(self, container: Container) -> bool:
        """Whether it is this container that the peer is connected to."""
        return self._container is container

    @property
    def owner(self) -> Owner:
        """Whose the things are that outlast the connection."""
        return self.container_id, user_of(self.identity)

    @property
    def watermark(self) -> Watermark:
        """Counts what waits at the links."""
        return self._container.watermark

    # -- what a dialect says ----------------------------------------------------------------

    @property
    def container_id(self) -> str:
        """As for ``ConnectedPeer``."""
        raise NotImplementedError

    @property
    def identity(self) -> Any:
        """As for ``ConnectedPeer``; None: the dialect proves nothing."""
        return None

    @property
    def host(self) -> str | None:
        """As for ``ConnectedPeer``."""
        return None

    @property
    def sole(self) -> SolePolicy | None:
        """As for ``ConnectedPeer``; None: the dialect has no such thing."""
        return None

    @property
    def link_count(self) -> int:
        """As for ``ConnectedPeer``."""
        return sum(1 for _ in self.links())

    @property
    def closed(self) -> bool:
        """As for ``ConnectedPeer``."""
        raise NotImplementedError

    def links(self) -> Iterator[LinkView]:
        """As for ``ConnectedPeer``."""
        raise NotImplementedError

    def statistics(self) -> Mapping[str, Any]:
        """As for ``ConnectedPeer``."""
        raise NotImplementedError

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """As for ``ConnectedPeer``."""
        raise NotImplementedError

    # -- links ------------------------------------------------------------------------------

    def check_link(self) -> None:
        """Raise ``RefusedError`` if the peer's identity has as many links as its quota permits."""
        if self.account is not None:
            self.account.check_link()

    def check_inlet(self, node: Node) -> None:
        """Raise ``RefusedError`` if the peer may not send to ``node`` now; ``node.add_inlet`` follows without an await."""
        node.check_inlet(self)
        if self._container.accounts is not None:
            self._container.accounts.check_node(node, node.inlets, "senders")

    def check_outlet(self, node: Node, *, copying: bool, target: str | None, interest: Interest) -> None:
        """Raise ``RefusedError`` if the peer may not receive from ``node`` now; ``node.add_outlet`` follows without an await."""
        node.check_outlet(self, copying=copying, target=target, interest=interest)
        if self._container.accounts is not None:
            self._container.accounts.check_node(node, node.outlets, "receivers")

    def forget_unused(self, node: Node) -> None:
        """A link of the peer to ``node`` is over, or did not come to be: a node that was made for it alone goes too."""
        self._container.forget_unused(node)

    def begin_transaction(self, on_rollback: Callable[[], object] | None = None) -> Transaction:
        """A transaction of this peer, which is to be committed or rolled back, in ``ended`` at the latest.

        Args:
            on_rollback: called first when it is rolled back.
        """
        container = self._container
        return Transaction(
            self,
            container.clock,
            container.watermark,
            journal=container.journal,
            max_octets=container.max_unsettled_octets,
            on_rollback=on_rollback,
        )

    # -- what the peer owes us an answer for ------------------------------------------------

    def retain(self, size: int) -> None:
        """The peer was given one more delivery, of ``size`` octets, that waits for its outcome."""
        self.leases += 1
        self._retained += size
        if self.account is not None:
            self.account.retain(size)

    def is_full(self, outlet: Wakeable) -> bool:
        """Whether the peer is to get no more until it, or its identity, settles something; then ``outlet`` is woken."""
        limit = self._container.max_unsettled_octets
        if limit is None or self._retained < limit:
            if self.account is None or not self.account.is_full:
                return False
            self.account.when_room(self._on_room)
        elif not self._waiting:
            _log.debug(
                "%r holds max_unsettled_octets=%d: no more until it settles some", self.container_id, limit
            )
        self._waiting[outlet] = None
        return True

    def let_go(self, size: int) -> None:
        """A delivery of ``size`` octets has its outcome."""
        self.leases -= 1
        self._retained -= size
        if self.account is not None:
            self.account.let_go(size)
        limit = self._container.max_unsettled_octets
        if self._waiting and (limit is None or self._retained < limit):
            self._on_room()
        if self.resting:
            self._container.check_idle(self)

    def stop_waiting(self, outlet: Wakeable) -> None:
        """This outlet is over, and is not to be woken."""
        self._waiting.pop(outlet, None)

    def _on_room(self) -> None:
        """There may be room for what waits; if not, it waits again."""
        waiting, self._waiting = self._waiting, {}
        if waiting and self.open:
            self.start_soon(self._wake, waiting)

    async def _wake(self, waiting: Mapping[Wakeable, None]) -> None:
        """There is room again; the outcomes that came with the one that made it count first."""
        await trio.lowlevel.checkpoint()
        for outlet in waiting:
            outlet.wake()

    # -- the end ----------------------------------------------------------------------------

    def ended(self) -> None:
        """As for ``ConnectedPeer``."""
        self.guard.close()
        if self.account is not None:
            self.account.forget(self._on_room)
