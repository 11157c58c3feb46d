"""The undecided work of a transaction: posted, retired and acquired (4.4).

================  ==============================  ====================================================
the work          at the commit                   at a rollback
================  ==============================  ====================================================
posted            goes to its node, in order      is dropped
retired           the outcome counts              the outcome is undone; a delivery that its
                                                  receiver has settled gets its default outcome
acquired          stays with its receiver         goes back to the node
================  ==============================  ====================================================

``broker.transactions`` describes how the work becomes one commit, and what nodes see of it.

Connects deliveries and their states with the transaction.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from trio_amqp10.amqp10.spec.messaging import ACCEPTED, Rejected
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.transactions import LeaseAnswer
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.peer.delivery import Delivery
    from trio_amqp10.broker.nodes.node import Lease, Node

    from .delivery_watch import DeliveryWatch, WatchedOutlet
    from .link_end_base import LinkEnd
    from .link_peer import LinkPeer
    from .native_message import Arriving


class _Pending:
    """A delivery to a receiver, decided by the end of the transaction.

    Attributes:
        watch: the watch of the delivery.
        acquired: whether it was sent in the transaction.
        outcome: the outcome that the receiver wants; None while it has sent none.
    """

    __slots__ = ("acquired", "outcome", "watch")

    def __init__(self, watch: DeliveryWatch) -> None:
        self.watch = watch
        self.acquired = False
        self.outcome: Any = None

    @property
    def lease(self) -> Lease | None:
        return self.watch.lease

    @property
    def removes(self) -> bool:
        return self.outcome is not None and self.watch.outlet.accepts(self.outcome)

    def commit(self) -> None:
        if self.outcome is None:
            self.watch.leave_transaction()
        else:
            self.watch.settle_as(self.outcome)

    def rollback(self) -> None:
        if self.acquired:
            self.watch.give_back()
        else:
            self.watch.leave_transaction()


class TransactionalWork:
    """One transaction.

    Args:
        peer: the connection that it belongs to.
        control: the link that it was declared on.
        txn_id: its id.

    Attributes:
        control: as given.
        id: its id.
        state: the state of a transfer to its controller.
        timer: cancels the task that waits for the time-out.
    """

    __slots__ = (
        "_accepted",
        "_outlets",
        "_pending",
        "_posted",
        "_transaction",
        "control",
        "id",
        "state",
        "timer",
    )

    def __init__(self, peer: LinkPeer, control: LinkEnd[Any], txn_id: bytes) -> None:
        self.control: Final = control
        self.id: Final = txn_id
        self.state: TransactionalState = TransactionalState(txn_id=txn_id)
        self._accepted: TransactionalState = TransactionalState(txn_id=txn_id, outcome=ACCEPTED)
        self.timer: trio.CancelScope = trio.CancelScope()
        self._transaction = peer.begin_transaction(self._forget_states)
        self._posted: list[Delivery] = []
        self._pending: dict[DeliveryWatch, _Pending] = {}
        self._outlets: dict[WatchedOutlet, None] = {}

    @property
    def committing(self) -> bool:
        """Whether its commit is being written: nothing changes it any more."""
        return self._transaction.committing

    @property
    def failure(self) -> tuple[str, str] | None:
        """The condition and description of a rollback by the container, or None."""
        return self._transaction.failure

    # -- posting (4.4.1) --------------------------------------------------------------------

    def post(self, node: Node, delivery: Delivery, refused: RefusedError | None = None) -> None:
        """Hold a message until the commit, and send its provisional outcome.

        If it is ``refused``, by a permission or by the node, the transaction is rolled back: many a controller ignores that
        outcome, so its discharge must not be accepted any more (4.4.1).
        """
        state = self._accepted
        try:
            if refused is not None:
                raise refused
            self._transaction.post(node, cast("Arriving", delivery), len(delivery.payload))
            self._posted.append(delivery)
        except (RefusedError, RemoteProtocolError) as refusal:
            self.refuse(refusal)
            outcome = Rejected(error=Error(condition=refusal.condition, description=refusal.description))
            if not delivery.link.permits(outcome):
                return
            state = TransactionalState(txn_id=self.id, outcome=outcome)
        with suppress(LocalProtocolError):  # The link is gone, but the message still counts.
            delivery.link.session.settlement.dispose(delivery, state)

    def _forget_states(self) -> None:
        """Remove the provisional outcomes: the nodes give the posted messages others."""
        posted, self._posted = self._posted, []
        for delivery in posted:
            delivery.state = None

    # -- retiring (4.4.2) -------------------------------------------------------------------

    def retire(self, watch: DeliveryWatch, outcome: Any) -> None:
        """Give a delivery this outcome at the commit."""
        self._pend(watch).outcome = outcome

    def drop(self, watch: DeliveryWatch) -> bool:
        """Remove a delivery, unless it was acquired in the transaction; then return True."""
        if self._pending[watch].acquired:
            return True
        self._transaction.drop(self._pending.pop(watch))
        watch.work = None
        return False

    # -- acquiring (4.4.3) ------------------------------------------------------------------

    def enlist(self, outlet: WatchedOutlet) -> None:
        """Acquire further messages of this outlet in the transaction."""
        self._outlets[outlet] = None

    def acquire(self, watch: DeliveryWatch) -> None:
        """Note that a delivery was sent in the transaction."""
        self._pend(watch).acquired = True

    def consume(self, lease: Lease) -> None:
        """Accept, at the commit, a message that was sent settled (4.4.4)."""
        self._transaction.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=lease.released))

    def _pend(self, watch: DeliveryWatch) -> _Pending:
        pending = self._pending.get(watch)
        if pending is None:
            pending = self._pending[watch] = _Pending(watch)
            self._transaction.add(pending)
            watch.work = self
        return pending

    # -- the end ----------------------------------------------------------------------------

    def commit(self, then: Callable[[], object]) -> None:
        """Commit all work, or none: ``failure`` has the reason then.

        ``then`` is called when that is decided.
        """
        self.timer.cancel()
        self._forget_states()
        self._transaction.commit(then)

    def fail(self, condition: str, description: str) -> None:
        """Roll back now; the controller gets this error when it discharges."""
        self._transaction.fail(condition, description)

    def refuse(self, refusal: RefusedError | RemoteProtocolError) -> None:
        """Roll back now, because a posted message was refused or lost."""
        self._transaction.refuse(refusal)

    def end(self) -> None:
        """End the transaction, and roll it back if it was not committed."""
        self.timer.cancel()
        self._transaction.rollback()
        self._pending.clear()
        for outlet in self._outlets:
            outlet.leave(self.id)
        self._outlets.clear()
