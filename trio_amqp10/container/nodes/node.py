"""What a container asks of its nodes, and what a node may ask of the links to it.

One interface for all: queues, functions, consumers, producers, and what users write. A node takes
messages from *inlets* (a peer sends to it) and gives messages to *outlets* (a peer receives from
it). An adapter makes inlets and outlets of the links of a protocol; a node never learns which.
So nothing here is a type of any one dialect: no link, no credit, no delivery state.

All calls between nodes and links are synchronous and happen in the task that reads from the peer:
they must not block. What a node raises is logged and ends the link that called it; what a link raises ends
that link, and the node and its other links go on (``Node.attempt``). A node with something long to do has
``peer.start_soon``.

How messages flow::

    inlet has arrivals  -> node.on_arrivals(inlet)  -> inlet.take() until None, or as many as it likes
    outlet has room     -> node.on_demand(outlet)   -> while outlet.ready(): outlet.give(content, lease)
                                                       outlet.rest(how many more there are)
    the peer is done    -> lease.accepted() / released() / ... / lost()

An arrival that a node does not take stays with the link, whose peer may then send only so many
more: that is all the back-pressure there is. A node that stopped taking calls ``take`` again when
it likes to; the same holds for outlets and ``ready``.
"""

# Base classes have hooks whose defaults need no argument.
# ruff: noqa: ARG002

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from trio_amqp10.errors import AmqpError, Condition

from .turns import ENDLESS, each_in_turns, take_steps
from .watermark import Watermark

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from trio_amqp10.container.stores.group_commit import Journal

    from .content import Content
    from .form_registry import Selection, Wants
    from .turns import Turns

__all__ = [
    "Arrival",
    "ContainerPeer",
    "Inlet",
    "Lease",
    "Node",
    "NodeLink",
    "NodeWatcher",
    "NotTakenError",
    "Outlet",
    "Owner",
    "Peer",
    "RefusedError",
    "SubscriptionTerms",
    "why_not_durable",
]

_log = logging.getLogger("trio_amqp10.container")


