"""The peers connected to a container: admission, tasks, and waiting for the end.

Knows connected peers by their interface, and the sole connections and totals of AMQP 1.0; knows no node.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import trio

from trio_amqp10.amqp10.peer.statistics import totals_of
from trio_amqp10.amqp10.server.sole_connection import SoleConnections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio_amqp10.broker.background_tasks import TaskRunner
    from trio_amqp10.broker.nodes.node import RefusedError
    from trio_amqp10.broker.peer_interfaces import ConnectedPeer
    from trio_amqp10.broker.rights.quotas import Accounts
    from trio_amqp10.broker.timers import Timers

    from .internal_peer import NodesPeer


class Connections:
    """All peers of one container.

    Args:
        accounts: the usage of each identity; None without quotas.

    Attributes:
        peers: the peers that have entered and are not forgotten, oldest first.
        runners: where tasks of the container may run: open connections, and ``serve``.
        entered: how many peers have entered so far.
        past: totals of the peers that are forgotten.
        resting: whether the container finishes, so that no new work begins.
    """

    def __init__(self, accounts: Accounts | None) -> None:
        self.peers: dict[ConnectedPeer, None] = {}
        self.runners: dict[TaskRunner | ConnectedPeer, None] = {}
        self.entered: int = 0
        self.past: Counter[str] = Counter()
        self.resting: bool = False
        self._accounts = accounts
        self._sole = SoleConnections()
        self._idle = trio.lowlevel.ParkingLot()

    def admit(self, peer: ConnectedPeer) -> RefusedError | None:
        """Count this peer against quotas and sole connections, or return a refusal.

        A second call for the same peer does nothing.
        """
        refusal = self._sole.admit(peer)
        if refusal is None and self._accounts is not None:
            refusal = self._accounts.admit(peer)
            if refusal is not None:
                self._sole.discard(peer)
        return refusal

    def enter(self, peer: ConnectedPeer, now: float) -> None:
        """Number and list a peer that was admitted; ``now`` is in seconds since 1970."""
        self.entered += 1
        peer.number = self.entered
        peer.since = now
        peer.resting = self.resting
        if self._accounts is not None:
            peer.account = self._accounts.of(peer)
        self.peers[peer] = None

    def join(
        self, runner: TaskRunner | ConnectedPeer, nursery: trio.Nursery, nodes_peer: NodesPeer, timers: Timers
    ) -> None:
        """Let tasks of the container run in this nursery."""
        runner.begin(nursery)
        self.runners[runner] = None
        nodes_peer.welcome(runner)
        timers.join(runner)

    def part(self, runner: TaskRunner | ConnectedPeer, timers: Timers) -> None:
        """Start no more tasks of the container at this runner."""
        runner.open = False
        del self.runners[runner]
        timers.leave(runner)

    def forget(self, peer: ConnectedPeer) -> None:
        """Remove a peer whose connection and tasks are over, and keep its totals."""
        if peer not in self.peers:
            return
        del self.peers[peer]
        statistics = peer.statistics()
        self.past.update(totals_of(statistics))
        self._sole.discard(peer)
        if self._accounts is not None:
            self._accounts.discard(peer)

    def check_idle(self, runner: TaskRunner | ConnectedPeer) -> None:
        """Forget a closed runner without tasks; wake ``until_idle`` if it may be over."""
        if not runner.working and not runner.open:
            self.forget(runner)  # type: ignore[arg-type]
        if self.resting and not runner.leases and not runner.working:
            self._idle.unpark_all()

    def rest(self) -> None:
        """Take no new work from peers, and give them none."""
        self.resting = True
        for peer in self.peers:
            peer.resting = True

    async def until_idle(self) -> None:
        """Wait until no task works and no delivery waits for its outcome.

        Cancelled: nothing has changed.
        """
        while any(each.leases or each.working for each in self):
            await self._idle.park()

    @property
    def working(self) -> int:
        """The number of tasks that run."""
        return sum(each.working for each in self)

    def __iter__(self) -> Iterator[TaskRunner | ConnectedPeer]:
        return iter({*self.peers, *self.runners})

    def __len__(self) -> int:
        return len(self.peers)
