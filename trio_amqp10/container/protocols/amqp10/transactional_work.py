"""The undecided work of a transaction: posted, retired and acquired (4.4).

================  ==============================  ====================================================
the work          at the commit                   at a rollback
================  ==============================  ====================================================
posted            goes to its node, in order      is dropped
retired           the outcome counts              the outcome is as never said; a delivery that its
                                                  receiver has settled gets its default outcome
acquired          stays with its receiver         goes back to the node
================  ==============================  ====================================================

``transactions`` describes how that becomes one commit, and what nodes see of it.

Knows deliveries and their states on one side, and the transaction on the other.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import trio

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.container.transactions import LeaseAnswer
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.spec.messaging import ACCEPTED, Rejected
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.nodes.node import Lease, Node
    from trio_amqp10.container.protocols.amqp10.native_message import Arriving
    from trio_amqp10.container.transactions import Transaction
    from trio_amqp10.peer.delivery import Delivery

    from .delivery_watch import DeliveryWatch
    from .link_end import LinkEnd

__all__ = ["TransactionalWork"]


class _Pending:
    """A delivery to a receiver, which the transaction decides on.

    Attributes:
        watch: of the delivery.
        acquired: whether it went out in the transaction.
        outcome: what the receiver wants it to have; None while it has not said.
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


class TransactingPeer(Protocol):
    """The connection that declares a transaction."""

    def begin_transaction(self, on_rollback: Callable[[], object] | None = None) -> Transaction:
        """See ``ConnectedPeerBase.begin_transaction``."""
        ...


class EnlistedOutlet(Protocol):
    """A link whose messages are acquired in a transaction: see ``SenderOutlet``."""

    def leave(self, txn_id: bytes) -> None:
        """The transaction is over."""
        ...


class TransactionalWork:
    """One transaction.

    Args:
        peer: whose it is.
        control: the link that it is declared on.
        txn_id: its name.

    Attributes:
        control: as given.
        id: its name.
        state: what a transfer to its controller says.
        timer: the wait for its time-out.
    """

    __slots__ = (
        "_outlets",
        "_pending",
        "_posted",
        "_transaction",
        "control",
        "id",
        "state",
        "timer",
    )

    def __init__(self, peer: TransactingPeer, control: LinkEnd[Any], txn_id: bytes) -> None:
        self.control: Final = control
        self.id: Final = txn_id
        self.state: TransactionalState = TransactionalState(txn_id=txn_id)
        self.timer: trio.CancelScope = trio.CancelScope()
        self._transaction = peer.begin_transaction(self._forget_states)
        self._posted: list[Delivery] = []
        self._pending: dict[DeliveryWatch, _Pending] = {}
        self._outlets: dict[EnlistedOutlet, None] = {}

    @property
    def committing(self) -> bool:
        """Whether its commit is on the way to the disk: nothing changes it any more."""
        return self._transaction.committing

    @property
    def failure(self) -> tuple[str, str] | None:
        """Why it was rolled back here, condition and description; None while it lives."""
        return self._transaction.failure

    # -- posting (4.4.1) --------------------------------------------------------------------

    def post(self, node: Node, delivery: Delivery, refused: RefusedError | None = None) -> None:
        """Hold a message back, and tell the outcome that it will have.

        If it is ``refused``, here or by the node, the transaction is rolled back: a discharge cannot be accepted any more, whatever
        the controller makes of that outcome (4.4.1). Many a controller does not look.
        """
        outcome: Any = ACCEPTED
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
        with suppress(LocalProtocolError):  # its link is gone, and the message came all the same
            state = TransactionalState(txn_id=self.id, outcome=outcome)
            delivery.link.session.settlement.dispose(delivery, state)

    def _forget_states(self) -> None:
        """What was posted is a delivery like any other: its node gives it an outcome, or no one does."""
        posted, self._posted = self._posted, []
        for delivery in posted:
            delivery.state = None

    # -- retiring (4.4.2) -------------------------------------------------------------------

    def retire(self, watch: DeliveryWatch, outcome: Any) -> None:
        """A delivery shall have this outcome."""
        self._pend(watch).outcome = outcome

    def drop(self, watch: DeliveryWatch) -> bool:
        """A delivery has nothing to do with the transaction any more, but where it was acquired in it: then True."""
        if self._pending[watch].acquired:
            return True
        self._transaction.drop(self._pending.pop(watch))
        watch.work = None
        return False

    # -- acquiring (4.4.3) ------------------------------------------------------------------

    def enlist(self, outlet: EnlistedOutlet) -> None:
        """What this outlet gives from now on is acquired in the transaction."""
        self._outlets[outlet] = None

    def acquire(self, watch: DeliveryWatch) -> None:
        """A delivery went out, to be settled in the transaction."""
        self._pend(watch).acquired = True

    def consume(self, lease: Lease) -> None:
        """A message went out settled: all that is left to know is whether it went (4.4.4)."""
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
        """Do it all; or nothing, and ``failure`` says why. ``then`` is called when that is decided."""
        self.timer.cancel()
        self._forget_states()
        self._transaction.commit(then)

    def fail(self, condition: str, description: str) -> None:
        """Roll back now, and tell the controller when it asks."""
        self._transaction.fail(condition, description)

    def refuse(self, refusal: RefusedError | RemoteProtocolError) -> None:
        """A message that was posted is refused, or lost on its way here: roll back now."""
        self._transaction.refuse(refusal)

    def end(self) -> None:
        """It was discharged, or its control link is gone: what was not committed is rolled back."""
        self.timer.cancel()
        self._transaction.rollback()
        self._pending.clear()
        for outlet in self._outlets:
            outlet.leave(self.id)
        self._outlets.clear()