class RefusedError(AmqpError):
    """A node, or the container, does not want this; the peer sees why.

    Args:
        condition: an error condition, e.g. ``amqp:not-found``.
        description: for people; goes to the peer.
        info: what goes to the peer beside it, e.g. where a redirect leads; of use where a link or a connection
            is refused.
    """

    def __init__(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        self.info = info
        self.condition: Final = condition.value if isinstance(condition, Condition) else condition
        self.description = description
        super().__init__(f"{self.condition}: {description}")


class NotTakenError(AmqpError):
    """The peer of an outlet cannot take this message, ever: it is too large, or has no form in its protocol.

    The message and the outlet are as before. A node that ``passes_over`` leaves the message to others.
    """


def why_not_durable(address: str) -> str:
    """Why the node of this address takes no message that is to survive the process."""
    return (
        f"{address!r} keeps nothing on disk, and the message is durable: send it to a container with a store"
    )


class Peer(Protocol):
    """Who is at the other end; one object for each connection."""

    @property
    def container_id(self) -> str:
        """The name that the peer gave itself."""
        ...

    @property
    def identity(self) -> Any:
        """Who the peer proved to be, or None."""
        ...

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run a task for this peer. It is not cancelled when the peer goes, but when the service ends."""
        ...


class ContainerPeer(Peer, Protocol):
    """The container that a node is in: the peer of what it does by itself."""

    def find(self, address: str) -> Node:
        """The node of this address, or raise ``RefusedError``."""
        ...

    @property
    def journal(self) -> Journal | None:
        """Where a node writes what is to survive the process; None for a container without a store."""
        ...

    def resume_lease(self, lease: Lease, content: Content | Any) -> object | None:
        """Ask, in ``Node.recover``, whether a link has had a stored message since before the restart.

        Args:
            lease: on the message, with the ``record`` that it had then.
            content: the message as it goes out now: a ``Content``, or a ``Message``.

        Returns:
            The key of the outlet that has it: the lease is answered when its peer has come back, or does not come
            in time. None if there is none: the message is available.
        """
        ...


class NodeWatcher(Protocol):
    """What wants to know of nodes that are added to a container."""

    def on_node_added(self, node: Node) -> None:
        """Peers can reach it from now on."""
        ...


class Arrival(Protocol):
    """A message that arrived at a node, which owes the peer one of four answers.

    Each answer raises ``LocalProtocolError`` after the first, and when the link is gone.

    Attributes:
        settled: whether the peer wants no answer any more.
        state: the answer that was given, or None.
    """

    settled: bool
    state: Any

    @property
    def tag(self) -> bytes:
        """What its sender calls it, at most 32 octets; empty if it came from within the service."""
        ...

    @property
    def content(self) -> Content:
        """What arrived, without what was meant for us alone; what nodes hold, and give on."""
        ...

    @property
    def message(self) -> Any:
        """What arrived, as a ``Message``; its sections are decoded as they are read."""
        ...

    def record_acceptance(self) -> None:
        """Promise acceptance: record it in the same commit of the store as what the node writes before its next ``await``.

        After a restart a peer that asks is then told that the message was accepted. Call ``accept`` when the commit has
        succeeded.
        """
        ...

    def accept(self) -> None:
        """It was processed, or is in safe hands."""
        ...

    def reject(self, condition: str = ..., description: str | None = ...) -> None:
        """It is invalid, and not worth another attempt. A link whose source has no such outcome ends with this error."""
        ...

    def release(self) -> None:
        """It was not processed; as if it had never been sent."""
        ...

    def modify(
        self,
        *,
        delivery_failed: bool = ...,
        undeliverable_here: bool = ...,
        annotations: dict[Any, Any] | None = ...,
    ) -> None:
        """It was not processed, and comes back changed."""
        ...

    def keep(self) -> bool:
        """The node has no room for it in the store, or the store failed.

        Returns:
            True if it stays stored where it came from; then this was its answer. False if its sender still
            has to be told.
        """
        ...


class Lease(Protocol):
    """A message that was given out and not yet answered for; exactly one of the five answers is called, once.

    The answers are ``accepted``, ``rejected``, ``released``, ``modified`` and ``lost``. Those of a node that
    ``confirms`` may raise ``RefusedError``: the peer sees it, if it waits for an answer.

    Subclass it: ``record``, ``redelivered`` and ``delete_in_commit`` then say that the message is not stored, and was not
    given out before.
    """

    __slots__ = ()

    @property
    def record(self) -> int | str | None:
        """Names the message in the store, among all of the container; None if it is not stored.

        A node with a table of its own uses strings that begin with its address. While a link that survives the
        process has the message, the store knows that by this name: see ``ContainerPeer.resume_lease``.
        """
        return None

    @property
    def redelivered(self) -> bool:
        """Whether it may have been given out before, to this peer or another.

        True from the second time on, and after a restart the first time too: the store does not know what was
        given out.
        """
        return False

    def delete_in_commit(self) -> Callable[[], object] | None:
        """A transaction that takes the message away is being written: delete it from the store in the same commit.

        ``accepted`` follows when the commit has succeeded.

        Returns:
            What undoes this if the commit fails; None for a message that is not stored.
        """
        return None

    def accepted(self) -> None:
        """The peer has processed it."""
        ...

    def rejected(
        self, condition: str | None, description: str | None, info: Mapping[Any, Any] | None = None
    ) -> None:
        """The peer finds it invalid; ``info`` is what else it says of that (2.8.14)."""
        ...

    def released(self) -> None:
        """The peer gives it back, unprocessed."""
        ...

    def modified(
        self, *, failed: bool, undeliverable_here: bool, annotations: Mapping[Any, Any] | None
    ) -> None:
        """The peer gives it back: after a failed attempt, or not wanting it again, or annotated."""
        ...

    def lost(self) -> None:
        """The link went, and what became of the message is not known; its source has no default-outcome (3.5.3)."""
        ...


class Inlet(Protocol):
    """A peer that sends to a node."""

    @property
    def peer(self) -> Peer:
        """Whose it is."""
        ...

    @property
    def pair(self) -> object:
        """Names the link: equal to that of the outlet that it is paired with, which has the same name."""
        ...

    def take(self) -> Arrival | None:
        """The next message, if one is there; they come in the order in which they were sent."""
        ...

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        """Take no more; what was not taken goes back to the peer, which sees the error, with ``info`` (2.8.14)."""
        ...


Owner: TypeAlias = tuple[str, str | None]
"""A peer: its container-id, and the user that it proved to be, if any. Names alone are anybody's to use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SubscriptionTerms:
    """What a peer wants to have, apart from the outlet by which it has it: that one may be one of several, or come again.

    Attributes:
        name: names it among those of its owner.
        owner: the container-id of the peer, and the user that it proved to be; None where it is everybody's.
        shared: whether several outlets may have it at a time.
        lasting: seconds that it stays without any outlet; 0 where it goes with the last, infinite for ever.
        durable: whether it shall survive the process.
        selection: equal for those who want the same messages.
        priority: outlets of a higher one are offered messages first, those of the same take turns.
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
    """A peer that receives from a node."""

    @property
    def peer(self) -> Peer:
        """Whose it is."""
        ...

    @property
    def key(self) -> object:
        """The identity of the receiver: the same for a link that is resumed; an ``OutletKey`` in protocols with refusals."""
        ...

    @property
    def pair(self) -> object:
        """As ``Inlet.pair``."""
        ...

    @property
    def copying(self) -> bool:
        """Whether the peer only looks: messages are copied to it, not moved."""
        ...

    @property
    def wants(self) -> Wants | None:
        """Whether the peer wants a content or ``Message`` that came from the peer of that container-id; None if it wants all."""
        ...

    @property
    def target(self) -> str | None:
        """What the peer calls the place that the messages go to, if it has a name."""
        ...

    @property
    def subscription_terms(self) -> SubscriptionTerms:
        """What the peer wants to have by it, for nodes that keep that when the outlet goes."""
        ...

    @property
    def max_message_size(self) -> int | None:
        """Octets of the largest message that the peer takes; None for any size (2.7.3)."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the link is over."""
        ...

    @property
    def final(self) -> bool:
        """Whether the peer has said that it will not come back: what was kept for it is not needed."""
        ...

    @property
    def sender(self) -> Any:
        """The link as a program uses it, for a function of the user's: a ``Sender``; None where the peer speaks no AMQP 1.0."""
        ...

    def ready(self) -> bool:
        """Whether ``give`` may be called; if not, ``on_demand`` is called once it may."""
        ...

    def give(self, content: Content | Any, lease: Lease | None, tag: bytes | None = None) -> None:
        """Send one message; one method of ``lease`` is called with what becomes of it.

        A message that cannot be sent ends the link, with ``amqp:link:message-size-exceeded`` if it is larger than
        ``max_message_size``; its lease is released. That is no reason to raise: a node that gives to one
        link because of another goes on with that one. Nor may an outlet raise after it has kept the lease.

        Raises:
            NotTakenError: the peer cannot take this message; nothing has changed. Of nodes that ``passes_over`` alone.

        Args:
            content: what: a ``Content``, or a ``Message``.
            lease: of the message; None if its outcome does not matter.
            tag: at most 32 octets that name it to the peer, as no other that it has; any if None.
        """
        ...

    def outgrow(self, size: int) -> None:
        """All that the node has for this outlet is larger than ``max_message_size``, e.g. a message of ``size`` octets.

        Ends the link with ``amqp:link:message-size-exceeded``: now, or, while deliveries on it are unsettled, not yet.
        ``on_demand`` is called when they are settled; then call this again, if it still holds.
        """
        ...

    def rest(self, more: int) -> None:
        """The node has given what it could for now, and has ``more`` that this outlet may have later."""
        ...

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """Give no more."""
        ...

    async def flush(self) -> None:
        """Wait until the peer has answered for all that was given. Cancelled: call it again."""
        ...

    async def aclose(self) -> None:
        """Give no more, and wait until the peer knows. Cancelled: no more is given all the same."""
        ...


class NodeLink(Protocol):
    """What a node gives to or takes from: an inlet, an outlet, or something that only one kind of node knows."""

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """Take or give no more; the peer sees the error."""
        ...


class Node:
    """Something in a container that has an address. Subclass it, and ``container.add_node(node)``.

    Args:
        address: what links name to reach it.

    Attributes:
        accepts_senders: whether peers may send to it.
        accepts_receivers: whether peers may receive from it.
        applies_filters: whether it asks ``outlet.wants``; if not, the answer to an attach says that filters are
            not applied.
        may_refuse_outcomes: whether its leases may refuse what a peer says: one that waits for our answer then
            gets a rejection with an error, and else, to a rejection too, an answer without one.
        leases_messages: whether what it gives may come back by its lease, so that a transaction can acquire it.
        keeps_subscriptions: whether it keeps ``outlet.subscription_terms``; if not, the answer to an attach says
            that nothing stays of the link.
        answers_link_pairs: whether it answers on the link that is paired with that of a request.
        passes_over: whether a message that the peer of an outlet cannot take stays for other outlets (``NotTakenError``);
            if not, such a message ends the outlet.
        capabilities: what kind of node it is, told to peers that ask, e.g. ``("queue",)``.
        inlets, outlets: the links to it, in the order in which they came.
        container: the container that it is in, once it is added to one.
        watermark: counts the octets of the messages that it holds; the container's, once it is added to one.
    """

    accepts_senders: bool = False
    accepts_receivers: bool = False
    applies_filters: bool = False
    may_refuse_outcomes: bool = False
    leases_messages: bool = False
    keeps_subscriptions: bool = False
    answers_link_pairs: bool = False
    passes_over: bool = False
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
        """Whether what it takes may go to the store of the container, and waits for that."""
        return False

    @property
    def joins_commits(self) -> bool:
        """Whether the messages of a transaction come before it is decided: the node takes them back if the store fails."""
        return self.stores_messages

    def for_dead_letters(self) -> Node:
        """The node that takes the dead letters (``deadletters.DeadLetter``) that queues send to this address."""
        return self

    # -- peers that send to us --------------------------------------------------------------

    exempt_from_watermark = False
    """Whether messages are taken for it however much the container holds: those that manage what there is."""

    needs_no_permission = False
    """Whether a peer that may be connected needs no other permission to send to it and receive from it."""

    maker: Peer | None = None
    """The peer whose connection this was made for, which then needs no permission for it; None for any other node."""

    def is_own_of(self, peer: Peer) -> bool:
        """Whether this was made for the connection of this peer."""
        return self.maker is peer

    refuses_durable = False
    """Whether it takes no message that is to survive the process, as it keeps none that does (3.2.1)."""

    releases_arrivals = False
    """Whether it needs nothing of an arrival any more that it has given an outcome, as it has the message itself."""

    def count_in(self, watermark: Watermark) -> None:
        """Count there from now on, with what is held already."""
        self.watermark = watermark

    def check_inlet(self, peer: Peer) -> None:
        """Raise ``RefusedError`` if this peer may not send here."""
        if not self.accepts_senders:
            raise RefusedError(Condition.NOT_ALLOWED, f"{self.address!r} takes no messages")

    def destination(self, content: Content) -> Node:
        """The node that this message ends up in, or raise ``RefusedError``: another one if this only hands it on."""
        return self

    def add_inlet(self, inlet: Inlet) -> None:
        """A peer may send from now on."""
        self.inlets[inlet] = None

    def on_arrivals(self, inlet: Inlet) -> None:
        """There may be something to ``take``."""
        raise NotImplementedError

    def remove_inlet(self, inlet: Inlet) -> None:
        """The peer is gone."""
        self.inlets.pop(inlet, None)

    def recover(self) -> None:
        """Take back what the store has, once: when the container first runs, or when the node is added after that.

        It is called under trio, and only in a container that has a store.
        """

    def holders(self, inlet: Inlet, arrival: Arrival) -> Iterable[Node]:
        """Return the nodes that will hold a message of a transaction; its commit asks this before anything is done.

        A node that hands messages on returns the nodes that it hands this one on to; ``check_room`` of each is asked
        next. Override it as well in a node that does not accept every message: what a node refuses after the commit is lost.

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
        """Raise ``RefusedError`` if so much at once, all that one transaction has for this node, would not be accepted."""

    # -- peers that receive from us ---------------------------------------------------------

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        """Raise ``RefusedError`` if this peer may not receive from here; see ``Outlet`` for what it wants."""
        if not self.accepts_receivers:
            raise RefusedError(Condition.NOT_ALLOWED, f"{self.address!r} gives no messages")

    def add_outlet(self, outlet: Outlet) -> None:
        """A peer receives from now on; ``on_demand`` follows."""
        self.outlets[outlet] = None

    def recall(self, owner: Owner | None, name: str) -> SubscriptionTerms | None:
        """What is kept under this name, for a peer that wants to be done with it; see ``SubscriptionTerms``.

        Raise ``RefusedError`` if a link has it.
        """
        return None

    def on_demand(self, outlet: Outlet) -> None:
        """The outlet may be ``ready``."""
        raise NotImplementedError

    def pull(self, outlet: Outlet) -> bool:
        """Give this outlet one message now, if there is one for it.

        The outlet is ready, and is no consumer: it is not among ``outlets``, ``check_outlet`` was not asked, and nothing
        is given to it later.

        Returns:
            Whether a message was given.
        """
        return False

    def remove_outlet(self, outlet: Outlet) -> None:
        """The peer is gone; what it had not answered for comes back by its leases."""
        self.outlets.pop(outlet, None)

    # -- the end ----------------------------------------------------------------------------

    def attempt(self, link: NodeLink, call: Callable[..., object], *args: Any) -> None:
        """Call a method of ``link``, or what is done for it alone: if that raises, the link ends, and nothing else does."""
        try:
            call(*args)
        except Exception:
            self.end_link(link)

    def end_link(self, link: NodeLink) -> None:
        """A link has raised an exception, which is being handled: end that link, whatever it raises now."""
        _log.exception("%r: the link %r failed", self, link)
        try:
            link.close(Condition.INTERNAL_ERROR.value, "the link failed")
        except Exception:
            _log.exception("%r: the link %r failed again", self, link)
        for links, remove in ((self.inlets, self.remove_inlet), (self.outlets, self.remove_outlet)):
            if link in links:
                remove(link)  # type: ignore[arg-type]

    def close(self) -> None:
        """The container has removed this node: its links end with ``amqp:resource-deleted``."""
        links: list[Inlet | Outlet] = [*self.inlets, *self.outlets]
        turns = self.turns
        take_steps(turns, each_in_turns(turns, iter(links), self._close_link))

    def _close_link(self, link: Inlet | Outlet) -> None:
        self.attempt(link, link.close, Condition.RESOURCE_DELETED.value, f"{self.address!r} is deleted")

    @property
    def turns(self) -> Turns:
        """The turns that long work takes; a node without a clock does all at once."""
        return ENDLESS

    def statistics(self) -> dict[str, int]:
        """Live figures by name, for those who manage the container."""
        return {"senders": len(self.inlets), "receivers": len(self.outlets)}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address!r}>"
