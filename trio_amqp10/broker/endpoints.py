"""Arrivals, outlets and leases that several dialects share.

A dialect without credit gives a consumer a fixed number of messages before the first is answered: a ``WindowOutlet``. Its
``GivenLease`` counts as unsettled for the peer until it is answered. A message that a peer publishes is a
``PublishedArrival``, and a ``Publisher`` has an inlet for each node that the peer publishes to.

Knows nodes and connected peers; knows no octet of any dialect.
"""

# Not every answer and every hook needs all its arguments.
# ruff: noqa: ARG002

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from trio_amqp10.core.errors import Condition, LocalProtocolError

from .nodes.content import Content
from .nodes.form_registry import content_of
from .nodes.node import Lease, NotTakenError, RefusedError, SubscriptionTerms
from .nodes.refusals import OutletKey
from .nodes.relay import Feed
from .nodes.turns import each_in_turns, take_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .connected_peer_base import ConnectedPeerBase
    from .nodes.form_registry import Wants
    from .nodes.node import Node

_log = logging.getLogger("trio_amqp10.container")

State = Literal["accepted", "rejected", "released", "modified"]


class PublishedArrival:
    """A published message whose peer waits for the answer.

    Args:
        content: the message.
        on_answer: called once: with None if it was accepted, otherwise with the refusal.

    Attributes:
        settled: whether it was answered.
        state: the answer, or None.
    """

    __slots__ = ("_on_answer", "content", "settled", "state")

    tag = b""

    def __init__(self, content: Content, on_answer: Callable[[RefusedError | None], object]) -> None:
        self.content: Final = content
        self.settled: bool = False
        self.state: State | None = None
        self._on_answer = on_answer

    @property
    def message(self) -> Any:
        return self.content.as_message()

    @property
    def refused(self) -> bool:
        """Whether it was answered, and not accepted."""
        return self.state is not None and self.state != "accepted"

    def record_acceptance(self) -> None:
        """Do nothing: a peer without resumable links does not ask after a restart."""

    def accept(self) -> None:
        self._answer("accepted", None)

    def reject(self, condition: str = Condition.INTERNAL_ERROR, description: str | None = None) -> None:
        self._answer("rejected", RefusedError(condition, description or "rejected"))

    def release(self) -> None:
        self._answer(
            "released", RefusedError(Condition.PRECONDITION_FAILED, "released: it was not processed")
        )

    def modify(
        self,
        *,
        delivery_failed: bool = False,
        undeliverable_here: bool = False,
        annotations: dict[Any, Any] | None = None,
    ) -> None:
        self._answer(
            "modified", RefusedError(Condition.PRECONDITION_FAILED, "modified: it was not processed")
        )

    def keep(self) -> bool:
        """Return False: the peer must be answered."""
        return False

    def _answer(self, state: State, refusal: RefusedError | None) -> None:
        if self.settled:
            raise LocalProtocolError(f"this message was answered already: {self.state}")
        self.settled = True
        self.state = state
        self.answered(refusal)

    def answered(self, refusal: RefusedError | None) -> None:
        """Report the answer; overridden by a subclass that knows its publisher."""
        self._on_answer(refusal)


