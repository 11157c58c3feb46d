"""Declares and discharges the transactions of one connection (4.2, 4.3).

A node for control links only, made for each peer: a transaction is its controller's, may be used
on every session of the connection, and ends with the control link that declared it. A transaction
that lasts too long is rolled back, and remembered until its controller asks: then it is told
``amqp:transaction:timeout``.

A control link takes its turn after all else that came in the same read, so that every transfer
and outcome that went before a discharge is part of it, on whichever link it came.

Knows control links and which transactions there are; what is done in them is the business of ``transactional_work``.
"""

from __future__ import annotations

import logging
import uuid
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.container.nodes.node import Node, RefusedError
from trio_amqp10.engine.receiver import ReceiverLink
from trio_amqp10.errors import Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.spec import TYPES
from trio_amqp10.spec.messaging import Rejected
from trio_amqp10.spec.transactions import Declare, Declared, Discharge, TransactionalState, TxnCapability
from trio_amqp10.spec.transport import Error

from .inlets import ReceiverInlet
from .transactional_work import TransactionalWork

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import Inlet
    from trio_amqp10.container.protocols.amqp10.native_message import Arriving
    from trio_amqp10.peer.delivery import Delivery

    from .delivery_watch import DeliveryWatch, WatchedWork
    from .link_end import LinkEnd
    from .link_peer import LinkPeer

__all__ = ["CAPABILITIES", "CONTROL_CREDIT", "ControlInlet", "Coordinator"]

_log = logging.getLogger("trio_amqp10.container")

CAPABILITIES: Final = (
    TxnCapability.LOCAL_TRANSACTIONS,
    TxnCapability.MULTI_TXNS_PER_SSN,
    TxnCapability.MULTI_SSNS_PER_TXN,
)
CONTROL_CREDIT: Final = 10
"""Declares and discharges that a controller may send ahead; each is answered at once."""

_MOST: Final = 1000
"""Transactions that one connection may have open."""

_SENT_SETTLED: Final = "a declare or discharge must not be sent settled (4.2, 4.3)"
_DETACHED: Final = "its link was detached here before the message had come"
_NO_WORK: Final = "no transactional work on a control link: send it without a transactional-state (4.1)"


