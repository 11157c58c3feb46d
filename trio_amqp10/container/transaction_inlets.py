"""The messages of a transaction for one node: an inlet, empty until the commit.

A node that raises when it is given its messages
------------------------------------------------

A node that stores messages is given them before the transaction is decided, and if it raises, they are its sender's still. Any
other node is given them when the transaction has succeeded, which cannot be undone. So the messages that it has not taken,
and those that it took and did not answer, stay here, and it is called again, after a pause that grows to a minute, until it takes
them or is deleted. It may see a message twice, but it misses none.

Knows one node and arrivals; knows no other part of the transaction.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import AmqpError, Condition

from .nodes.arrival_answers import release

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from .nodes.clock import Clock
    from .nodes.node import Arrival, ContainerPeer, Node, Peer
    from .nodes.watermark import Watermark

__all__ = ["TransactionInlet", "attempt"]

_log = logging.getLogger("trio_amqp10.container")

_PAUSES: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0)
"""Seconds until a node that raised is called again; the last of them from then on."""


def attempt(call: Callable[[], object]) -> None:
    """Call a node, and log what it raises: neither its caller nor the other nodes are at fault."""
    try:
        call()
    except AmqpError as refusal:
        _log.debug("%r: %s", call, refusal)
    except Exception:
        _log.exception("%r failed", call)


class TransactionInlet:
    """The messages of one transaction for one node.

    Args:
        peer: that posted them.
        node: where they go.
        clock: by which a node that raised is called again.
        watermark: counts the octets of the messages that wait here.
        fail_transaction: rolls the transaction back, for a condition and a description.

    Attributes:
        peer: that posted them.
        pair: names the inlet.
        octets: of the messages that wait.
    """

    __slots__ = (
        "_clock",
        "_committed",
        "_fail_transaction",
        "_failures",
        "_gone",
        "_node",
        "_open",
        "_retry",
        "_taken",
        "_waiting",
        "_watermark",
        "octets",
        "pair",
        "peer",
    )

    def __init__(
        self,
        peer: Peer,
        node: Node,
        clock: Clock,
        watermark: Watermark,
        fail_transaction: Callable[[str, str], object],
    ) -> None:
        self.peer: Peer = peer
        self.pair: object = self
        self.octets: int = 0
        self._node = node
        self._clock = clock
        self._watermark = watermark
        self._fail_transaction = fail_transaction
        self._open = self._committed = self._gone = False
        self._waiting: deque[tuple[Arrival, int]] = deque()
        self._taken: deque[tuple[Arrival, int]] = deque()
        """Those that the node has, from the first that it has not answered."""
        self._failures = 0
        self._retry = inf
        """When a node that raised is called again, on the clock."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def arrivals(self) -> list[tuple[Arrival, int]]:
        """The messages that wait, each with its octets, in order."""
        return list(self._waiting)

    def hold(self, arrival: Arrival, size: int) -> None:
        """One more."""
        self._waiting.append((arrival, size))
        self._weigh(size)

    def _weigh(self, size: int) -> None:
        self.octets += size
        self._watermark.add(size)

    def _next(self) -> tuple[Arrival, int]:
        arrival, size = self._waiting.popleft()
        self.octets -= size
        self._watermark.remove(size)
        return arrival, size

    # -- what the node calls ----------------------------------------------------------------

    def take(self) -> Arrival | None:
        if self._open and self._waiting:
            taken = self._taken
            while taken and taken[0][0].state is not None:
                taken.popleft()
            taken.append(self._next())
            return taken[-1][0]
        if self._committed and not self._waiting:
            self._node.remove_inlet(self)
        return None

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,  # noqa: ARG002
        info: Mapping[Any, Any] | None = None,  # noqa: ARG002
    ) -> None:
        """The node is gone, or has failed, or wants none of this: then it has refused what it took last."""
        self._gone = self._gone or condition == Condition.RESOURCE_DELETED
        if not self._committed:
            # What was accepted for it can have no other outcome (4.4.4).
            self._fail_transaction(Condition.TRANSACTION_ROLLBACK, f"{self._node.address!r} is gone")
        elif self._gone:
            self._release()
        else:
            self._open = False  # it may be in the middle of taking
            self._call_again(failed=condition == Condition.INTERNAL_ERROR)

    # -- the end ----------------------------------------------------------------------------

    def open(self) -> None:
        """The node may take what is here."""
        self._open = True

    def rollback(self) -> None:
        """Drop all of it."""
        while self._waiting:
            self._next()
        attempt(partial(self._node.remove_inlet, self))

    def commit(self) -> None:
        """What is here is the node's, sooner or later."""
        self._open = self._committed = True
        if self._gone:
            self._release()
        elif self._waiting:
            self._give()
        else:
            self._node.remove_inlet(self)

    def _release(self) -> None:
        """The node was deleted when nothing could be undone any more: its messages are gone with it, as all that it held."""
        if self._waiting:
            _log.warning("%r is deleted, and %d messages of a transaction for it", self._node, len(self))
        while self._waiting:
            release(self._next()[0])

    # -- a node that raises -----------------------------------------------------------------

    def _give(self) -> None:
        self._taken.clear()
        self._open = True
        try:
            if self not in self._node.inlets:
                self._node.add_inlet(self)
            self._node.on_arrivals(self)
        except Exception:
            _log.exception("%r failed on the messages of a transaction, and is called again", self._node)
            self._call_again(failed=True)

    def _call_again(self, *, failed: bool) -> None:
        """The node is called later; if it has ``failed``, what it has taken and not answered is here again."""
        while failed and self._taken:
            arrival, size = self._taken.pop()
            if arrival.state is None:
                self._waiting.appendleft((arrival, size))
                self._weigh(size)
        if self._waiting and self._retry == inf:
            self._retry = self._clock.now() + _PAUSES[min(self._failures, len(_PAUSES) - 1)]
            self._failures += 1
            assert self._clock.call_at is not None
            self._clock.call_at(self._retry, self._on_time)

    def _on_time(self) -> None:
        self._retry = inf
        container = self._node.container
        if not self._gone and self._waiting:
            if container is not None and self._failures == 2:
                self.peer = _Absent(self.peer, container)
            self._give()


class _Absent:
    """A peer that may be gone by now: what a node starts for it runs with the container."""

    __slots__ = ("_house", "container_id", "identity")

    def __init__(self, peer: Peer, container: ContainerPeer) -> None:
        self.container_id = peer.container_id
        self.identity = peer.identity
        self._house = container

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        self._house.start_soon(function, *args)
