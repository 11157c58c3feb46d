"""The parts of a connected peer that all dialects share: tasks, rights, quotas.

A dialect subclasses ``ConnectedPeerBase``, adds who the peer is and how its connection is closed, and has ``Container.enter`` and
``Container.leave`` called.

Knows accounts and permissions; knows no link and no octet of any dialect.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

import trio

from trio_amqp10.net.read_turns import current_turns

from .background_tasks import TaskRunner
from .nodes.message_origin import user_of
from .nodes.turns import each_in_turns, take_steps
from .transactions import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .connected_peer import LinkView, ServingContainer
    from .nodes.node import Node, Owner, SubscriptionTerms
    from .nodes.turns import Turns
    from .nodes.watermark import Watermark
    from .rights.guard import Guard
    from .rights.quotas import Account
    from .rights.rights_holder import SolePolicy

__all__ = ["ConnectedPeerBase", "Wakeable"]

_log = logging.getLogger("trio_amqp10.container")


class Wakeable(Protocol):
    """An outlet that waits for room."""

    def wake(self) -> None:
        """There may be room."""
        ...


def _wake(outlet: Wakeable) -> None:
    outlet.wake()


class ConnectedPeerBase(TaskRunner):
    """The parts of a ``ConnectedPeer`` that are the same in each dialect: tasks, permissions, and what the peer has unsettled.

    A subclass adds ``container_id``, ``identity``, ``closed``, ``close``, ``statistics`` and ``links``, and what else its dialect can tell.

    Args:
        container: the container that serves it.
    """

    __slots__ = ("_container", "_retained", "_waiting", "account", "guard", "number", "resting")

    leases: int

    def __init__(self, container: ServingContainer) -> None:
        super().__init__(container)
        self._container = container
        self.number: int = 0
        self.resting: bool = container.resting
        self.account: Account | None = None
        self.guard: Guard = container.guard_for(self)
        self._retained = 0
        self._waiting: dict[Wakeable, None] = {}

    def serves(self, container: ServingContainer) -> bool:
        """Whether it is this container that the peer is connected to."""
        return self._container is container

    @property
    def owner(self) -> Owner:
        """Whose the things are that outlast the connection."""
        return self.container_id, user_of(self.identity)

    @property
    def turns(self) -> Turns:
        """The turns that long work takes."""
        return self._container.clock.turns()

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

    def check_outlet(
        self, node: Node, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        """Raise ``RefusedError`` if the peer may not receive from ``node`` now; ``node.add_outlet`` follows without an await."""
        node.check_outlet(self, copying=copying, target=target, subscription_terms=subscription_terms)
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
            permissions=self.guard if self.guard.asks else None,
        )

    # -- what the peer owes us an answer for ------------------------------------------------

    def add_unsettled(self, size: int) -> None:
        """The peer was given one more delivery, of ``size`` octets, that waits for its outcome."""
        self.leases += 1
        self._retained += size
        if self.account is not None:
            self.account.add_unsettled(size)

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

    def remove_unsettled(self, size: int, count: int = 1) -> None:
        """So many deliveries, of ``size`` octets together, have their outcomes."""
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
        turns = current_turns()
        waking = each_in_turns(turns, iter(waiting), _wake)
        turns.run(lambda: take_steps(turns, waking))

    # -- the end ----------------------------------------------------------------------------

    def ended(self) -> None:
        """As for ``ConnectedPeer``."""
        self.guard.close()
        if self.account is not None:
            self.account.forget(self._on_room)
