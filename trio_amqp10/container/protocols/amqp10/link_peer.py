"""The connection of a link, as the link sees it: quotas, rights, transactions.

Knows links and transactions by what they are called with; ``connection`` and ``coordinator`` are both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from trio_amqp10.container.nodes.node import Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import trio

    from trio_amqp10.container.connected_peer_base import Wakeable
    from trio_amqp10.container.nodes.node import Node, Owner, RefusedError
    from trio_amqp10.container.nodes.watermark import Watermark
    from trio_amqp10.container.rights.guard import Guard
    from trio_amqp10.container.transactions import Transaction
    from trio_amqp10.peer.connection import Connection
    from trio_amqp10.peer.delivery import Delivery

    from .delivery_watch import DeliveryWatch
    from .link_end import LinkEnd
    from .transactional_work import TransactionalWork

__all__ = ["LinkPeer", "Transactions"]


class Transactions(Protocol):
    """The transactions of one connection: see ``Coordinator``."""

    @property
    def works(self) -> Mapping[bytes, TransactionalWork]:
        """The transactions that there are, by name."""
        ...

    def find(self, txn_id: object) -> TransactionalWork | None:
        """The transaction of this id, whether it lives or was rolled back here."""
        ...

    def live(self, txn_id: object) -> TransactionalWork | None:
        """The transaction of this id, if there is still work to be done in it."""
        ...

    def post(
        self, inlet: LinkEnd[Any], node: Node, delivery: Delivery, refusal: RefusedError | None = None
    ) -> None:
        """A message came that is part of a transaction (4.4.1); ``refusal`` says that its sender may not send it."""
        ...

    def refuse(self, txn_id: object, refusal: RefusedError) -> None:
        """A message of this transaction was refused, or dropped on its way here: roll back now."""
        ...

    def retire(self, watch: DeliveryWatch) -> bool:
        """The peer has spoken of a delivery in a transaction, or its link is gone; True if that counts now (4.4.2)."""
        ...

    def read_requests(self) -> None:
        """Every message that came has been found to be permitted, or not."""
        ...


class LinkPeer(Peer, Protocol):
    """One connection: see ``Amqp10Connection`` and ``ConnectedPeerBase``.

    Attributes:
        resting: whether the container finishes.
        nursery: where tasks run.
        guard: knows what the peer may do.
        connection: to the peer.
        withheld: links that get no credit until their peer settles what it was given an outcome for.
    """

    resting: bool
    nursery: trio.Nursery | None
    guard: Guard
    connection: Connection
    withheld: dict[Any, None]

    @property
    def owner(self) -> Owner:
        """Whose the things are that outlast the connection."""
        ...

    @property
    def watermark(self) -> Watermark:
        """Counts what waits at the links."""
        ...

    @property
    def coordinator(self) -> Transactions:
        """Its transactions."""
        ...

    def begin_transaction(self, on_rollback: Callable[[], object] | None = None) -> Transaction:
        """A transaction, which is to be committed or rolled back."""
        ...

    def add_unsettled(self, size: int) -> None:
        """The peer was given one more delivery, of ``size`` octets, that waits for its outcome."""
        ...

    def remove_unsettled(self, size: int, count: int = 1) -> None:
        """So many deliveries, of ``size`` octets together, have their outcomes."""
        ...

    def is_full(self, outlet: Wakeable) -> bool:
        """Whether the peer is to get no more until it settles something; then ``outlet`` is woken."""
        ...

    def remembers_too_much(self, inlet: Any) -> bool:
        """Whether the inlet gets no credit, as the peer has to settle what it was given an outcome for."""
        ...

    def look_again(self) -> None:
        """The peer has settled something: links that got no credit may get some."""
        ...

    def forget(self, link: Any, *, closed: bool) -> None:
        """A link is over; ``closed`` says that nothing stays of it."""
        ...
