"""The parts of a connected peer that all dialects share: tasks, rights, quotas.

A dialect subclasses ``ConnectedPeerBase``, adds the identity of the peer and the way to close its connection, and calls
``Container.enter`` and ``Container.leave``.

Knows accounts and permissions; knows no link and no octet of any dialect.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import trio

from trio_amqp10.net.read_turns import current_turns

from .background_tasks import TaskRunner
from .nodes.message_origin import user_of
from .nodes.turns import each_in_turns, take_steps
from .transactions import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trio_amqp10.net.engine_interface import Wakeable
    from trio_amqp10.net.pump import Pump

    from .nodes.node import Node, Owner, SubscriptionTerms
    from .nodes.turns import Turns
    from .nodes.watermark import Watermark
    from .peer_interfaces import ChannelView, LinkView, ServingContainer
    from .rights.guard import Guard
    from .rights.quotas import Account
    from .rights.rights_holder import SolePolicy
    from .stores.group_commit import Journal

_log = logging.getLogger("trio_amqp10.container")


def _wake(outlet: Wakeable) -> None:
    outlet.wake()


class ConnectedPeerBase(TaskRunner):
    """The parts of a ``ConnectedPeer`` that are the same in each dialect.

    Tasks, permissions, and the unsettled deliveries. A subclass adds ``container_id``, ``identity``, ``closed``, ``close``,
    ``statistics`` and ``links``, and whatever more its dialect knows.

    Args:
        container: the container that serves it.
    """

    __slots__ = (
        "_retained",
        "_transactions",
        "_waiting",
        "account",
        "guard",
        "number",
        "resting",
        "since",
    )

    leases: int
    pump: Pump

    def __init__(self, container: ServingContainer) -> None:
        super().__init__(container)
        self.number: int = 0
        self.since: float = 0.0
        self.resting: bool = container.resting
        self.account: Account | None = None
        self.guard: Guard = container.guard_for(self)
        self._retained = 0
        self._waiting: dict[Wakeable, None] = {}
        self._transactions: WeakSet[Transaction] | None = None

    def serves(self, container: ServingContainer) -> bool:
        """Whether the peer is connected to this container."""
        return self._container is container

    @property
    def owner(self) -> Owner:
        """The owner of nodes and subscriptions that outlast the connection."""
        return self.container_id, user_of(self.identity)

    @property
    def turns(self) -> Turns:
        """The turns that long work is divided into."""
        return self._container.clock.turns()

    @property
    def journal(self) -> Journal | None:
        """Writes the changes of the container; None for a container without a store."""
        return self._container.journal

    @property
    def watermark(self) -> Watermark:
        """Counts the memory of the messages that wait at the links."""
        return self._container.watermark

    # -- for a dialect to override ----------------------------------------------------------

    @property
    def container_id(self) -> str:
        """See ``ConnectedPeer``."""
        raise NotImplementedError

    def write_outcomes(self) -> None:
        """Write the outcomes that were given before everything that is sent from now on.

        Only a dialect that collects outcomes must do anything.
        """

    @property
    def identity(self) -> Any:
        """See ``ConnectedPeer``; None for a dialect without authentication."""
        return None

    @property
    def host(self) -> str | None:
        """See ``ConnectedPeer``."""
        return None

    @property
    def sole(self) -> SolePolicy | None:
        """See ``ConnectedPeer``; None for a dialect without it."""
        return None

    @property
    def link_count(self) -> int:
        """See ``ConnectedPeer``."""
        return sum(1 for _ in self.links())

    @property
    def closed(self) -> bool:
        """See ``ConnectedPeer``."""
        raise NotImplementedError

    def links(self) -> Iterator[LinkView]:
        """See ``ConnectedPeer``."""
        raise NotImplementedError

    def channel_views(self) -> Iterator[ChannelView]:
        """See ``ConnectedPeer``; none for a dialect without sessions or channels."""
        return iter(())

    def statistics(self) -> Mapping[str, Any]:
        """See ``ConnectedPeer``."""
        raise NotImplementedError

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """See ``ConnectedPeer``."""
        raise NotImplementedError

    # -- links ------------------------------------------------------------------------------

    def check_link(self) -> None:
        """Raise ``RefusedError`` if the peer's identity has reached its quota of links."""
        if self.account is not None:
            self.account.check_link()

    def check_inlet(self, node: Node) -> None:
        """Raise ``RefusedError`` if the peer may not send to ``node`` now.

        ``node.add_inlet`` must follow without an ``await``.
        """
        node.check_inlet(self)
        if self._container.accounts is not None:
            self._container.accounts.check_node(node, node.inlets, "senders")

    def check_outlet(
        self, node: Node, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        """Raise ``RefusedError`` if the peer may not receive from ``node`` now.

        ``node.add_outlet`` must follow without an ``await``.
        """
        node.check_outlet(self, copying=copying, target=target, subscription_terms=subscription_terms)
        if self._container.accounts is not None:
            self._container.accounts.check_node(node, node.outlets, "receivers")

    def forget_unused(self, node: Node) -> None:
        """Remove a node that was made for a link of the peer, if it is unused.

        The link has ended, or was not attached.
        """
        self._container.forget_unused(node)

    def begin_transaction(self, on_rollback: Callable[[], object] | None = None) -> Transaction:
        """Begin a transaction of this peer.

        The caller must commit it or roll it back, in ``ended`` at the latest.

        Args:
            on_rollback: called first when it is rolled back.
        """
        container = self._container
        transaction = Transaction(
            self,
            container.clock,
            container.watermark,
            journal=container.journal,
            max_octets=container.max_unsettled_octets,
            on_rollback=on_rollback,
            permissions=self.guard if self.guard.asks else None,
        )
        if self._transactions is None:
            self._transactions = WeakSet()
        self._transactions.add(transaction)
        return transaction

    def transactions(self) -> Iterator[Transaction]:
        """See ``ConnectedPeer``."""
        found = () if self._transactions is None else tuple(self._transactions)
        return (each for each in found if not each.over)

    # -- unsettled deliveries ---------------------------------------------------------------

    def add_unsettled(self, size: int) -> None:
        """Count one more unsettled delivery, of ``size`` octets."""
        self.leases += 1
        self._retained += size
        if self.account is not None:
            self.account.add_unsettled(size)

    def is_full(self, outlet: Wakeable) -> bool:
        """Whether the peer must settle deliveries before it gets more.

        ``outlet`` is woken when the peer, or its identity, has settled some.
        """
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

    def remove_unsettled(self, size: int, count: int = 1) -> None:
        """Count deliveries as settled: ``size`` octets in all."""
        self.leases -= count
        self._retained -= size
        if self.account is not None:
            self.account.remove_unsettled(size, count)
        limit = self._container.max_unsettled_octets
        if self._waiting and (limit is None or self._retained < limit):
            self._on_room()
        if self.resting:
            self._container.check_idle(self)

    def stop_waiting(self, outlet: Wakeable) -> None:
        """Do not wake this outlet, which has ended."""
        self._waiting.pop(outlet, None)

    def _on_room(self) -> None:
        """Wake the waiting outlets; those that find no room wait again."""
        waiting, self._waiting = self._waiting, {}
        if waiting and self.open:
            self.start_soon(self._wake, waiting)

    async def _wake(self, waiting: Mapping[Wakeable, None]) -> None:
        """Wake outlets, after the outcomes that arrived in the same read are counted."""
        await trio.lowlevel.checkpoint()
        turns = current_turns()
        waking = each_in_turns(turns, iter(waiting), _wake)
        turns.run(lambda: take_steps(turns, waking))

    # -- the end ----------------------------------------------------------------------------

    def ended(self) -> None:
        """See ``ConnectedPeer.ended``."""
        self.guard.close()
        if self.account is not None:
            self.account.forget(self._on_room)
