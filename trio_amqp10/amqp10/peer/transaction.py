"""Transactions for the controller: send and settle all or nothing (4.1).

A control link to the peer's coordinator declares the transaction (4.2) and discharges it (4.3). The work
between names the transaction: transfers, outcomes, and flows that acquire (4.4). Closing the control link
rolls back, so that no work of a lost controller takes effect.

Settlement: outcomes given in a transaction leave their deliveries unsettled until the discharge, because a
rollback must be able to undo them (4.4.4). Then both ends settle; the settlement that comes second finds no
delivery, and is ignored.

Uses only the public interface of a connection; knows nothing of the inside of a coordinator.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp10.message import Message, Value
from trio_amqp10.amqp10.spec.messaging import ACCEPTED, RELEASED, Accepted, Rejected, Source
from trio_amqp10.amqp10.spec.transactions import (
    Coordinator,
    Declare,
    Declared,
    Discharge,
    TransactionalState,
    TxnCapability,
)
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import AmqpError, LocalProtocolError
from trio_amqp10.net.waiters import EnteredWithAsync

from .errors import (
    ConnectionClosedError,
    LinkDetachedError,
    SessionEndedError,
    TransactionError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    describe,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from trio_amqp10.amqp10.spec.transport import Error

    from .delivery import Delivery, Outcome, OutgoingDelivery
    from .link import Link
    from .link_carriers import LinkConnection, LinkSession
    from .receiver import Receiver
    from .sender import Sender

_WANTED: Final = (
    TxnCapability.LOCAL_TRANSACTIONS,
    TxnCapability.MULTI_TXNS_PER_SSN,
    TxnCapability.MULTI_SSNS_PER_TXN,
)
_OUTCOMES: Final = tuple(
    Symbol(f"amqp:{name}:list") for name in ("accepted", "rejected", "released", "modified")
)
"""The outcomes of the control link's source.

