"""The peers that are connected to a container: who is let in, whose tasks run where, and when everything is done.

Knows connected peers by their interface; knows no node and no dialect.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import trio

from trio_amqp10.peer.statistics import TOTALS

from .rights.sole import SoleConnections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .connected import ConnectedPeer
    from .host import Host
    from .nodes.node import RefusedError
    from .rights.quotas import Accounts
    from .timers import Timers
    from .within import Household

__all__ = ["Connections"]


class Connections:
    """All peers of one container.

    Args:
        accounts: what each identity has; None without quotas.

    Attributes:
        peers: those that have entered and are not forgotten, oldest first.
        hosts: where tasks may run: the peers whose connection lasts, and ``serve``.
        past: totals of those that are forgotten.
        resting: whether the container finishes.
    """

    def __init__(self, accounts: Accounts | None) -> None:
        self.peers: dict[ConnectedPeer, None] = {}
        self.hosts: dict[Host | ConnectedPeer, None] = {}
        self.past: Counter[str] = Counter()
        self.resting = False
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
        self, host: Host | ConnectedPeer, nursery: trio.Nursery, house: Household, timers: Timers
    ) -> None:
        """Tasks of the container may run here from now on."""
        host.begin(nursery)
        self.hosts[host] = None
        house.welcome(host)
        timers.join(host)

    def part(self, host: Host | ConnectedPeer, timers: Timers) -> None:
        """No new tasks of the container run here."""
        host.open = False
        del self.hosts[host]
        timers.leave(host)

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

    def check_idle(self, host: Host | ConnectedPeer) -> None:
        """Something has come to its end here."""
        if not host.working and not host.open:
            self.forget(host)  # type: ignore[arg-type]
        if self.resting and not host.leases and not host.working:
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

    def __iter__(self) -> Iterator[Host | ConnectedPeer]:
        return iter({*self.peers, *self.hosts})

    def __len__(self) -> int:
        return len(self.peers)
