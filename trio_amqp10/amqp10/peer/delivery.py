"""Deliveries as a program uses them: a message and its outcome, both directions."""

from __future__ import annotations

import time
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Protocol, cast

import trio

from trio_amqp10.amqp10.engine.delivery import ACCEPTED, RELEASED, is_terminal
from trio_amqp10.amqp10.engine.delivery import IncomingDelivery as EngineIncoming
from trio_amqp10.amqp10.engine.delivery import OutgoingDelivery as EngineOutgoing
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.tolerant import message_class
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Rejected, Released
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.arguments import check_type, shown
from trio_amqp10.core.errors import AmqpError, LocalProtocolError
from trio_amqp10.net.errors import GoneError
from trio_amqp10.net.waiters import Waiter

from .body_chunks import Chunks, Reading
from .errors import DeliveryError, DeliveryModifiedError, DeliveryRejectedError, DeliveryReleasedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.engine.connection_context import Touchable
    from trio_amqp10.amqp10.engine.streamed_delivery import StreamedDelivery
    from trio_amqp10.core.peer_rules import Strict

    from .link_callbacks import LinkOwner

_DELIVERY_TIME: Final = Symbol("x-opt-delivery-time")
"""The annotation for the time of the next delivery, in milliseconds since 1970."""
_LONGEST_DELAY: Final = 1_000_000_000
"""Seconds, about 31 years."""

Outcome = Accepted | Rejected | Released | Modified


class Transactional(Protocol):
    """A transaction, as senders, receivers and deliveries use it (4.4)."""

    def state_on(self, link: Any) -> TransactionalState:
        """Return the state that makes a transfer on ``link`` a part of the transaction.

        Raises ``LocalProtocolError`` if a transfer on this link cannot be a part of it.
        """
        ...

    def posted(self, delivery: OutgoingDelivery) -> None:
        """Note a delivery that was sent as a part of the transaction."""
        ...

    def retire(self, delivery: Delivery, outcome: Outcome) -> None:
        """Give an incoming delivery its outcome as a part of the transaction."""
        ...

    def acquire(self, link: Any) -> None:
        """Acquire the next messages of ``link`` as a part of the transaction."""
        ...

    def raise_if_lost(self) -> None:
        """Raise ``TransactionRolledBackError`` if the control link has ended."""
        ...


def check_transaction(transaction: Transactional) -> Transactional:
    """Return ``transaction`` if it is one.

    Raises:
        LocalProtocolError: it is something else.
    """
    if not hasattr(transaction, "state_on"):
        raise LocalProtocolError(
            f"transaction={shown(transaction)}: expected a transaction, as of open_transaction(), or None"
        )
    return transaction