class Publisher:
    """The inlets of one peer, one for each node that it publishes to.

    A node that is made on first use stays as long as this object. The caller checks permissions (``peer.guard``) before.

    Args:
        peer: the peer that publishes.
        find: returns the node of an address, or raises ``RefusedError``: ``Container.find``.
        on_taken: called when a node has taken a message: there may be room.

    Attributes:
        inlets: the inlets by address.
        counts: the number of messages published to each address.
    """

    def __init__(
        self, peer: ConnectedPeerBase, find: Callable[[str], Node], on_taken: Callable[[], object]
    ) -> None:
        self.inlets: dict[str, Feed] = {}
        self.counts: dict[str, int] = {}
        self._peer = peer
        self._find = find
        self._on_taken = on_taken
        self._nodes: dict[str, Node] = {}

    @property
    def waiting(self) -> int:
        """The number of messages that no node has taken yet.

        A dialect without credit must not read more while there are any.
        """
        return sum(map(len, self.inlets.values()))

    def publish(self, address: str, arrival: PublishedArrival) -> None:
        """Give a message to the node of this address, which will answer it.

        Raises:
            RefusedError: there is no such node, it takes no messages, or a quota has been reached.
        """
        inlet, node = self.inlets.get(address), self._nodes.get(address)
        if inlet is None or node is None:
            inlet, node = self._open(address)
        self.counts[address] += 1
        inlet.push(arrival)
        node.on_arrivals(inlet)

    def _open(self, address: str) -> tuple[Feed, Node]:
        node = self._find(address)
        try:
            self._peer.check_link()
            self._peer.check_inlet(node)
        except RefusedError:
            self._peer.forget_unused(node)
            raise
        inlet = Feed(self._peer, self._on_taken, partial(self._on_gone, address))
        self.inlets[address], self._nodes[address] = inlet, node
        self.counts[address] = 0
        node.add_inlet(inlet)
        return inlet, node

    def _on_gone(self, address: str) -> None:
        """Forget an inlet that its node has closed; ``Feed.close`` releases its messages."""
        inlet, node = self.inlets.pop(address, None), self._nodes.pop(address, None)
        self.counts.pop(address, None)
        if inlet is not None and node is not None:
            node.remove_inlet(inlet)

    def close(self) -> None:
        """Remove all inlets."""
        for address, node in list(self._nodes.items()):
            self._on_gone(address)
            self._peer.forget_unused(node)


class GivenLease(Lease):
    """A lease that counts as unsettled for a peer until it is answered.

    Each answer is given once. An exception of the node, ``RefusedError`` if it ``may_refuse_outcomes``, is raised after all is
    counted.

    Args:
        outlet: the outlet of the message.
        lease: the lease of the node; None if the node needs no answer.
        size: octets of the message.
    """

    __slots__ = ("_lease", "_size", "outlet")

    def __init__(self, outlet: WindowOutlet, lease: Lease | None, size: int) -> None:
        self.outlet: WindowOutlet = outlet
        self._lease = lease
        self._size = size
        outlet.unsettled[self] = None
        outlet.peer.add_unsettled(size)

    @property
    def record(self) -> int | str | None:
        return None if self._lease is None else self._lease.record

    @property
    def redelivered(self) -> bool:
        return self._lease is not None and self._lease.redelivered

    def delete_in_commit(self) -> Callable[[], object] | None:
        return None if self._lease is None else self._lease.delete_in_commit()

    def accepted(self) -> None:  # As ``_answer``, without the calls: this is by far the most frequent one.
        outlet, lease = self.outlet, self._lease
        del outlet.unsettled[self]
        try:
            if lease is not None:
                lease.accepted()
        finally:
            outlet.peer.remove_unsettled(self._size)
            outlet.wake()

    def rejected(
        self, condition: str | None, description: str | None, info: Mapping[Any, Any] | None = None
    ) -> None:
        self._answer(lambda lease: lease.rejected(condition, description, info))

    def released(self) -> None:
        self._answer(lambda lease: lease.released())

    def modified(
        self, *, failed: bool, undeliverable_here: bool, annotations: Mapping[Any, Any] | None
    ) -> None:
        self._answer(
            lambda lease: lease.modified(
                failed=failed, undeliverable_here=undeliverable_here, annotations=annotations
            )
        )

    def lost(self) -> None:
        self._answer(lambda lease: lease.lost())

    def withdraw(self) -> None:
        """Stop counting: the message was not sent, and the node's lease is unchanged."""
        del self.outlet.unsettled[self]
        self.outlet.peer.remove_unsettled(self._size)

    def _answer(self, answer: Callable[[Lease], object]) -> None:
        del self.outlet.unsettled[self]
        try:
            if self._lease is not None:
                answer(self._lease)
        finally:
            self.outlet.peer.remove_unsettled(self._size)
            self.outlet.wake()


def _lose(lease: GivenLease) -> None:
    if lease in lease.outlet.unsettled:  # It may have been answered in an earlier turn.
        lease.lost()


