"""The interfaces between a container, its nodes, and the links to them.

All nodes have the same interface: queues, functions, consumers, producers, and a user's own. A node takes messages from
*inlets* (a peer sends to it) and gives messages to *outlets* (a peer receives from it). An adapter makes inlets and outlets
from the links of a protocol; a node does not know which protocol that is. So no type here belongs to one dialect: no link,
no credit, no delivery state.

All calls between nodes and links are synchronous, and happen in the task that reads from the peer: they must not block. An
exception of a node is logged and ends the link that called it. An exception of a link ends that link; the node and its other
links go on (``Node.attempt``). Longer work of a node runs in a task (``peer.start_soon``).

How messages flow::

    inlet has arrivals  -> node.on_arrivals(inlet)  -> inlet.take() until None, or as many as it likes
    outlet has room     -> node.on_demand(outlet)   -> while outlet.ready(): outlet.give(content, lease)
                                                       outlet.rest(how many more there are)
    the peer is done    -> lease.accepted() / released() / ... / lost()

An arrival that a node does not take stays with the link, whose peer may then send only a limited number more: that is the
only back-pressure. A node that stopped taking calls ``take`` again when it can; the same holds for outlets and ``ready``.
"""

# Base classes have hooks whose defaults need no argument.
# ruff: noqa: ARG002

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from trio_amqp10.core.errors import TEXT_LIMIT, AmqpError, Condition

from .turns import ENDLESS, each_in_turns, take_steps
from .watermark import Watermark

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from trio_amqp10.broker.stores.group_commit import Journal

    from .content import Content
    from .form_registry import Selection, Wants
    from .turns import Turns

_log = logging.getLogger("trio_amqp10.container")