class _Callback(Waiter):
    """A watcher that also calls a function."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self._call = call

    def wake(self) -> None:
        super().wake()
        self._call()


async def _never() -> None:
    """Return at once: a delivery that is complete does not change any more."""


def _owner(delivery: EngineIncoming | EngineOutgoing) -> LinkOwner:
    return cast("LinkOwner", delivery.link.owner)


async def _changed(delivery: EngineIncoming | EngineOutgoing) -> None:
    """Wait until the peer gives or settles an outcome, or the link has ended."""
    if not isinstance(delivery.watcher, Waiter):
        delivery.watcher = Waiter()
    await delivery.watcher.wait()


class Delivery(EngineIncoming):
    """A message that came in, with the methods that give it an outcome.

    ``accept``, ``reject``, ``release`` and ``modify`` are synchronous. They settle the delivery at once,
    unless the link settles second (``guarantee="exactly-once"``). A second outcome raises
    ``LocalProtocolError``. So does an outcome after the link has ended; but after a detach that neither
    closed the link nor had an error, outcomes are possible as long as the session lasts (2.7.6).

    If the connection is restored, but the sender sends the message again on the new link, an outcome of the
    old delivery is ignored. With ``transaction`` the outcome takes effect at the commit (4.4.2).

    Attributes:
        tag: the sender's name for the delivery: at most 32 octets.
        settled: whether this end has settled it; true from the start if it was sent at most once.
        state: the outcome that this end gave it, or None.
        payload: the octets of the message as they came; empty while they come as a stream.
        message_format: 0 for a message in sections (3.2); the meaning of other numbers is defined by the
            application.
        message_class: the class that ``message`` makes of the octets.
    """

    __slots__ = ()

    message_class: ClassVar[type[Message]] = Message

    @property
    def message(self) -> Message:
        """The message; its sections are decoded when they are read.

        After ``chunks`` has returned the whole body, it is the message without that body.

        Raises:
            LocalProtocolError: a streamed message is not complete, or is being read in chunks, or was
                discarded. See ``complete``.
        """
        if self.inflow is not None:
            return self._streamed_message(self.inflow)
        message: Message | None = self.memo
        if message is None:
            message = self.memo = self.message_class.from_payload(
                self.payload, self.message_format, self.link.context.tolerances
            )
        return message

    def accept(self, *, transaction: Transactional | None = None) -> None:
        """Accept the message: it was processed (3.4.2)."""
        if transaction is not None:
            check_transaction(transaction).retire(self, ACCEPTED)
            return
        try:
            self.link.session.settlement.accept(self)
        except LocalProtocolError as refusal:
            if not self._lapses_with(ACCEPTED):
                self.refuse(refusal)

    def _give(self, state: Outcome, transaction: Transactional | None) -> None:
        if transaction is not None:
            check_transaction(transaction).retire(self, state)
            return
        try:
            self.link.session.settlement.dispose(self, state)
        except LocalProtocolError as refusal:
            if not self._lapses_with(state):
                self.refuse(refusal)

    @property
    def has_lapsed(self) -> bool:
        """Whether an outcome would be lost.

        The transport of the delivery is, and its link comes back.
        """
        return self.state is None and _owner(self).has_lapsed(self)

    def _lapses_with(self, state: Outcome) -> bool:
        """Note the outcome if the transport of the delivery is lost; return whether it is.

        The outcome is then treated as sent just before the loss: the program cannot know in either case
        whether the peer has received it.
        """
        if not self.has_lapsed:
            return False
        self.state = state
        return True

    def refuse(self, refusal: LocalProtocolError) -> NoReturn:
        """Raise ``refusal`` of an outcome, with the reason why the link ended."""
        if self.state is None and not self.link.session.settlement.is_live(self):
            try:
                _owner(self).raise_if_outcome_lost(self)
            except (AmqpError, trio.ClosedResourceError) as end:
                raise LocalProtocolError(f"{refusal}: {end}") from end
        raise refusal

    def reject(
        self,
        condition: str = "amqp:internal-error",
        description: str | None = None,
        *,
        transaction: Transactional | None = None,
    ) -> None:
        """Reject the message as invalid, with an error that gives the reason (3.4.3)."""
        self._decline(Rejected(error=Error(condition=condition, description=description)), transaction)

    def release(self, *, transaction: Transactional | None = None) -> None:
        """Give the message back, as if it had never been delivered (3.4.4)."""
        self._decline(RELEASED, transaction)

    def modify(
        self,
        *,
        delivery_failed: bool = False,
        undeliverable_here: bool = False,
        annotations: dict[Any, Any] | None = None,
        delay: float | None = None,
        transaction: Transactional | None = None,
    ) -> None:
        """Give the message back with changes (3.4.5).

        Args:
            delivery_failed: count this as a failed attempt.
            undeliverable_here: do not send it to this link again.
            annotations: merged into its message-annotations.
            delay: seconds until the next delivery, to this link or another, by the clock of this machine: the
                annotation ``x-opt-delivery-time``. The queues of ``Container`` and RabbitMQ's quorum queues
                (4.3) observe it; other brokers may deliver the message again at once.
            transaction: the transaction that the outcome is a part of.

        Raises:
            LocalProtocolError: ``delay`` is negative, or more than 1,000,000,000.
        """
        if delay is not None:
            check_type("delay", delay, (int, float), "seconds, or None for no delay")
            if not 0 <= delay <= _LONGEST_DELAY:
                raise LocalProtocolError(
                    f"delay={delay}: expected 0 to {_LONGEST_DELAY:,} seconds, or None for no delay"
                )
            annotations = {**(annotations or {}), _DELIVERY_TIME: round((time.time() + delay) * 1000)}
        state = Modified(
            delivery_failed=delivery_failed or None,
            undeliverable_here=undeliverable_here or None,
            message_annotations=annotations,
        )
        self._decline(state, transaction)

    def _decline(self, state: Outcome, transaction: Transactional | None) -> None:
        """Give an outcome other than accepted, if the source of the link permits it."""
        if transaction is None and self.state is None and not self.settled:
            permitted = _owner(self).permitted(self, state)
            if permitted is None:
                self.state: Any = state
                return
            state = permitted
        self._give(state, transaction)

    def keep(self) -> bool:
        """Whether the message is stored at its origin: never for a delivery of a link."""
        return False

    def _streamed_message(self, inflow: StreamedDelivery) -> Message:
        reading = self._reading()
        if reading.reader.finished and reading.reader.started:
            return reading.reader.message()
        if not inflow.complete or inflow.discarded or reading.reader.started:
            what = "being read in chunks" if inflow.complete else "not complete"
            raise LocalProtocolError(f"this message is {'discarded' if inflow.discarded else what}")
        self.payload: bytes = reading.reader.raw + inflow.take_all()
        self.inflow: StreamedDelivery | None = None
        self.memo = None
        return self.message

    @property
    def complete(self) -> bool:
        """Whether all of the message has come in.

        Always true except on a streaming receiver.
        """
        return self.inflow is None or self.inflow.complete

    def _reading(self) -> Reading:
        if self.inflow is None:
            return Reading(self, _owner(self), _never)
        if self.memo is None:
            self.memo: Any = Reading(self, _owner(self), partial(_changed, self))
        return cast("Reading", self.memo)

    async def head(self) -> Message:
        """Wait for the sections before the body, and return a ``Message`` without a body.

        It has the properties and annotations.

        Raises: as ``chunks``. Cancelled: nothing is lost; call it again.
        """
        await trio.lowlevel.checkpoint()
        return await self._reading().head()

    def chunks(self) -> Chunks:
        """Iterate over the octets of the data sections as they come in.

        Use it as ``async for chunk in delivery.chunks()``. On a receiver with ``streaming=True`` this begins
        with the first transfer, and the peer sends no faster than the program reads. A new iteration
        continues where the last one stopped.

        The delivery may be given its outcome at any time. Reading may go on after ``accept``; the other three
        outcomes discard the rest. After ``accept``, the rest is also discarded when the task that read it
        takes the receiver's next delivery, or by ``discard``.
        """
        return Chunks(self, self._reading(), self._enter)

    def _enter(self, delivery: Delivery | None) -> None:
        """Note that the calling task reads ``delivery``, or has finished if None."""
        if self.inflow is not None:
            _owner(self).reading(delivery)

    def discard(self) -> None:
        """Drop the rest of the body as it comes in.

        The delivery still needs its outcome.
        """
        if self.inflow is not None:
            self.inflow.discard()

    async def wait_settled(self) -> None:
        """Wait until both ends have settled the delivery.

        Returns at once unless the receiver settles second.

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError: the link ended before.

        Cancelled: nothing is lost; call it again.
        """
        await trio.lowlevel.checkpoint()
        while not self.settled:
            _owner(self).raise_if_outcome_lost(self)
            await _changed(self)

    def __repr__(self) -> str:
        what = "streamed" if self.inflow is not None else repr(self.message)
        return f"<Delivery {self.tag.hex()} {what} state={self.state!r} settled={self.settled}>"


@cache
def delivery_class(strict: Strict) -> type[Delivery]:
    """Return the class of deliveries whose messages are decoded by ``strict``."""
    made = message_class(strict)
    if made is Message:
        return Delivery

    class TolerantDelivery(Delivery):
        __slots__ = ()
        message_class = made

    return TolerantDelivery


class OutgoingDelivery(EngineOutgoing):
    """A message that was sent.

    Attributes:
        tag: this end's name for it.
        settled: whether this end has settled it; true from the start if it was sent at most once.
        state: the receiver's last state of it, or None.
    """

    __slots__ = ("_was_asked", "transaction")

    transaction: Transactional | None
    """The transaction that it is a part of, until that ends.

    Not set if it never was a part of one.
    """

    @property
    def was_asked(self) -> bool:
        """Whether the program has read ``outcome``, or does not need it."""
        return getattr(self, "_was_asked", False)

    def disregard(self) -> None:
        """Note that the program needs no outcome.

        It has aborted the message, or has settled it without waiting.
        """
        self._was_asked = True

    def settle(self) -> None:
        super().settle()
        self.disregard()

    async def outcome(self) -> Outcome | None:
        """Wait for the receiver's outcome; return None if the message was sent settled.

        Inside a transaction it is the outcome that the message will have after the commit.

        If the receiver settles without an outcome, it is the link's default outcome, or ``Released`` if the
        link has none (3.5.3).

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError: the link ended before an outcome
                came.
            TransactionRolledBackError: the transaction of the message was lost with its connection.
            DeliveryInDoubtError: the link was resumed, and the receiver had forgotten the delivery.

        Cancelled: nothing is lost; call it again. A known outcome is returned without waiting: then only
        every 64th call is a full checkpoint, or a call after a millisecond of unbroken work, as for
        ``transmit``.
        """
        owner: Any = self.link.owner
        if owner is None:  # the link was attached again after this delivery was settled
            await trio.lowlevel.checkpoint()
        else:
            await owner.session.connection.pace.checkpoint()
        if self.sent_settled or self.word is ACCEPTED:
            return self.decision()
        try:
            await self.wait_decided()
        except AmqpError:
            self._was_asked = True
            raise
        self._was_asked = True
        return self.decision()

    async def wait_decided(self) -> None:
        """Wait until the receiver has given the delivery an outcome or settled it.

        Raises: as ``outcome``. Cancelled: nothing is lost.
        """
        while not self.is_decided():
            await _changed(self)

    def is_decided(self) -> bool:
        """Whether the receiver has given the delivery an outcome or settled it.

        Raises: as ``outcome``.
        """
        if self.settled or is_terminal(self.state):
            return True
        self.raise_if_lost()
        return False

    def decision(self) -> Outcome | None:
        """Return the outcome of a delivery that is decided; None if it was sent settled."""
        if self.word is ACCEPTED:
            accepted: Accepted = ACCEPTED
            return accepted
        if self.sent_settled:
            return None
        state = self.state
        if not is_terminal(state):
            return cast("Outcome", self.link.default_outcome)
        return cast("Outcome", state.outcome if isinstance(state, TransactionalState) else state)

    def refusal(self) -> DeliveryError | AmqpError | None:
        """Return the reason why the receiver does not have the message.

        None if it has the message, or may have it. Reasons are an outcome other than ``accepted``, and a link
        that the peer ended before it gave an outcome. For a message that was sent settled, the end of the
        link is a reason only if it had an error.
        """
        if not self.sent_settled and (self.settled or is_terminal(self.state)):
            try:
                raise_unless_accepted(self.decision(), self)
            except DeliveryError as refused:
                return refused
            return None
        try:
            self.raise_if_lost()
        except GoneError as lost:
            return None if self.sent_settled and lost.error is None else lost
        except (AmqpError, trio.ClosedResourceError):
            pass  # the link was ended by this end, which is no refusal
        return None

    def watch(self, call: Callable[[], object]) -> None:
        """Call ``call`` when the receiver gives an outcome or settles, or the link ends.

        It is called synchronously, and replaces the function of an earlier call. For services that watch many deliveries without a task for each.
        """
        before = self.watcher
        self.watcher: Touchable | None = _Callback(call)
        if isinstance(before, Waiter):
            Waiter.wake(before)  # its tasks, not its call: they look again, and wait for the new watcher

    async def wait_settled(self) -> None:
        """Wait until both ends have settled the delivery.

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError: the link ended before.

        Cancelled: nothing is lost; call it again.
        """
        await trio.lowlevel.checkpoint()
        while not self.settled:
            self.raise_if_lost()
            await _changed(self)

    def raise_if_lost(self) -> None:
        """Raise if no outcome can come any more.

        Raises: as ``outcome``.
        """
        try:
            _owner(self).raise_if_outcome_lost(self)
        except GoneError:
            transaction = getattr(self, "transaction", None)
            if transaction is not None:
                transaction.raise_if_lost()
            raise

    def __repr__(self) -> str:
        return f"<OutgoingDelivery {self.tag.hex()} state={self.state!r} settled={self.settled}>"


def raise_unless_accepted(outcome: Any, delivery: OutgoingDelivery) -> None:
    """Raise the exception for an outcome other than accepted (3.4)."""
    if isinstance(outcome, Rejected):
        raise DeliveryRejectedError(outcome, delivery)
    if isinstance(outcome, Released):
        raise DeliveryReleasedError(outcome, delivery)
    if isinstance(outcome, Modified):
        raise DeliveryModifiedError(outcome, delivery)
    if outcome is not None and not isinstance(outcome, Accepted):
        raise DeliveryError(
            f"the receiver gave an outcome that the standard does not define: {outcome!r}", outcome, delivery
        )
