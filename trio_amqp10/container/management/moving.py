"""Move messages from a queue to other nodes, each exactly once.

Some messages at a time are leased, and one transaction posts them and accepts their leases (``Transaction``). With a store
that is one commit, which deletes each message at its source and writes it at its target. So at any moment, also after the loss
of the process, each message is at exactly one of them. Between the transactions other tasks run.

Knows queues, nodes and transactions; asks for no permission.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.broker.endpoints import PublishedArrival
from trio_amqp10.broker.nodes.entry import BEFORE_ALL
from trio_amqp10.broker.nodes.node import RefusedError, SubscriptionTerms
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.broker.nodes.sorted_blocks import all_after
from trio_amqp10.broker.transactions import LeaseAnswer, Transaction
from trio_amqp10.core.errors import Condition

from .errors import ManagementError
from .pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.broker.nodes.consumers import QueueConsumer
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.form_registry import Wants
    from trio_amqp10.broker.nodes.node import ContainerPeer, Lease, Node

    from .managed_container import ManagedContainer

_MOST: Final = 100
"""Messages in one transaction."""
_MOST_OCTETS: Final = 1024 * 1024
"""Octets in one transaction; the message that exceeds it is included."""


class Taker:
    """An outlet that keeps what it is given: for ``Queue.pull_next``.

    Args:
        peer: the container.
        wants: tests whether a message is taken; None for all.

    Attributes:
        taken: the messages, with their leases.
    """

    copying = False
    target = None
    max_message_size = None
    closed = False
    final = True
    sender = None

    def __init__(self, peer: ContainerPeer, wants: Wants | None = None) -> None:
        self.peer = peer
        self.key: object = self
        self.pair: object = self
        self.wants = wants
        self.subscription_terms: SubscriptionTerms = SubscriptionTerms(name="")
        self.taken: list[tuple[Content, Lease]] = []

    def ready(self) -> bool:
        return True

    def give(self, content: Content | Any, lease: Lease | None, tag: bytes | None = None) -> None:  # noqa: ARG002
        assert lease is not None
        self.taken.append((content, lease))

    def outgrow(self, size: int) -> None:
        """Do nothing: it takes a message of any size."""

    def rest(self, more: int) -> None:
        """Do nothing: it asks for each message."""

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        """Do nothing: it is no consumer of the queue."""

    async def flush(self) -> None:
        """Do nothing: each lease is answered at once."""

    async def aclose(self) -> None:
        """Do nothing: it is no consumer of the queue."""


class Transfer:
    """One move of messages from a queue.

    Args:
        container: the container.
        source: the queue.
        route: returns the node that a message goes to, or None if it stays; called again for the same message.
        wants: tests whether a message is moved at all; None for all.

    Attributes:
        moved: how many messages went to each address.
    """

    def __init__(
        self,
        container: ManagedContainer,
        source: Queue,
        route: Callable[[Content], Node | None],
        wants: Wants | None = None,
    ) -> None:
        self.moved: Counter[str] = Counter()
        self._container = container
        self._source = source
        self._route = route
        self._wants = wants
        self._taker = Taker(container.nodes_peer, self._takes)

    def _takes(self, content: Content, origin: str | None) -> bool:
        return (self._wants is None or self._wants(content, origin)) and self._route(content) is not None

    async def run(self, most: int) -> int:
        """Move at most so many messages; return how many were moved.

        Raises:
            ManagementError: ``"refused"``: a node does not take a message; ``moved`` has the number of those that were moved
                before.

        Cancelled: each message is at its source or at its target.
        """
        journal, moved = self._container.journal, 0
        with self._source.pulling(self._taker) as consumer:
            while moved < most:
                if journal is not None and journal.crowded:
                    await journal.until_safe()
                await self._take_some(consumer, most - moved)
                taken, self._taker.taken = self._taker.taken, []
                if not taken:
                    break
                moved += await self._post(taken)
        return moved

    async def _take_some(self, consumer: QueueConsumer, most: int) -> None:
        """Lease some messages for one transaction; none if the work is done.

        Cancelled: all of them are back.
        """
        taken, pace = self._taker.taken, Pace()
        octets = 0
        while len(taken) < min(most, _MOST) and octets < _MOST_OCTETS:
            if self._source.pull_next(consumer, pace.is_over):
                octets += taken[-1][0].size
                if pace.is_over():
                    break
            elif taken or consumer.search is None or not consumer.search.pauses:
                break
            else:
                await pace.pause()
        try:
            await trio.lowlevel.checkpoint()
        except BaseException:
            for _, lease in taken:
                lease.released()
            taken.clear()
            raise

    async def _post(self, taken: list[tuple[Content, Lease]]) -> int:
        """Move these messages in one transaction; those that find no room go back."""
        container = self._container
        transaction = Transaction(
            container.nodes_peer, container.clock, container.watermark, journal=container.journal
        )
        went: Counter[str] = Counter()
        left = deque(taken)
        try:
            while left:
                content, lease = left[0]
                node = self._route(content)
                if node is None:
                    raise RefusedError(
                        Condition.NOT_FOUND, "the target is deleted: the messages stay in the source"
                    )
                if _is_full(node, went[node.address]):
                    if went:
                        break
                    raise RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, f"{node.address!r} is full")
                left.popleft()
                transaction.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=lease.released))
                transaction.post(node, PublishedArrival(content, _ignore), content.size)
                went[node.address] += 1
        except RefusedError as refusal:
            transaction.refuse(refusal)
        for _, lease in left:
            lease.released()
        done = trio.Event()
        transaction.commit(done.set)
        await done.wait()
        if transaction.failure is not None:
            raise ManagementError(
                "refused", f"{transaction.failure[1]}; {self.moved.total()} messages were moved before"
            )
        self.moved += went
        return went.total()


class Origins:
    """The queues where the messages of a queue died.

    Args:
        container: the container.
        queue: the queue with the dead letters.
    """

    def __init__(self, container: ManagedContainer, queue: Queue) -> None:
        self._container = container
        self._queue = queue
        self._known: dict[str, Queue | None] = {}
        self._only: Queue | None = None
        self._closed = False

    def route(self, content: Content) -> Queue | None:
        """Return the queue where a message died last; None if it must stay."""
        name = content.died_in
        if name is None:
            return None
        if name not in self._known:
            if self._closed:
                return None
            self._known[name] = self.find(name)
        found = self._known[name]
        if self._only is not None and found is not self._only:
            return None
        return found if found is not None and self._container.nodes.get(found.address) is found else None

    def find(self, name: str) -> Queue | None:
        """Return the queue of a name or an address, if dead letters can go back to it."""
        broker = self._container.broker
        node = self._container.nodes.get(name)
        if node is None and broker is not None:
            node = broker.find_node(name)
        return node if isinstance(node, Queue) and node is not self._queue else None

    async def find_all(self) -> list[str]:
        """Return the addresses of all of them. Cancelled: nothing has changed."""
        pace, cursor = Pace(), BEFORE_ALL
        while True:
            for entry in all_after(self._queue.held.available.all_blocks, cursor):
                cursor = entry.order
                self.route(entry.content)
                if pace.is_over():
                    break
            else:
                if not self._queue.page_in_now():
                    return [queue.address for queue in self._known.values() if queue is not None]
            await pace.pause()

    def keep_to(self, only: Queue) -> None:
        """Route to no other queue."""
        self._only = only

    def close(self) -> None:
        """Know no further queues: permissions were asked for those that are known."""
        self._closed = True


def _is_full(node: Node, more: int) -> bool:
    """Whether a queue would make a sender wait, after so many more messages."""
    return (
        isinstance(node, Queue)
        and node.policy.is_bounded
        and node.policy.overflow == "wait"
        and node.held.is_full(more)
    )


def _ignore(refusal: RefusedError | None) -> None:
    """Do nothing: the transaction has the result."""