class RefusedError(AmqpError):
    """A node, or the container, refuses an operation; the peer gets the error.

    Args:
        condition: an error condition, e.g. ``amqp:not-found``.
        description: text for people; sent to the peer, and cut after 1,024 characters.
        info: further information for the peer, e.g. the target of a redirect; used if a link or a connection is refused.
    """

    def __init__(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        self.info = info
        self.condition: Final = condition.value if isinstance(condition, Condition) else condition
        self.description: Final = description[:TEXT_LIMIT]
        super().__init__(f"{self.condition}: {self.description}")


class NotTakenError(AmqpError):
    """The peer of an outlet can never take this message.

    For example, it is too large, or has no form in the peer's protocol. The message and the outlet are unchanged. A node that
    ``passes_over`` leaves the message to other outlets.
    """


def why_not_durable(address: str) -> str:
    """Return why the node of this address refuses durable messages."""
    return f"{address!r} stores no messages, but the message is durable: send it to a container with a store"


class Peer(Protocol):
    """The other end of a connection."""

    @property
    def container_id(self) -> str:
        """The name that the peer chose for itself."""
        ...

    @property
    def identity(self) -> Any:
        """The authenticated identity of the peer, or None."""
        ...

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run a task for this peer.

        It is not cancelled when the peer disconnects, but when the service ends.
        """
        ...


class ContainerPeer(Peer, Protocol):
    """The container that a node is in, as the peer of the node's own messages."""

    def find(self, address: str) -> Node:
        """Return the node of this address, or raise ``RefusedError``."""
        ...

    @property
    def journal(self) -> Journal | None:
        """The way to the store for durable data; None for a container without a store."""
        ...

    def resume_lease(self, lease: Lease, content: Content | Any) -> object | None:
        """Find the link that has had a stored message since before the restart.

        Called in ``Node.recover``.

        Args:
            lease: the lease on the message, with the same ``record`` as before the restart.
            content: the message as it is delivered now: a ``Content``, or a ``Message``.

        Returns:
            The key of the outlet that has the message: the lease is answered when its peer has resumed, or does not resume in
            time. None if no link has it: the message is available.
        """
        ...


class NodeWatcher(Protocol):
    """An object that is notified of nodes that are added to a container."""

    def on_node_added(self, node: Node) -> None:
        """React to a node that peers can reach from now on."""
        ...


class Arrival(Protocol):
    """A message that arrived at a node, which must give it one of four answers.

    Each answer raises ``LocalProtocolError`` after the first, and when the link is gone.

    Attributes:
        settled: whether the peer wants no answer any more.
        state: the answer that was given, or None.
    """

    settled: bool
    state: Any

    @property
    def tag(self) -> bytes:
        """The delivery-tag, at most 32 octets; empty if sent from within the service."""
        ...

    @property
    def content(self) -> Content:
        """The message without the sections that are meant for this container alone.

        Nodes hold it and forward it.
        """
        ...

    @property
    def message(self) -> Any:
        """The arrival as a ``Message``; its sections are decoded when they are read."""
        ...

    def record_acceptance(self) -> None:
        """Write the acceptance to the store before it is sent.

        It is part of the same commit as all that the node writes before its next ``await``. If the peer asks for the outcome after
        a restart, the answer is that the message was accepted. Call ``accept`` when the commit has succeeded.
        """
        ...

    def accept(self) -> None:
        """Accept the message: it was processed, or is held safely."""
        ...

    def reject(self, condition: str = ..., description: str | None = ...) -> None:
        """Reject the message: it is invalid, and not worth another attempt.

        A link whose source does not support this outcome ends with this error.
        """
        ...

    def release(self) -> None:
        """Release the message: it was not processed, as if it had never been sent."""
        ...

    def modify(
        self,
        *,
        delivery_failed: bool = ...,
        undeliverable_here: bool = ...,
        annotations: dict[Any, Any] | None = ...,
    ) -> None:
        """Return the message changed: it was not processed."""
        ...

    def keep(self) -> bool:
        """Leave the message to its sender, because the store is full or has failed.

        Returns:
            True if it stays stored at its origin; then this was its answer. False if its sender must still be answered.
        """
        ...


class Lease(Protocol):
    """A delivered message without an outcome; exactly one answer is called, once.

    The answers are ``accepted``, ``rejected``, ``released``, ``modified`` and ``lost``. The answers of a node that
    ``may_refuse_outcomes`` may raise ``RefusedError``: the peer gets the error, if it waits for an answer.

    Subclass it: the defaults of ``record``, ``redelivered`` and ``delete_in_commit`` are those of a message that is not stored
    and was not delivered before.
    """

    __slots__ = ()

    @property
    def record(self) -> int | str | None:
        """Identifies the message in the store of the container; None if not stored.

        A node with a table of its own uses strings that begin with its address. While a link that survives the process has the
        message, the store knows that by this key: see ``ContainerPeer.resume_lease``.
        """
        return None

    @property
    def redelivered(self) -> bool:
        """Whether it may have been delivered before, to this peer or another.

        True from the second delivery on, and after a restart from the first, because the store does not know whether a message was
        delivered.
        """
        return False

    def delete_in_commit(self) -> Callable[[], object] | None:
        """Delete the message in the commit of the transaction that is being written.

        ``accepted`` follows when the commit has succeeded.

        Returns:
            A function that cancels this if the commit fails; None for a message that is not stored.
        """
        return None

    def accepted(self) -> None:
        """The peer has processed the message."""
        ...

    def rejected(
        self, condition: str | None, description: str | None, info: Mapping[Any, Any] | None = None
    ) -> None:
        """The peer finds the message invalid; ``info`` is further information (2.8.14)."""
        ...

    def released(self) -> None:
        """The peer returns the message unprocessed."""
        ...

    def modified(
        self, *, failed: bool, undeliverable_here: bool, annotations: Mapping[Any, Any] | None
    ) -> None:
        """The peer returns the message: failed, not deliverable here, or annotated."""
        ...

    def lost(self) -> None:
        """The link ended without an outcome; its source has no default-outcome (3.5.3)."""
        ...


class Inlet(Protocol):
    """A link on which a peer sends to a node."""

    @property
    def peer(self) -> Peer:
        """The peer that sends."""
        ...

    @property
    def pair(self) -> object:
        """Identifies the link; equal for an outlet of the same name, its pair."""
        ...

    @property
    def is_committed(self) -> bool:
        """Whether its messages are of a committed transaction: a full node takes them."""
        ...

    def take(self) -> Arrival | None:
        """Return the next message in the order of sending, or None."""
        ...

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        """Take no more messages.

        Messages that were not taken go back to the peer, which gets the error, with ``info`` (2.8.14).
        """
        ...


Owner: TypeAlias = tuple[str, str | None]
"""A peer: its container-id, and its authenticated user or None.

Any peer may choose any container-id, so the user is part of the identity.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SubscriptionTerms:
    """The subscription that a peer asks for by an outlet.

    The outlet may be one of several for the subscription, and may be replaced by a later one.

    Attributes:
        name: identifies it among the subscriptions of its owner.
        owner: the container-id of the peer, and its authenticated user; None if it is common to all peers.
        shared: whether several outlets may have it at a time.
        lasting: seconds that it stays without an outlet; 0 if it ends with the last one, infinity for ever.
        durable: whether it survives the process.
        selection: equal for peers that select the same messages.
        priority: outlets of a higher priority are offered messages first; those of the same priority take turns.
    """

    name: str
    owner: Owner | None = None
    shared: bool = False
    lasting: float = 0.0
    durable: bool = False
    selection: Selection | None = None
    priority: int = 0

    @property
    def key(self) -> object:
        """Equal for the same subscription."""
        return self.owner, self.name, self.shared, self.lasting > 0


class Outlet(Protocol):
    """A link on which a peer receives from a node."""

    @property
    def peer(self) -> Peer:
        """The peer that receives."""
        ...

    @property
    def key(self) -> object:
        """The identity of the receiver: the same for a link that is resumed.

        An ``OutletKey`` in protocols with refusals.
        """
        ...

    @property
    def pair(self) -> object:
        """See ``Inlet.pair``."""
        ...

    @property
    def copying(self) -> bool:
        """Whether the peer only browses: messages are copied to it, not moved."""
        ...

    @property
    def wants(self) -> Wants | None:
        """Tests whether the peer wants a message; None if it wants all.

        Its arguments are a ``Content`` or ``Message``, and the origin of that.
        """
        ...

    @property
    def target(self) -> str | None:
        """The peer's own address for the messages, if it has one."""
        ...

    @property
    def subscription_terms(self) -> SubscriptionTerms:
        """The subscription that the peer asks for, for nodes that keep subscriptions."""
        ...

    @property
    def max_message_size(self) -> int | None:
        """The largest message that the peer takes, in octets; None for any size (2.7.3)."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the link has ended."""
        ...

    @property
    def final(self) -> bool:
        """Whether the peer will not attach again, so that its subscription is not needed."""
        ...

    @property
    def sender(self) -> Any:
        """The link as a ``Sender``, for a user's function; None without AMQP 1.0."""
        ...

    def ready(self) -> bool:
        """Whether ``give`` may be called; if not, ``on_demand`` is called once it may."""
        ...

    def give(self, content: Content | Any, lease: Lease | None, tag: bytes | None = None) -> None:
        """Send one message; exactly one method of ``lease`` is called with its outcome.

        A message that cannot be sent ends the link, with ``amqp:link:message-size-exceeded`` if it is larger than
        ``max_message_size``; its lease is released. That does not raise, so that a node that gives to one link because of another
        continues with the other. An outlet must not raise after it has kept the lease.

        Raises:
            NotTakenError: the peer cannot take this message; nothing has changed. Only for nodes that ``passes_over``.

        Args:
            content: the message: a ``Content``, or a ``Message``.
            lease: the lease on the message; None if its outcome does not matter.
            tag: at most 32 octets, unique among the peer's deliveries; None for any tag.
        """
        ...

    def outgrow(self, size: int) -> None:
        """End the link, because all messages for it are too large for the peer.

        ``size`` is the octets of one of them, larger than ``max_message_size``. The link ends with
        ``amqp:link:message-size-exceeded``: at once, or, while deliveries on it are unsettled, not yet. ``on_demand`` is called when
        they are settled; then call this again, if it still holds.
        """
        ...

    def rest(self, more: int) -> None:
        """End a series of ``give``; ``more`` messages may follow later."""
        ...

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        """Give no more messages; the peer gets the error, with ``info`` (2.8.14)."""
        ...

    async def flush(self) -> None:
        """Wait until all given messages have an outcome. Cancelled: call it again."""
        ...

    async def aclose(self) -> None:
        """Give no more, and wait until the peer has confirmed.

        Cancelled: no more messages are sent; only the peer's answer is not awaited.
        """
        ...


class NodeLink(Protocol):
    """A link to a node: an inlet, an outlet, or a link of one kind of node."""

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """Take or give no more messages; the peer gets the error."""
        ...


class Node:
    """An object with an address. Subclass it, and call ``container.add_node(node)``.

    Args:
        address: the address that links name.

    Attributes:
        accepts_senders: whether peers may send to it.
        accepts_receivers: whether peers may receive from it.
        applies_filters: whether it calls ``outlet.wants``; if not, the answer to an attach shows that filters are not applied.
        may_refuse_outcomes: whether its leases may refuse a peer's outcome. A peer that waits for our answer then gets a
            rejection with an error; otherwise, and for an outcome of rejected, an answer without an error.
        leases_messages: whether its messages may be returned by their leases, so that a transaction can acquire them.
        keeps_subscriptions: whether it keeps ``outlet.subscription_terms``; if not, the answer to an attach shows that the
            subscription ends with the link.
        answers_link_pairs: whether it answers on the link that is paired with that of a request.
        passes_over: whether a message that the peer of an outlet cannot take stays for other outlets (``NotTakenError``); if
            not, such a message ends the outlet.
        holds_replies: whether the node is one peer's own, so that a message in it may be the reply of a handler under way. Such
            a node gives messages also while the container finishes.
        capabilities: the kinds of node that it is, sent to peers that ask, e.g. ``("queue",)``.
        inlets, outlets: the links to it, in the order of attaching.
        container: the container that it is in, once it is added to one.
        watermark: counts the octets of its messages; the container's, once it is added to one.
    """

    accepts_senders: bool = False
    accepts_receivers: bool = False
    applies_filters: bool = False
    may_refuse_outcomes: bool = False
    leases_messages: bool = False
    keeps_subscriptions: bool = False
    answers_link_pairs: bool = False
    passes_over: bool = False
    holds_replies: bool = False
    capabilities: tuple[str, ...] = ()

    attaching_links = 0
    """Links that are being attached to it, and are neither inlets nor outlets yet."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.inlets: dict[Inlet, None] = {}
        self.outlets: dict[Outlet, None] = {}
        self.container: ContainerPeer | None = None
        self.watermark: Watermark = Watermark()

    @property
    def stores_messages(self) -> bool:
        """Whether it may write messages to the store, and then waits for that."""
        return False

    @property
    def joins_commits(self) -> bool:
        """Whether it gets the messages of a transaction before the commit is decided.

        Such a node drops them if the store fails.
        """
        return self.stores_messages

    def for_dead_letters(self) -> Node:
        """Return the node for dead letters that queues send to this address.

        The dead letters arrive as ``deadletters.DeadLetter``.
        """
        return self

    # -- peers that send to us --------------------------------------------------------------

    max_message_size: int | None = None
    """Octets of the largest message that its inlets announce (2.7.3).

    None for the limit of the connection.
    """

    exempt_from_watermark = False
    """Whether it takes messages although the container is full, e.g. for management."""

    needs_no_permission = False
    """Whether every connected peer may send to it and receive from it."""

    maker: Peer | None = None
    """The peer whose connection the node was made for, which needs no permission.

    None for any other node.
    """

    def is_own_of(self, peer: Peer) -> bool:
        """Whether this was made for the connection of this peer."""
        return self.maker is peer

    refuses_durable = False
    """Whether it refuses durable messages, because it stores none (3.2.1)."""

    releases_arrivals = False
    """Whether it does not need an arrival after its outcome.

    True if the node keeps the content itself.
    """

    def count_in(self, watermark: Watermark) -> None:
        """Use another watermark, and count there all that is held."""
        self.watermark = watermark

    def withdraw(self) -> None:
        """Leave a container that could not restore the messages of this node.

        It has no links yet. Its messages stay in the store.
        """
        self.count_in(Watermark())

    def check_inlet(self, peer: Peer) -> None:
        """Raise ``RefusedError`` if this peer may not send here."""
        if not self.accepts_senders:
            raise RefusedError(Condition.NOT_ALLOWED, f"{self.address!r} takes no messages")

    def destination(self, content: Content) -> Node:
        """Return the node that will get this message; another one if this only forwards.

        Raises:
            RefusedError: there is no such node.
        """
        return self

    def add_inlet(self, inlet: Inlet) -> None:
        """Add a link on which a peer will send."""
        self.inlets[inlet] = None

    def on_arrivals(self, inlet: Inlet) -> None:
        """Take messages from an inlet, if it has any."""
        raise NotImplementedError

    def lacks_room_for(self, inlet: Inlet) -> bool:
        """Whether messages of an inlet wait for room.

        True also for a node that does not know why it takes no more.
        """
        return True

    def remove_inlet(self, inlet: Inlet) -> None:
        """Remove a link that has ended."""
        self.inlets.pop(inlet, None)

    def recover(self) -> None:
        """Restore the stored state, once.

        Called when the container first runs, or when the node is added after that; only under trio, and only in a container with a
        store.
        """

    def holders(self, inlet: Inlet, arrival: Arrival) -> Iterable[Node]:
        """Return the nodes that will hold a message of a transaction.

        The commit calls this before anything is done. A node that forwards messages returns the nodes that this message will reach;
        ``check_room`` of each is called next. Override it as well in a node that does not accept every message, because a message
        that a node refuses after the commit is lost.

        Args:
            inlet: the messages of the transaction for this node; nothing can be taken from it yet.
            arrival: one of them. Its answer is not due yet.

        Raises:
            RefusedError: the message would be rejected or released. The transaction is rolled back.
        """
        if self.refuses_durable and arrival.content.durable:
            raise RefusedError(Condition.PRECONDITION_FAILED, why_not_durable(self.address))
        return (self,)

    def check_room(self, messages: int, octets: int) -> None:
        """Raise ``RefusedError`` if there is no room for all messages of a transaction.

        ``messages`` and ``octets`` are all that one transaction has for this node.
        """

    # -- peers that receive from us ---------------------------------------------------------

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        """Raise ``RefusedError`` if this peer may not receive from here; see ``Outlet``."""
        if not self.accepts_receivers:
            raise RefusedError(Condition.NOT_ALLOWED, f"{self.address!r} gives no messages")

    def add_outlet(self, outlet: Outlet) -> None:
        """Add a link on which a peer will receive; ``on_demand`` follows."""
        self.outlets[outlet] = None

    def recall(self, owner: Owner | None, name: str) -> SubscriptionTerms | None:
        """Return the terms of the subscription of this name, or None.

        For a peer that wants to end a subscription and knows only its name; see ``SubscriptionTerms``.

        Raises:
            RefusedError: a link has it.
        """
        return None

    def on_demand(self, outlet: Outlet) -> None:
        """Give messages to an outlet, if it is ``ready``."""
        raise NotImplementedError

    def pull(self, outlet: Outlet) -> bool:
        """Give this outlet one message now, if there is one for it.

        The outlet is ready, and is no consumer: it is not among ``outlets``, ``check_outlet`` was not called, and it is given nothing
        later.

        Returns:
            Whether a message was given.
        """
        return False

    def remove_outlet(self, outlet: Outlet) -> None:
        """Remove a link that has ended; leases return its unsettled messages."""
        self.outlets.pop(outlet, None)

    # -- the end ----------------------------------------------------------------------------

    def attempt(self, link: NodeLink, call: Callable[..., object], *args: Any) -> None:
        """Call a function for one link; if it raises, end that link and nothing more."""
        try:
            call(*args)
        except Exception:
            self.end_link(link)

    def end_link(self, link: NodeLink) -> None:
        """End a link whose exception is being handled; never raises."""
        _log.exception("%r: the link %r failed", self, link)
        try:
            link.close(Condition.INTERNAL_ERROR.value, "the link failed")
        except Exception:
            _log.exception("%r: the link %r failed again", self, link)
        for links, remove in ((self.inlets, self.remove_inlet), (self.outlets, self.remove_outlet)):
            if link in links:
                remove(link)  # type: ignore[arg-type]

    def close(self) -> None:
        """End all links with ``amqp:resource-deleted``, when the node is removed."""
        links: list[Inlet | Outlet] = [*self.inlets, *self.outlets]
        turns = self.turns
        take_steps(turns, each_in_turns(turns, iter(links), self._close_link))

    def _close_link(self, link: Inlet | Outlet) -> None:
        self.attempt(link, link.close, Condition.RESOURCE_DELETED.value, f"{self.address!r} is deleted")

    @property
    def turns(self) -> Turns:
        """The turns that divide long work; a node without a clock has one endless turn."""
        return ENDLESS

    def statistics(self) -> dict[str, int]:
        """Return the current figures by name, for management."""
        return {"senders": len(self.inlets), "receivers": len(self.outlets)}

    def totals(self) -> Mapping[str, int]:
        """Return the figures of its messages that only grow, by name.

        The container keeps them after the node is deleted.
        """
        return {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address!r}>"


def label(node: Node) -> str:
    """Return the kind and the address of a node, as in ``queue 'orders'``."""
    kind = type(node).__name__.removesuffix("Node").removeprefix("Broker").lower()
    return f"{kind} {node.address!r}"
