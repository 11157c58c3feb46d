"""The peers connected to a container: admission, tasks, waiting for the end.

Knows connected peers by their interface; knows no node and no dialect.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import trio

from trio_amqp10.peer.statistics import TOTALS

from .rights.sole_connection import SoleConnections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .background_tasks import TaskRunner
    from .connected_peer import ConnectedPeer
    from .internal_peer import NodesPeer
    from .nodes.node import RefusedError
    from .rights.quotas import Accounts
    from .timers import Timers

__all__ = ["Connections"]


class Connections:
    """All peers of one container.

    Args:
        accounts: what each identity has; None without quotas.

    Attributes:
        peers: those that have entered and are not forgotten, oldest first.
        runners: where tasks may run: the connections that last, and ``serve``.
        past: totals of the peers that are forgotten.
        resting: whether the container finishes.
    """

    def __init__(self, accounts: Accounts | None) -> None:
        self.peers: dict[ConnectedPeer, None] = {}
        self.runners: dict[TaskRunner | ConnectedPeer, None] = {}
        self.past: Counter[str] = Counter()
        self.resting: bool = False
        self._accounts = accounts
        self._sole = SoleConnections()
        self._numbers = itertools.count(1)
        self._idle = trio.lowlevel.ParkingLot()

    def admit(self, peer: ConnectedPeer) -> RefusedError | None:
        """Count this peer, or return why it is refused; the second time for one peer does nothing."""
        refusal = self._sole.admit(peer)
        if refusal is None and self._accounts is not None:
            refusal = self._accounts.admit(peer)
            if refusal is not None:
                self._sole.discard(peer)
        return refusal

    def enter(self, peer: ConnectedPeer) -> None:
        """It was admitted, and is served from now on."""
        peer.number = next(self._numbers)
        peer.resting = self.resting
        if self._accounts is not None:
            peer.account = self._accounts.of(peer)
        self.peers[peer] = None

    def join(
        self, runner: TaskRunner | ConnectedPeer, nursery: trio.Nursery, nodes_peer: NodesPeer, timers: Timers
    ) -> None:
        """Tasks of the container may run here from now on."""
        runner.begin(nursery)
        self.runners[runner] = None
        nodes_peer.welcome(runner)
        timers.join(runner)

    def part(self, runner: TaskRunner | ConnectedPeer, timers: Timers) -> None:
        """No new tasks of the container run here."""
        runner.open = False
        del self.runners[runner]
        timers.leave(runner)

    def forget(self, peer: ConnectedPeer) -> None:
        """Its connection and its tasks are over."""
        if peer not in self.peers:
            return
        del self.peers[peer]
        statistics = peer.statistics()
        self.past.update({name: statistics[name] for name in TOTALS if name in statistics})
        self._sole.discard(peer)
        if self._accounts is not None:
            self._accounts.discard(peer)

    def check_idle(self, runner: TaskRunner | ConnectedPeer) -> None:
        """Something has come to its end here."""
        if not runner.working and not runner.open:
            self.forget(runner)  # type: ignore[arg-type]
        if self.resting and not runner.leases and not runner.working:
            self._idle.unpark_all()

    def rest(self) -> None:
        """Take nothing new from peers, and give them nothing new."""
        self.resting = True
        for peer in self.peers:
            peer.resting = True

    async def until_idle(self) -> None:
        """Wait until no task works and no delivery waits for its outcome. Cancelled: nothing has changed."""
        while any(each.leases or each.working for each in self):
            await self._idle.park()

    @property
    def working(self) -> int:
        """Tasks that run."""
        return sum(each.working for each in self)

    def __iter__(self) -> Iterator[TaskRunner | ConnectedPeer]:
        return iter({*self.peers, *self.runners})

    def __len__(self) -> int:
        return len(self.peers)