With ``rejected`` among them, a coordinator refuses a request by an outcome; otherwise it must detach (4.2).
"""

_LIVE: Final = "live"
_ENDING: Final = "being discharged"
_COMMITTED: Final = "committed"
_ROLLED_BACK: Final = "rolled back"
_IN_DOUBT: Final = "in doubt"


class Transaction:
    """A declared transaction: pass it as ``transaction`` to send and settle.

    A message of ``sender.send(m, transaction=txn)`` is available after the commit.
    ``delivery.accept(transaction=txn)`` and the other outcomes take effect at the commit. Messages of
    ``receiver.grant(n, transaction=txn)`` are given back by a rollback. Any number of tasks may use it, and
    any number of transactions may be open.

    Attributes:
        id: the coordinator's name for it: at most 32 octets.
        state: ``"live"``, ``"being discharged"``, ``"committed"``, ``"rolled back"``, or ``"in doubt"``.
    """

    def __init__(self, control: Sender, txn_id: bytes, *, keep: bool) -> None:
        self.id = txn_id
        self.state: str = _LIVE
        self._control = control
        self._keep = keep
        target: Any = control.remote.target
        self._any_session = TxnCapability.MULTI_SSNS_PER_TXN in target.capabilities
        # Each state is the same object wherever it is used, so that the engine encodes it once.
        self._state = TransactionalState(txn_id=txn_id)
        self._retired_state = self._state
        self._lapsed: str | None = None
        self._posted: list[OutgoingDelivery] = []
        self._retired: list[Delivery] = []
        self._acquired: list[Delivery] = []  # some of them are in _retired too
        self._senders: dict[Sender, None] = {}
        self._receivers: dict[Receiver, None] = {}

    # -- work (4.4) -------------------------------------------------------------------------

    def state_on(self, link: Link[Any]) -> TransactionalState:
        """Return the state that makes a transfer on ``link`` a part of the transaction.

        Raises:
            LocalProtocolError: the transaction has ended; or the link is on another session, and the
                coordinator does not offer ``amqp:multi-ssns-per-txn``.
            TransactionRolledBackError: the control link ended, and the transaction with it.
        """
        self._check(link.session)
        return self._state

    def posted(self, delivery: OutgoingDelivery) -> None:
        """Note a delivery that was sent as a part of the transaction."""
        self._posted.append(delivery)
        delivery.transaction = self
        owner: Any = delivery.link.owner
        self._senders[owner] = None

    def retire(self, delivery: Delivery, outcome: Outcome) -> None:
        """Give a delivery its outcome, with effect at the commit (4.4.2).

        Raises: as ``state_on``, and ``TransactionRolledBackError`` if the delivery was lost with the last
        transport of a connection with ``reconnect``: its message comes again, so no work that depends on it
        may be committed; ``LocalProtocolError`` if the delivery has an outcome or its link has ended.
        """
        owner: Any = delivery.link.owner
        self._check(owner.session)
        if self._retired_state.outcome is not outcome:
            self._retired_state = TransactionalState(txn_id=self.id, outcome=outcome)
        try:
            delivery.link.session.settlement.dispose(delivery, self._retired_state, settle=False)
        except LocalProtocolError as refusal:
            if not delivery.has_lapsed:
                delivery.refuse(refusal)
            self._lapsed = (
                f"the transaction was rolled back: the connection was lost since delivery {delivery.tag!r} came, "
                "and its message comes again"
            )
            raise TransactionRolledBackError(self._lapsed) from refusal
        self._retired.append(delivery)
        if getattr(delivery.remote_state, "txn_id", None) == self.id:
            self._acquired.append(delivery)

    def acquire(self, link: Link[Any]) -> None:
        """Acquire the next messages of ``link`` in the transaction, until it ends (4.4.3).

        Raises: as ``state_on``.
        """
        self._check(link.session)
        receiver: Any = link
        receiver.acquire_in(self.id)
        self._receivers[receiver] = None

    def _check(self, session: LinkSession) -> None:
        self._check_live()
        ours = self._control.session
        if session is not ours:
            if session.connection is not ours.connection:
                raise LocalProtocolError("a transaction is for links of its own connection")
            if not self._any_session:
                raise LocalProtocolError(
                    "a transaction is for links of its own session, as this coordinator does not offer "
                    f"{TxnCapability.MULTI_SSNS_PER_TXN}: use session.open_transaction()"
                )
        self._check_control()

    def _check_live(self) -> None:
        if self.state != _LIVE:
            raise LocalProtocolError(f"this transaction is {self.state}: begin another for more work")

    def raise_if_lost(self) -> None:
        """Raise ``TransactionRolledBackError`` if the control link has ended.

        Not once the commit was requested, which reports it.
        """
        if self.state == _LIVE:
            self._check_control()

    def _check_control(self) -> None:
        if self._lapsed is not None:
            raise TransactionRolledBackError(self._lapsed)
        lost = self._control.why()
        if lost is not None:
            raise self._lost(lost, asked=False) from lost

    # -- discharge (4.3) --------------------------------------------------------------------

    async def commit(self) -> None:
        """Commit all work of the transaction; leaving the block does so.

        Waits first for the outcomes of all messages that were sent in it, at most ``close_timeout`` seconds:
        a coordinator gives them before it commits (4.4.1). If the peer refuses a message, the transaction is
        rolled back, unless the program knows it already: ``send`` has raised for it, or its ``outcome`` was
        awaited.

        Raises:
            TransactionRolledBackError: a message was refused, or its link ended; a delivery that was settled in
                it was lost before; or the coordinator did not commit, or the control link ended before the
                request.
            TransactionInDoubtError: the control link ended before the answer.
            TransactionError: the transaction was committed without a message that was refused too late.
            LocalProtocolError: the transaction has ended.

        Cancelled: it is not known whether the transaction was committed.
        """
        self._check_live()
        if self._lapsed is not None:
            await self.rollback()
            raise TransactionRolledBackError(self._lapsed)
        self.state = _ENDING
        try:
            self._check_control()
            await self._settle_down()
            await self._wait_decided()
            refused = self._refusal()
            error = await self._discharge(fail=refused is not None)
        except TransactionRolledBackError:
            self._undo()
            raise
        except BaseException:
            self.state = _IN_DOUBT
            raise
        if refused is not None:
            # The discharge had the flag fail, because the peer has refused a message.
            self._undo()
            raise TransactionRolledBackError(
                f"the transaction was rolled back, as a message in it was refused: {refused}",
                _error_of(refused),
            ) from refused
        if error is not None:
            # The coordinator has rejected the discharge, which rolls back (4.3).
            self._undo()
            raise TransactionRolledBackError(
                f"the transaction was rolled back, {describe(error.error)}", error.error
            )
        # A refusal may have come after the request to commit, together with the answer.
        refused = self._refusal()
        self._apply()
        if refused is not None:
            raise TransactionError(
                f"the transaction was committed without a message that was refused: {refused}",
                _error_of(refused),
            ) from refused

    async def rollback(self) -> None:
        """Undo all work of the transaction; leaving the block by an exception does so.

        Waits for the coordinator at most ``close_timeout`` seconds: a transaction whose control link ends is
        rolled back too.

        Raises:
            LocalProtocolError: the transaction has ended.

        Cancelled: it will be rolled back when the block is left.
        """
        self._check_live()
        self.state = _ROLLED_BACK
        with trio.move_on_after(self._control.session.connection.close_timeout):
            await self._settle_down()
            with suppress(TransactionError):
                await self._discharge(fail=True)
            self._undo()

    async def _settle_down(self) -> None:
        """Finish all work before the discharge (4.4).

        All messages must be complete, the credit that acquires used up, and the outcomes sent.
        """
        for sender in self._senders:
            await sender.wait_written()
        for receiver in self._receivers:
            with suppress(AmqpError, trio.ClosedResourceError):
                await receiver.use_up()
            receiver.acquire_in(None)
            self._acquired += receiver.acquired_in(self.id)
        for session in {retired.link.session for retired in self._retired}:
            session.flush()  # outcomes are collected before they are written; the discharge must not overtake them

    async def _wait_decided(self) -> None:
        """Wait for the outcomes of the messages that were sent.

        If some do not come in time, the coordinator decides without them (4.4.4).
        """
        with trio.move_on_after(self._control.session.connection.close_timeout):
            for posted in self._not_accepted():
                with suppress(AmqpError, trio.ClosedResourceError):
                    if not posted.sent_settled:
                        await posted.wait_decided()

    def _refusal(self) -> AmqpError | None:
        """Return the refusal of a message, unless the program knows it; None if none."""
        for posted in self._not_accepted():
            if not posted.was_asked and (refused := posted.refusal()) is not None:
                return refused
        return None

    def _not_accepted(self) -> Iterator[OutgoingDelivery]:
        """Iterate over the messages whose outcome must be looked at, which are few."""
        return (posted for posted in self._posted if _inner(posted.word) is not ACCEPTED)

    async def _discharge(self, *, fail: bool) -> Rejected | None:
        """Ask for the end and wait for the answer; return a rejection, or None."""
        asked = False
        try:
            with self._control.session.connection.expecting("the discharge of a transaction"):
                delivery = await self._control.transmit(Message(Value(Discharge(txn_id=self.id, fail=fail))))
                asked = True
                outcome: Any = await delivery.outcome()
        except (AmqpError, trio.ClosedResourceError) as lost:
            raise self._lost(lost, asked=asked) from lost
        if isinstance(outcome, Accepted):
            return None
        return outcome if isinstance(outcome, Rejected) else Rejected()

    @staticmethod
    def _lost(lost: Exception, *, asked: bool) -> TransactionError:
        """Return the exception for a lost control link.

        It is a rollback if the link ended before the request, or with an error (4.4.2); otherwise the result
        is in doubt.
        """
        error = getattr(lost, "error", None)
        if not asked or (isinstance(lost, LinkDetachedError) and error is not None):
            return TransactionRolledBackError(f"the transaction was rolled back: {lost}", error)
        return TransactionInDoubtError(f"whether the transaction was committed is not known: {lost}", error)

    # -- and afterwards (4.4.4) -------------------------------------------------------------

    def _apply(self) -> None:
        self.state = _COMMITTED
        self._control.abandon()  # nothing depends on the coordinator's answer to the detach
        for retired in self._retired:
            outcome = _inner(retired.state)
            retired.state = outcome
            if not retired.settled:
                with suppress(LocalProtocolError):  # the link has ended: the coordinator knows the outcome
                    retired.link.session.settlement.settle_incoming(retired, outcome)
        self._forget()

    def _undo(self) -> None:
        self.state = _ROLLED_BACK
        for receiver in self._receivers:
            receiver.drop(self._acquired)
        for retired in self._retired:
            retired.state = None
        for lost in self._acquired if self._keep else [*self._retired, *self._acquired]:
            with suppress(LocalProtocolError):
                lost.link.session.settlement.settle_incoming(lost, RELEASED)
        for posted in self._posted:
            posted.state = None
        self._forget()

    def _forget(self) -> None:
        for posted in self._posted:
            posted.transaction = None
            posted.state = _inner(posted.state)
            if not posted.settled:
                with suppress(LocalProtocolError):
                    posted.settle()
        self._posted.clear()
        self._retired.clear()
        self._acquired.clear()
        self._receivers.clear()

    def close(self) -> None:
        """Note that the control link is closed: undischarged work is rolled back."""
        if self.state == _ROLLED_BACK:
            self._undo()  # completes a rollback that was cancelled
        elif self.state == _IN_DOUBT:
            for retired in self._retired:
                if not retired.settled:
                    retired.state = None  # if it was not committed, the program must settle it again

    def __repr__(self) -> str:
        return f"<Transaction {self.id.hex()} {self.state}>"


def _error_of(refused: AmqpError) -> Error | None:
    """Return the peer's error in a refusal of a message."""
    return getattr(refused, "error", None) or getattr(getattr(refused, "outcome", None), "error", None)


