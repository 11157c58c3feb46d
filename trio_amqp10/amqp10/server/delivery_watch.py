"""Watches that report the outcome of a delivery to the lease of its message (3.4).

A lease is a message that a node has given to a link and that has no outcome yet.

Knows one delivery, its present link, and which method of a lease belongs to each outcome of AMQP 1.0; does not know
what the outcome means to the node.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.amqp10.engine.delivery import is_terminal
from trio_amqp10.amqp10.spec.messaging import RELEASED, Accepted, Modified, Rejected
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.transaction_inlets import attempt
from trio_amqp10.core.errors import Condition, LocalProtocolError

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.delivery import OutgoingDelivery
    from trio_amqp10.broker.nodes.node import Lease

    from .link_peer import LinkPeer
    from .transactional_work import TransactionalWork

_log = logging.getLogger("trio_amqp10.container")

_FAILED: Final = RefusedError(Condition.INTERNAL_ERROR, "the node failed")


class WatchedOutlet(Protocol):
    """The link of a delivery: see ``SenderOutlet``."""

    @property
    def peer(self) -> LinkPeer:
        """The connection of the link."""
        ...

    def report(self, delivery: OutgoingDelivery, lease: Lease) -> None:
        """Report the outcome of a delivery to the lease of its message."""
        ...

    def lose(self, lease: Lease) -> None:
        """Report to the lease that the link has ended and the outcome is unknown."""
        ...

    def accepts(self, outcome: Any) -> bool:
        """Whether the message is gone after this outcome."""
        ...

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """End the link with this error."""
        ...

    def fail(self) -> None:
        """End the link because the node raised the exception that is being handled."""
        ...

    def leave(self, txn_id: bytes) -> None:
        """Note that a transaction of the link is over."""
        ...


class DeliveryWatch:
    """A watch for the outcome of one delivery, or for the end of its link.

    The connection wakes it. Nearly all deliveries are accepted and settled at once: the link lists these instead
    (``SenderLink.accepted``).

    Attributes:
        outlet: the link that sent it.
        delivery: the delivery.
        size: octets that it counts while its outcome is not known.
        lease: the lease of its message; None if its outcome does not matter.
        work: the transaction that decides on the delivery, if there is one.
    """

    __slots__ = ("delivery", "lease", "outlet", "size", "touched", "work")

    def __init__(
        self, outlet: WatchedOutlet, delivery: OutgoingDelivery, size: int, lease: Lease | None
    ) -> None:
        self.touched: bool = False
        self.outlet: WatchedOutlet = outlet
        self.delivery: OutgoingDelivery = delivery
        self.work: TransactionalWork | None = None
        self.size: int = size
        self.lease: Final = lease
        outlet.peer.add_unsettled(size)

    @property
    def record(self) -> int | str | None:
        """The key of the message in the store; None if it is not stored."""
        return None if self.lease is None else self.lease.record

    def wake(self) -> None:
        try:
            self._look()
        except Exception:
            self.outlet.fail()

    def _look(self) -> None:
        delivery = self.delivery
        if delivery.watcher is not self:
            return  # The outcome was reported after this watch was scheduled.
        if (
            self.work is not None or delivery.state.__class__ is TransactionalState
        ) and not self.outlet.peer.coordinator.retire(self):
            return  # The end of the transaction decides.
        if not delivery.settled:
            link = delivery.link
            if link.session.settlement.is_live(delivery):
                if link.confirms and is_terminal(delivery.state):
                    self._confirm()
                return  # A state that is not terminal only reports progress (3.4.1).
            if link.terminus is not None and delivery.tag in link.terminus.unsettled:
                return  # The link may be attached again and resume the delivery.
        self._finish()

    def accept(self) -> None:
        """Report that the peer has accepted and settled the delivery.

        The caller must subtract ``size`` from the unsettled octets of the peer.
        """
        self.delivery.watcher = None
        if self.lease is not None:
            try:
                self.lease.accepted()
            except Exception as failure:
                self._refusal(failure)

    def _confirm(self) -> None:
        """Report the outcome and settle, for a receiver that settles second.

        If the node refuses the outcome, the final state is a rejection.
        """
        delivery = self.delivery
        delivery.watcher = None
        refusal = self._finish(confirming=True)
        if refusal is not None:
            error = Error(condition=refusal.condition, description=refusal.description)
            delivery.state = Rejected(error=error)
        elif isinstance(delivery.state, Rejected):
            # An error in the answer would mean that the node refused the outcome.
            delivery.state = Rejected()
        with suppress(LocalProtocolError):  # The node may have closed the link.
            delivery.settle()

    def move(self, outlet: WatchedOutlet) -> None:
        """Continue the delivery on another link."""
        self.outlet.peer.remove_unsettled(self.size)
        self.outlet = outlet
        outlet.peer.add_unsettled(self.size)

    def expire(self) -> None:
        """End the delivery, because its link will not be resumed.

        A later state from the peer is ignored.
        """
        delivery = self.delivery
        delivery.link.session.settlement.release(delivery)
        delivery.watcher = None
        self._finish()

    def finish_in_commit(self) -> bool:
        """Report the outcome now, so that its effect is part of the commit under way.

        The container settles the delivery after that commit is written.

        Returns:
            False if the store does not have the message, or a transaction decides: nothing was done.
        """
        if self.record is None or self.work is not None:
            return False
        self.delivery.watcher = None
        self._finish(confirming=True)
        return True

    def _finish(self, *, released: bool = False, confirming: bool = False) -> RefusedError | None:
        """Report the outcome to the lease; return the refusal of the node, if any."""
        delivery, outlet, lease = self.delivery, self.outlet, self.lease
        delivery.watcher = None  # The outcome is final, so no later event of the delivery counts.
        outlet.peer.remove_unsettled(self.size)
        if lease is None:
            return None
        try:
            if released:
                lease.released()
            elif confirming or delivery.settled:
                outlet.report(delivery, lease)
            else:
                outlet.lose(lease)
        except Exception as failure:
            return self._refusal(failure)
        return None

    def _refusal(self, failure: Exception) -> RefusedError | None:
        """Return the refusal that an exception of the lease means."""
        if isinstance(failure, RefusedError):
            return failure
        if isinstance(failure, LocalProtocolError):
            # A node that passes outcomes on may find that the link of the arrival is gone.
            _log.debug("%r: %s", self.outlet, failure)
            return None
        _log.error("the outcome of a delivery of %r was not taken", self.outlet, exc_info=failure)
        return _FAILED

    # -- at the end of a transaction (4.4.4) ------------------------------------------------

    def settle_as(self, outcome: Any) -> None:
        """Settle with this outcome, because the transaction was committed."""
        self._settle(outcome)
        self.delivery.settled = True  # If the link is gone, the outcome is still known.
        self._finish()

    def give_back(self) -> None:
        """Release a delivery that was acquired in a transaction that was rolled back.

        Transfers that are not sent yet need not be sent any more (4.4.3).
        """
        delivery = self.delivery
        delivery.watcher = None
        partial = delivery.link.partial
        if partial is not None and partial.delivery is delivery:
            partial.abort()
        self._settle(RELEASED)
        self._finish(released=True)

    def leave_transaction(self) -> None:
        """Make it a delivery without transaction and outcome again."""
        self.work = None
        if isinstance(self.delivery.state, TransactionalState):
            # The receiver has sent no later state that counts outside of the transaction.
            self.delivery.state = None
        self.wake()

    def _settle(self, outcome: Any) -> None:
        self.work = None
        delivery = self.delivery
        delivery.state = outcome
        delivery.watcher = None
        if not delivery.settled:
            with suppress(LocalProtocolError):
                delivery.settle()


class AbsentWatch:
    """The watch of a delivery from a restart until the peer resumes it.

    Attributes:
        delivery: the delivery.
        lease: the lease of its message.
    """

    __slots__ = ("_size", "delivery", "lease", "touched")

    def __init__(self, delivery: OutgoingDelivery, size: int, lease: Lease) -> None:
        self.touched: bool = False
        self.delivery: OutgoingDelivery = delivery
        self.lease: Final = lease
        self._size = size

    def wake(self) -> None:
        """Do nothing: without a link no outcome arrives."""

    def move(self, outlet: WatchedOutlet) -> None:
        """Continue the delivery on the link by which the peer resumes it."""
        self.delivery.watcher = DeliveryWatch(outlet, self.delivery, self._size, self.lease)

    def expire(self, default: Any) -> None:
        """End the delivery with ``default``, because its link will not be resumed.

        It is the default-outcome of its source (3.5.3); None if the source has none.
        """
        if default is None:
            self.lease.lost()
        else:
            report_outcome(self.lease, default)


def return_unsent(lease: Lease) -> None:
    """Release the lease of a message that was not sent.

    An exception of the node is logged, because further messages may have to be returned.
    """
    attempt(lease.released)


def accept_sent(lease: Lease) -> None:
    """Accept the lease of a message that was sent settled, so that it is gone.

    An exception of the node is logged, because the link is not at fault.
    """
    attempt(lease.accepted)


def report_outcome(lease: Lease, outcome: Any) -> None:
    """Call the method of the lease for this outcome.

    A state that is none of the four outcomes releases the message.
    """
    if isinstance(outcome, Accepted):
        lease.accepted()
    elif isinstance(outcome, Rejected):
        error = outcome.error
        if error is None:
            lease.rejected(None, None)
        else:
            lease.rejected(str(error.condition), error.description, error.info)
    elif isinstance(outcome, Modified):
        lease.modified(
            failed=bool(outcome.delivery_failed),
            undeliverable_here=bool(outcome.undeliverable_here),
            annotations=outcome.message_annotations,
        )
    else:
        lease.released()