class ControlInlet(ReceiverInlet):
    """A control link: its turn comes last, and it is served also while the service ends."""

    __slots__ = ("_is_last",)

    def begin(self) -> None:
        self._is_last = True  # what came already came alone: there was no transaction to work for
        super().begin()

    def take(self) -> Arriving | None:
        # A message that waits for permission came before: it is part of what is discharged.
        if not self._queue or self.peer.guard.pending_answers:
            return None
        return self._take()

    def _post(self) -> None:
        """Nothing here is work of a transaction: the coordinator refuses what claims to be (4.1)."""

    def read_requests(self) -> None:
        """What was waited for is decided."""
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
        peer: whose they are.
        timeout: seconds that a transaction may take; None for any time.

    Attributes:
        works: its transactions, by the names that they have on the wire.
    """

    accepts_senders = exempt_from_watermark = True

    def __init__(
        self,
        peer: LinkPeer,
        *,
        timeout: float | None,
    ) -> None:
        super().__init__("")
        self.peer: LinkPeer = weakref.proxy(peer)  # which owns this: no cycle
        self._timeout = timeout
        self.works: dict[bytes, TransactionalWork] = {}

    # -- control links ----------------------------------------------------------------------

    def on_arrivals(self, inlet: Inlet) -> None:
        assert isinstance(inlet, ControlInlet)
        while (request := inlet.take()) is not None:
            work = request.remote_state.__class__ is TransactionalState
            if request.settled:
                if work:
                    self._fail_work(request.remote_state.txn_id)
                inlet.close(Condition.ILLEGAL_STATE.value, _SENT_SETTLED)
            elif work:  # it is part of no transaction, and its sender hears so
                self._refuse(inlet, request, Condition.ILLEGAL_STATE.value, _NO_WORK)
            else:
                self._answer(inlet, request)

    def _fail_work(self, txn_id: object) -> None:
        """A settled message of this transaction was refused: its sender learns it from the discharge (4.4.4.1)."""
        work = self.find(txn_id)
        if work is not None:
            work.fail(Condition.ILLEGAL_STATE, _NO_WORK)

    def refuse(self, txn_id: object, refusal: RefusedError) -> None:
        """A message of this transaction was refused, or dropped on its way here: roll back now."""
        work = self.find(txn_id)
        if work is not None:
            work.refuse(refusal)

    def _on_dropped(self, state: object) -> None:
        """A message came on a link that was detached here, and was dropped."""
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
                "a coordinator takes a declare or a discharge in an amqp-value section",
            )

    def read_requests(self) -> None:
        """Every message that came has been found to be permitted, or not: go on."""
        for inlet in list(self.inlets):
            assert isinstance(inlet, ControlInlet)
            inlet.read_requests()

    def remove_inlet(self, inlet: Inlet) -> None:
        """A control link is gone: its transactions are rolled back (4.1)."""
        super().remove_inlet(inlet)
        assert isinstance(inlet, ControlInlet)
        for work in [work for work in self.works.values() if work.control is inlet]:
            self._end(work)

    def close(self) -> None:
        """The connection is over."""
        for work in list(self.works.values()):
            self._end(work)

    # -- declare (4.2) ----------------------------------------------------------------------

    def _declare(self, inlet: ControlInlet, request: Delivery, declare: Declare) -> None:
        if declare.global_id is not None:
            self._refuse(
                inlet, request, Condition.NOT_IMPLEMENTED.value, "no distributed transactions here (4.5.7)"
            )
        elif len(self.works) >= _MOST or self.peer.resting:
            reason = "the service ends" if self.peer.resting else f"{_MOST} transactions are open"
            self._refuse(inlet, request, Condition.RESOURCE_LIMIT_EXCEEDED.value, reason)
        else:
            work = TransactionalWork(self.peer, inlet, uuid.uuid4().bytes)
            self.works[work.id] = work
            self.peer.connection.engine.context.on_dropped = self._on_dropped
            self._say(request, Declared(txn_id=work.id))
            if self._timeout is not None:
                assert self.peer.nursery is not None
                self.peer.nursery.start_soon(self._expire, work, self._timeout)

    async def _expire(self, work: TransactionalWork, seconds: float) -> None:
        with work.timer:
            await trio.sleep(seconds)
            work.fail(Condition.TRANSACTION_TIMEOUT, f"it took longer than {seconds:g} s")

    # -- discharge (4.3) --------------------------------------------------------------------

    def _discharge(self, inlet: ControlInlet, request: Delivery, discharge: Discharge) -> None:
        work = self.find(discharge.txn_id)
        if work is None:
            self._refuse(
                inlet, request, Condition.TRANSACTION_UNKNOWN_ID.value, "there is no transaction of that id"
            )
            return
        if self._has_partial(work):
            work.control.close(
                Condition.TRANSACTION_ROLLBACK.value, "discharged while a message was partly sent (4.4.1)"
            )
            return
        del self.works[work.id]
        if discharge.fail:
            work.end()
            self._say(request, None)
        elif work.failure is not None:
            self._discharged(inlet, request, work)
        else:
            work.commit(partial(self._discharged, inlet, request, work))

    def _discharged(self, inlet: ControlInlet, request: Delivery, work: TransactionalWork) -> None:
        work.end()
        if work.failure is None:
            self._say(request, None)
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
        """Forget a transaction; one that was not committed is rolled back."""
        del self.works[work.id]
        work.end()

    # -- answers ----------------------------------------------------------------------------

    @staticmethod
    def _say(request: Delivery, outcome: Any) -> None:
        with suppress(LocalProtocolError):  # its link is gone: there is no one to answer
            if outcome is None:
                request.accept()
            else:
                request.link.session.settlement.dispose(request, outcome)

    def _refuse(self, inlet: ControlInlet, request: Delivery, condition: str, description: str) -> None:
        """Reject, or detach where the controller's source does not permit that (4.2, 4.3)."""
        _log.debug("%r: refused, %s: %s", self, condition, description)
        rejected = _rejected(condition, description)
        if request.link.permits(rejected):
            self._say(request, rejected)
        else:
            inlet.close(condition, description)

    # -- work (4.4) -------------------------------------------------------------------------

    def find(self, txn_id: object) -> TransactionalWork | None:
        """The transaction of this id, whether it lives or was rolled back here."""
        return self.works.get(txn_id) if isinstance(txn_id, bytes) else None

    def live(self, txn_id: object) -> TransactionalWork | None:
        """The transaction of this id, if there is still work to be done in it."""
        work = self.find(txn_id)
        return None if work is None or work.failure is not None else work

    def post(
        self, inlet: LinkEnd[Any], node: Node, delivery: Delivery, refusal: RefusedError | None = None
    ) -> None:
        """A message came that is part of a transaction (4.4.1); ``refusal`` says that its sender may not send it."""
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
            with suppress(LocalProtocolError):  # its link is gone: no answer reaches its sender
                delivery.reject(*failure)

    def retire(self, watch: DeliveryWatch) -> bool:
        """The peer has spoken of a delivery in a transaction, or its link is gone; True if that counts now (4.4.2)."""
        delivery, work = watch.delivery, watch.work
        if work is not None and work.committing:
            return False
        state = delivery.state
        if not isinstance(state, TransactionalState):
            if state is None or work is None:
                return False  # acquired, and nothing said of it: the discharge decides
            return not self._conflict(work, watch)
        found = self.find(state.txn_id)
        if work is not None and found is not work:
            acquired = self._conflict(work, watch)
            if acquired:
                return False
        if found is None:
            delivery.state = None
            watch.outlet.close(
                Condition.TRANSACTION_UNKNOWN_ID.value, "an outcome in a transaction that there is none of"
            )
            return True
        if found.failure is not None:
            delivery.state = None  # it was rolled back, and this with it
            return True
        if state.outcome is not None:
            found.retire(watch, state.outcome)
        return False

    @staticmethod
    def _conflict(work: WatchedWork, watch: DeliveryWatch) -> bool:
        """An outcome outside of the transaction that the delivery is part of ends that (4.4.2).

        True if the delivery was acquired in it, so that it went back.
        """
        acquired = work.drop(watch)
        work.control.close(
            Condition.TRANSACTION_ROLLBACK.value, "a delivery of this transaction was given another outcome"
        )
        return acquired


def _rejected(condition: str, description: str) -> Rejected:
    return Rejected(error=Error(condition=condition, description=description))
