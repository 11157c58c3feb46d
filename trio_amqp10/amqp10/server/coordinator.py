"""The coordinator of the transactions of one connection (4.2, 4.3).

The coordinator is a node for control links only, one for each peer. A transaction belongs to its controller, may be
used on every session of the connection, and ends with the control link that declared it. A transaction
that lasts too long is rolled back, and remembered until its controller discharges it: the answer is then
``amqp:transaction:timeout``.

A control link is served after all other frames of the same read, so that every transfer
and outcome that was sent before a discharge is part of it, on any link.

Knows control links and which transactions there are; ``transactional_work`` knows their work.
"""

from __future__ import annotations

import logging
import uuid
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp10.engine.receiver import ReceiverLink
from trio_amqp10.amqp10.spec import TYPES
from trio_amqp10.amqp10.spec.messaging import Rejected
from trio_amqp10.amqp10.spec.transactions import (
    Declare,
    Declared,
    Discharge,
    TransactionalState,
    TxnCapability,
)
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.broker.nodes.node import Node, RefusedError
from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError

from .inlets import ReceiverInlet
from .transactional_work import TransactionalWork

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.delivery import Delivery
    from trio_amqp10.broker.nodes.node import Inlet

    from .delivery_watch import DeliveryWatch
    from .link_end_base import LinkEnd
    from .link_peer import LinkPeer
    from .native_message import Arriving

_log = logging.getLogger("trio_amqp10.container")

CAPABILITIES: Final = (
    TxnCapability.LOCAL_TRANSACTIONS,
    TxnCapability.MULTI_TXNS_PER_SSN,
    TxnCapability.MULTI_SSNS_PER_TXN,
)
CONTROL_CREDIT: Final = 10
"""The credit of a controller: each declare or discharge is answered at once."""

_MOST: Final = 1000
"""The most transactions that one connection may have open."""

_SENT_SETTLED: Final = "a declare or discharge must not be sent settled (4.2, 4.3)"
_DETACHED: Final = "the link was detached before the whole message had arrived"
_NO_WORK: Final = "no transactional work on a control link: send it without a transactional-state (4.1)"


class ControlInlet(ReceiverInlet):
    """A control link.

    It is served last, and also while the container finishes.
    """

    __slots__ = ("_is_last",)

    def begin(self) -> None:
        self._is_last = True  # Serve present requests at once: no transaction exists yet that has work.
        super().begin()

    def take(self) -> Arriving | None:
        # A message that waits for permission arrived before the discharge, so it is part of the transaction.
        if not self._queue or self.peer.guard.pending_answers:
            return None
        return self._take()

    def _post(self) -> None:
        """Do nothing: the coordinator refuses work of a transaction on this link (4.1)."""

    def read_requests(self) -> None:
        """Serve the requests that waited for messages to get permission."""
        super().wake()

    def wake(self) -> None:
        if self._is_last:
            self._is_last = False
            super().wake()
        else:
            self._is_last = True
            self._touch()


