"""The connection of a link, as the link sees it: quotas, rights, transactions.

Declares the interfaces of ``connection`` and ``coordinator`` that links use, because both import the links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from trio_amqp10.broker.nodes.node import Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import trio

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.amqp10.peer.delivery import Delivery
    from trio_amqp10.broker.nodes.node import Node, Owner, RefusedError
    from trio_amqp10.broker.nodes.watermark import Watermark
    from trio_amqp10.broker.rights.guard import Guard
    from trio_amqp10.broker.stores.group_commit import Journal
    from trio_amqp10.broker.transactions import Transaction
    from trio_amqp10.net.engine_interface import Wakeable

    from .delivery_watch import DeliveryWatch
    from .link_end_base import LinkEnd
    from .transactional_work import TransactionalWork


class Transactions(Protocol):
    """The transactions of one connection: see ``Coordinator``."""

    @property
    def works(self) -> Mapping[bytes, TransactionalWork]:
        """The transactions by id."""
        ...

    def find(self, txn_id: object) -> TransactionalWork | None:
        """Return the transaction of this id, if it is live or was rolled back here."""
        ...

    def live(self, txn_id: object) -> TransactionalWork | None:
        """Return the transaction of this id, if work can still be added to it."""
        ...

    def post(
        self, inlet: LinkEnd[Any], node: Node, delivery: Delivery, refusal: RefusedError | None = None
    ) -> None:
        """Add a message to its transaction; see ``Coordinator.post``."""
        ...

    def refuse(self, txn_id: object, refusal: RefusedError) -> None:
        """Roll a transaction back, because a message of it was refused or dropped."""
        ...

    def retire(self, watch: DeliveryWatch) -> bool:
        """Add an outcome to its transaction; see ``Coordinator.retire``."""
        ...

    def read_requests(self) -> None:
        """Continue, because all messages that arrived are now permitted or refused."""
        ...


class LinkPeer(Peer, Protocol):
    """One connection: see ``Amqp10Connection`` and ``ConnectedPeerBase``.

    Attributes:
        open: whether the connection is served; if not, what was read late can still come.
        resting: whether the container finishes, so that no new work begins.
        nursery: the nursery of its tasks.
        guard: checks the permissions of the peer.
        connection: the connection to the peer.
        withheld: links that get no credit until their peer settles deliveries that have their outcome.
    """

    open: bool
    resting: bool
    nursery: trio.Nursery | None
    guard: Guard
    connection: Connection
    withheld: dict[Any, None]

    @property
    def owner(self) -> Owner:
        """The owner of subscriptions and termini that outlast the connection."""
        ...

    @property
    def journal(self) -> Journal | None:
        """Writes the changes of the container; None for a container without a store."""
        ...

    @property
    def watermark(self) -> Watermark:
        """Counts the messages that wait at the links."""
        ...

    @property
    def coordinator(self) -> Transactions:
        """The coordinator of its transactions."""
        ...

    def begin_transaction(self, on_rollback: Callable[[], object] | None = None) -> Transaction:
        """Return a new transaction, which must be committed or rolled back."""
        ...

    def add_unsettled(self, size: int) -> None:
        """Count one more delivery to the peer, of ``size`` octets, without outcome."""
        ...

    def remove_unsettled(self, size: int, count: int = 1) -> None:
        """Note that ``count`` deliveries, of ``size`` octets together, have outcomes."""
        ...

    def is_full(self, outlet: Wakeable) -> bool:
        """Whether the peer must settle before it gets more; then wake ``outlet`` later."""
        ...

    def remembers_too_much(self, inlet: Any) -> bool:
        """Whether the peer must settle before ``inlet`` gets credit."""
        ...

    def look_again(self) -> None:
        """Give credit to withheld links, if the peer has settled enough."""
        ...

    def forget(self, link: Any, *, closed: bool) -> None:
        """Note that a link is over; ``closed`` if no terminus of it is kept."""
        ...