class WindowOutlet:
    """A consumer with a limited number of unsettled messages.

    Args:
        peer: the peer that receives.
        node: the node that it receives from.
        send: see ``deliver``. None for a subclass that overrides ``deliver``.
        on_closed: called when the node ends it, with condition and description; None for a subclass that overrides
            ``ended_by_node``.
        window: the number of messages; None for any number.
        wants: see ``Outlet``.
        copying: see ``Outlet``.
        subscription_terms: see ``Outlet``; None for a subscription that ends with the outlet.

    Attributes:
        unsettled: leases that were not answered yet, oldest first.
        closed: whether it has ended.
    """

    target: str | None = None
    max_message_size: int | None = None
    final = True
    sender: Any = None

    def __init__(
        self,
        peer: ConnectedPeerBase,
        node: Node,
        send: Callable[[Content, GivenLease], object] | None = None,
        on_closed: Callable[[str | None, str | None], object] | None = None,
        *,
        window: int | None,
        wants: Wants | None = None,
        copying: bool = False,
        subscription_terms: SubscriptionTerms | None = None,
    ) -> None:
        self.peer = peer
        self.key: OutletKey = OutletKey()
        self._own_key = self.key
        self.pair: object = self
        self.copying = copying
        self.wants = wants
        self.subscription_terms: SubscriptionTerms = (
            SubscriptionTerms(name=node.address) if subscription_terms is None else subscription_terms
        )
        self.unsettled: dict[GivenLease, None] = {}
        self.closed: bool = False
        self._node = node
        self._send = send
        self._on_closed = on_closed
        self._window = window
        self._attached = False
        self._giving = False

    def begin(self) -> None:
        """Receive from now on; ``ConnectedPeerBase.check_outlet`` must have passed."""
        self._attached = True
        self._node.add_outlet(self)
        self.wake()

    def pull(self) -> bool:
        """Get one message now, if there is one; see ``Node.pull``.

        ``begin`` must not be called.
        """
        return self.ready() and self._node.pull(self)

    def end(self) -> None:
        """End the outlet; unanswered messages go back to the node."""
        self._detach()
        turns = self.peer.turns
        take_steps(turns, each_in_turns(turns, iter(list(self.unsettled)), _lose))

    def _detach(self) -> None:
        self.closed = True
        self.peer.stop_waiting(self)
        if self._attached:
            self._attached = False
            self._node.remove_outlet(self)
        self._own_key.end()

    def wake(self) -> None:
        """Ask the node for messages: there may be room."""
        if (
            self._attached and not self._giving
        ):  # While the node gives a message, it calls ``ready`` after it.
            self._node.on_demand(self)

    def ready(self) -> bool:
        if (
            self.closed
            or self._giving
            or (self.peer.resting and not self._node.holds_replies)
            or (self._window is not None and len(self.unsettled) >= self._window)
        ):
            return False
        return not self.peer.is_full(self)

    def give(self, content: Content | Any, lease: Lease | None, tag: bytes | None = None) -> None:
        if not isinstance(content, Content):  # A node of AMQP 1.0 gives a ``Message``.
            content = content_of(content.message_format, content.to_payload())
        given = GivenLease(self, lease, content.size)
        self._giving = True
        try:
            self.deliver(content, given)
        except NotTakenError as refusal:
            given.withdraw()
            if self._node.passes_over:
                raise
            _log.warning("%r ends: the peer cannot take a message of %r: %s", self, self._node, refusal)
            if lease is not None:
                self.close(Condition.RESOURCE_LIMIT_EXCEEDED.value, str(refusal))
                lease.released()
        finally:
            self._giving = False

    def deliver(self, content: Content, lease: GivenLease) -> object:
        """Send a message; its lease must be answered once, or ``end`` gives it back.

        Raises:
            NotTakenError: the peer cannot take this message; nothing was sent.
        """
        assert self._send is not None
        return self._send(content, lease)

    def ended_by_node(self, condition: str | None, description: str | None) -> None:
        """React to the end of the outlet by the node."""
        if self._on_closed is not None:
            self._on_closed(condition, description)

    def outgrow(self, size: int) -> None:
        """Never called: there is no ``max_message_size``."""

    def rest(self, more: int) -> None:
        """Do nothing: without credit, the number of further messages is not sent."""

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        if not self.closed:
            self._detach()
            self.ended_by_node(condition, description)

    async def flush(self) -> None:
        """Return at once: the peer may answer at any time. Cancelled: nothing has changed."""

    async def aclose(self) -> None:
        """Close the outlet without waiting. Cancelled: it is closed."""
        self.close()