class Coordinator(Node):
    """The transactions of one connection.

    Args:
        peer: the connection.
        timeout: seconds that a transaction may take; None for any time.

    Attributes:
        works: its transactions, by their ids on the wire.
    """

    accepts_senders = exempt_from_watermark = True

    def __init__(
        self,
        peer: LinkPeer,
        *,
        timeout: float | None,
    ) -> None:
        super().__init__("")
        self.peer: LinkPeer = weakref.proxy(peer)  # The peer refers to this coordinator: avoid a cycle.
        self._timeout = timeout
        self.works: dict[bytes, TransactionalWork] = {}

    # -- control links ----------------------------------------------------------------------

    def on_arrivals(self, inlet: Inlet) -> None:
        assert isinstance(inlet, ControlInlet)
        while (request := inlet.take()) is not None:
            work = request.remote_state.__class__ is TransactionalState
            if request.settled:
                # No outcome can answer a settled request, so the link is closed (4.2, 4.3).
                if work:
                    self._fail_work(request.remote_state.txn_id)
                inlet.close(Condition.ILLEGAL_STATE.value, _SENT_SETTLED)
            elif work:
                # A control message cannot be work of a transaction (4.1), and its sender gets an outcome.
                self._refuse(inlet, request, Condition.ILLEGAL_STATE.value, _NO_WORK)
            else:
                self._answer(inlet, request)

    def _fail_work(self, txn_id: object) -> None:
        """Fail the transaction of a settled message that was refused.

        Its sender gets the error with the discharge (4.4.4.1).
        """
        work = self.find(txn_id)
        if work is not None:
            work.fail(Condition.ILLEGAL_STATE, _NO_WORK)

    def refuse(self, txn_id: object, refusal: RefusedError) -> None:
        """Roll a transaction back, because a message of it was refused or dropped."""
        work = self.find(txn_id)
        if work is not None:
            work.refuse(refusal)

    def _on_dropped(self, state: object) -> None:
        """Fail the transaction of a message that arrived on a detached link."""
        if isinstance(state, TransactionalState):
            self.refuse(state.txn_id, RefusedError(Condition.ILLEGAL_STATE, _DETACHED))

    def _answer(self, inlet: ControlInlet, request: Delivery) -> None:
        try:
            body = TYPES.resolve(request.message.body)
        except RemoteProtocolError as fault:
            self._refuse(inlet, request, fault.condition, fault.description)
            return
        if isinstance(body, Declare):
            self._declare(inlet, request, body)
        elif isinstance(body, Discharge):
            self._discharge(inlet, request, body)
        else:
            self._refuse(
                inlet,
                request,
                Condition.NOT_IMPLEMENTED.value,
                f"a body of type {type(body).__name__}: expected a declare or a discharge in an amqp-value section (4.2, 4.3)",
            )

    def read_requests(self) -> None:
        """Continue, because all messages that arrived are now permitted or refused."""
        for inlet in list(self.inlets):
            assert isinstance(inlet, ControlInlet)
            inlet.read_requests()

    def remove_inlet(self, inlet: Inlet) -> None:
        """Remove a control link, and roll back its transactions (4.1)."""
        super().remove_inlet(inlet)
        assert isinstance(inlet, ControlInlet)
        for work in [work for work in self.works.values() if work.control is inlet]:
            self._end(work)

    def close(self) -> None:
        """Roll back all transactions, because the connection is over."""
        for work in list(self.works.values()):
            self._end(work)

    # -- declare (4.2) ----------------------------------------------------------------------

    def _declare(self, inlet: ControlInlet, request: Delivery, declare: Declare) -> None:
        if declare.global_id is not None:
            self._refuse(
                inlet,
                request,
                Condition.NOT_IMPLEMENTED.value,
                "distributed transactions are not supported (4.5.7)",
            )
        elif len(self.works) >= _MOST or self.peer.resting:
            reason = "the container finishes" if self.peer.resting else f"{_MOST} transactions are open"
            self._refuse(inlet, request, Condition.RESOURCE_LIMIT_EXCEEDED.value, reason)
        else:
            work = TransactionalWork(self.peer, inlet, uuid.uuid4().bytes)
            self.works[work.id] = work
            self.peer.connection.engine.context.on_dropped = self._on_dropped
            self._settle(request, Declared(txn_id=work.id))
            if self._timeout is not None:
                assert self.peer.nursery is not None
                self.peer.nursery.start_soon(self._expire, work, self._timeout)

    async def _expire(self, work: TransactionalWork, seconds: float) -> None:
        with work.timer:
            await trio.sleep(seconds)
            work.fail(Condition.TRANSACTION_TIMEOUT, f"the transaction took longer than {seconds:g} s")

    # -- discharge (4.3) --------------------------------------------------------------------

    def _discharge(self, inlet: ControlInlet, request: Delivery, discharge: Discharge) -> None:
        work = self.find(discharge.txn_id)
        if work is None:
            self._refuse(
                inlet, request, Condition.TRANSACTION_UNKNOWN_ID.value, "there is no transaction of that id"
            )
            return
        if self._has_partial(work):
            # A message of the transaction is incomplete, so it can be neither committed nor dropped (4.4.1).
            work.control.close(
                Condition.TRANSACTION_ROLLBACK.value, "discharged while a message was partly sent (4.4.1)"
            )
            return
        del self.works[work.id]
        if discharge.fail:
            work.end()
            self._settle(request, None)
        elif work.failure is not None:
            # It was rolled back before, so this discharge is answered with the reason.
            self._discharged(inlet, request, work)
        else:
            work.commit(partial(self._discharged, inlet, request, work))

    def _discharged(self, inlet: ControlInlet, request: Delivery, work: TransactionalWork) -> None:
        work.end()
        if work.failure is None:
            self._settle(request, None)
        else:
            self._refuse(inlet, request, *work.failure)

    def _has_partial(self, work: TransactionalWork) -> bool:
        for link in self.peer.connection.engine.names:
            if isinstance(link, ReceiverLink) and link.incoming is not None:
                state = link.incoming.delivery.remote_state
                if isinstance(state, TransactionalState) and state.txn_id == work.id:
                    return True
        return False

    def _end(self, work: TransactionalWork) -> None:
        """Forget a transaction; roll it back if it was not committed."""
        del self.works[work.id]
        work.end()

    # -- answers ----------------------------------------------------------------------------

    @staticmethod
    def _settle(request: Delivery, outcome: Any) -> None:
        with suppress(LocalProtocolError):  # The link is gone, so no answer is possible.
            if outcome is None:
                request.accept()
            else:
                request.link.session.settlement.dispose(request, outcome)

    def _refuse(self, inlet: ControlInlet, request: Delivery, condition: str, description: str) -> None:
        """Reject a request, or detach if the controller's source has no rejection.

        Sections 4.2 and 4.3 require one of the two.
        """
        _log.debug("%r: refused, %s: %s", self, condition, description)
        rejected = _rejected(condition, description)
        if request.link.permits(rejected):
            self._settle(request, rejected)
        else:
            inlet.close(condition, description)

    # -- work (4.4) -------------------------------------------------------------------------

    def find(self, txn_id: object) -> TransactionalWork | None:
        """Return the transaction of this id, if it is live or was rolled back here."""
        return self.works.get(txn_id) if isinstance(txn_id, bytes) else None

    def live(self, txn_id: object) -> TransactionalWork | None:
        """Return the transaction of this id, if work can still be added to it."""
        work = self.find(txn_id)
        return None if work is None or work.failure is not None else work

    def post(
        self, inlet: LinkEnd[Any], node: Node, delivery: Delivery, refusal: RefusedError | None = None
    ) -> None:
        """Add a message to its transaction (4.4.1).

        If there is a ``refusal``, the sender may not send the message, and the transaction is rolled back.
        """
        work = self.find(delivery.remote_state.txn_id)
        if work is not None and work.failure is None:
            work.post(node, delivery, refusal)
            return
        failure = (Condition.TRANSACTION_UNKNOWN_ID.value, "there is no transaction of that id")
        if work is not None and work.failure is not None:
            failure = work.failure
        elif delivery.settled:
            inlet.close(*failure)
        if not delivery.settled:
            with suppress(LocalProtocolError):  # The link is gone, so no answer can reach its sender.
                delivery.reject(*failure)

    def retire(self, watch: DeliveryWatch) -> bool:
        """Add the outcome of a delivery to its transaction (4.4.2).

        It is called when the peer sends a state that belongs to a transaction, or when the link of the delivery is gone.

        Returns:
            True if the outcome counts now, outside of any transaction.
        """
        delivery, work = watch.delivery, watch.work
        if work is not None and work.committing:
            return False  # The commit is being written, and settles the delivery.
        state = delivery.state
        if not isinstance(state, TransactionalState):
            if state is None or work is None:
                # The delivery is acquired and has no outcome yet: the discharge decides (4.4.3).
                return False
            # The outcome is outside of the transaction that the delivery is part of (4.4.2).
            return not self._conflict(work, watch)
        found = self.find(state.txn_id)
        if work is not None and found is not work:
            # The outcome names another transaction than the one that the delivery is part of (4.4.2).
            acquired = self._conflict(work, watch)
            if acquired:
                return False
        if found is None:
            # The peer names a transaction that it has not declared, so its link ends.
            delivery.state = None
            watch.outlet.close(
                Condition.TRANSACTION_UNKNOWN_ID.value, "an outcome names a transaction that does not exist"
            )
            return True
        if found.failure is not None:
            delivery.state = None  # The transaction was rolled back, and this outcome with it.
            return True
        if state.outcome is not None:
            found.retire(watch, state.outcome)
        return False

    @staticmethod
    def _conflict(work: TransactionalWork, watch: DeliveryWatch) -> bool:
        """End the transaction of a delivery that got an outcome outside of it (4.4.2).

        Return True if the delivery was acquired in it, so that it went back.
        """
        acquired = work.drop(watch)
        work.control.close(
            Condition.TRANSACTION_ROLLBACK.value, "a delivery of this transaction was given another outcome"
        )
        return acquired


def _rejected(condition: str, description: str) -> Rejected:
    return Rejected(error=Error(condition=condition, description=description))