def _inner(state: Any) -> Any:
    return state.outcome if isinstance(state, TransactionalState) else state


class TransactionOpening(EnteredWithAsync):
    """A transaction that is not declared yet: enter it with ``async with``.

    Raises (on entering):
        LinkRefusedError: the peer has no coordinator.
        TransactionError: the coordinator did not declare a transaction.
        ConnectionClosedError: the connection was lost for good. A connection with ``reconnect`` is waited
            for.
    """

    __slots__ = ("_connection", "_control", "_keep", "_session", "_transaction")

    def __init__(self, connection: LinkConnection, session: LinkSession | None, *, keep: bool) -> None:
        self._connection = connection
        self._session = session
        self._keep = keep
        self._control: Any = None

    async def __aenter__(self) -> Transaction:
        connection = self._connection
        while True:
            try:
                return await self._declare()
            except (ConnectionClosedError, SessionEndedError):
                # The transaction has no work yet, so another transaction on the restored connection can replace it.
                if not (connection.recovering and connection.loss() is not None):
                    raise
                await connection.wait_recovered()

    async def _declare(self) -> Transaction:
        self._control = self._connection.open_sender(
            None,
            session=self._session,
            source=Source(outcomes=_OUTCOMES),
            target=Coordinator(capabilities=_WANTED),
        )
        control = await self._control.__aenter__()
        try:
            if not isinstance(control.remote.target, Coordinator):
                raise TransactionError("the peer has attached the control link without a coordinator")
            with control.session.connection.expecting("the declare of a transaction"):
                delivery = await control.transmit(Message(Value(Declare())))
                outcome: Any = await delivery.outcome()
            if not isinstance(outcome, Declared):
                error = getattr(outcome, "error", None)
                raise TransactionError(
                    f"the coordinator did not declare a transaction, {describe(error)}", error
                )
        except BaseException:
            await self._control.__aexit__(None, None, None)
            raise
        self._transaction = Transaction(control, outcome.txn_id, keep=self._keep)
        return self._transaction

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        transaction = self._transaction
        try:
            if transaction.state == _LIVE:
                if exc is None:
                    await transaction.commit()
                else:
                    await transaction.rollback()
        finally:
            try:
                await self._control.__aexit__(kind, exc, tb)
            finally:
                transaction.close()


def open_transaction(
    connection: LinkConnection, *, session: LinkSession | None = None, keep: bool = False
) -> TransactionOpening:
    """Open a transaction: ``async with conn.open_transaction() as txn``.

    Args:
        connection: the connection to the peer whose coordinator controls the transaction.
        session: the session of the control link; the default one if None.
        keep: after a rollback, leave the deliveries that were settled in it unsettled, so that you can settle
            them again; otherwise they are released.
    """
    return TransactionOpening(connection, session, keep=keep)
