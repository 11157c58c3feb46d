"""The messages of a transaction for one node: an inlet, empty until the commit.

A node that raises when it gets its messages
--------------------------------------------

A node that ``joins_commits`` gets them before the transaction is decided; if it raises, the transaction is rolled back, and
the messages are still their sender's. Any other node gets them when the transaction has succeeded, which cannot be undone. So
the messages that it has not taken, and those that it took and did not answer, stay here. It is called again, after a pause that
grows to a minute, until it takes them or is deleted. It may get a message twice, but it misses none.

Knows one node and arrivals; knows no other part of the transaction.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.errors import AmqpError, Condition

from .nodes.arrival_answers import release

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from .nodes.clock import Clock
    from .nodes.node import Arrival, ContainerPeer, Node, Peer
    from .nodes.watermark import Watermark

_log = logging.getLogger("trio_amqp10.container")

_PAUSES: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0)
"""Seconds until a node that raised is called again; the last one repeats."""


def attempt(call: Callable[[], object]) -> None:
    """Call a node and log its exception, which must not affect other nodes."""
    try:
        call()
    except AmqpError as refusal:
        _log.debug("%r: %s", call, refusal)
    except Exception:
        _log.exception("%r failed", call)


class TransactionInlet:
    """The messages of one transaction for one node.

    Args:
        peer: the peer that posted them.
        node: the node that will get them.
        clock: schedules the next call of a node that raised.
        watermark: counts the octets of the messages that wait here.
        fail_transaction: rolls the transaction back, for a condition and a description.

    Attributes:
        peer: as given.
        pair: identifies the inlet.
        is_committed: whether the transaction has succeeded.
        octets: the size of the messages that wait.
    """

    __slots__ = (
        "_clock",
        "_fail_transaction",
        "_failures",
        "_gone",
        "_node",
        "_open",
        "_retry",
        "_taken",
        "_waiting",
        "_watermark",
        "is_committed",
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
        self.is_committed: bool = False
        self._open = self._gone = False
        self._waiting: deque[tuple[Arrival, int]] = deque()
        self._taken: deque[tuple[Arrival, int]] = deque()
        """Messages that the node has taken, from the first unanswered one on."""
        self._failures = 0
        self._retry = inf
        """When a node that raised is called again, on the clock; infinity for never."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def arrivals(self) -> list[tuple[Arrival, int]]:
        """The messages that wait, each with its octets, in order."""
        return list(self._waiting)

    def hold(self, arrival: Arrival, size: int) -> None:
        """Add a message."""
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

    # -- as an inlet ------------------------------------------------------------------------

    def take(self) -> Arrival | None:
        if self._open and self._waiting:
            taken = self._taken
            while taken and taken[0][0].state is not None:
                taken.popleft()
            taken.append(self._next())
            return taken[-1][0]
        if self.is_committed and not self._waiting:
            self._node.remove_inlet(self)
        return None

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,  # noqa: ARG002
        info: Mapping[Any, Any] | None = None,  # noqa: ARG002
    ) -> None:
        """React to a node that is deleted, has failed, or takes no more messages.

        Before this call, the node has refused the messages that it took last.
        """
        self._gone = self._gone or condition == Condition.RESOURCE_DELETED
        if not self.is_committed:
            # The messages have provisional outcomes of accepted, which the commit cannot change (4.4.4).
            self._fail_transaction(Condition.TRANSACTION_ROLLBACK, f"{self._node.address!r} is gone")
        elif self._gone:
            self._release()
        else:
            self._open = (
                False  # The node may be taking messages now: it must get no more until it is called again.
            )
            self._call_again(failed=condition == Condition.INTERNAL_ERROR)

    # -- the end ----------------------------------------------------------------------------

    def open(self) -> None:
        """Let the node take the messages."""
        self._open = True

    def rollback(self) -> None:
        """Drop all messages."""
        while self._waiting:
            self._next()
        attempt(partial(self._node.remove_inlet, self))

    def commit(self) -> None:
        """Give the messages to the node, now or later."""
        self._open = self.is_committed = True
        if self._gone:
            self._release()
        elif self._waiting:
            self._give()
        else:
            self._node.remove_inlet(self)

    def _release(self) -> None:
        """Release the messages of a deleted node.

        The commit cannot be undone any more, so they are lost with the node, like all that it held.
        """
        if self._waiting:
            _log.warning(
                "%r was deleted, so %d messages of a transaction for it are lost", self._node, len(self)
            )
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
        """Call the node later.

        If it has ``failed``, it gets the messages again that it has taken and not answered.
        """
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
            # From the second failure on, the node is given a stand-in, so that the peer itself can be forgotten.
            if container is not None and self._failures == 2:
                self.peer = _Absent(self.peer, container)
            self._give()


class _Absent:
    """A peer that may have disconnected: its tasks run with the container."""

    __slots__ = ("_container", "container_id", "identity")

    def __init__(self, peer: Peer, container: ContainerPeer) -> None:
        self.container_id = peer.container_id
        self.identity = peer.identity
        self._container = container

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        self._container.start_soon(function, *args)
