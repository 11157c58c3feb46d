"""Deliveries for programs: a message to read, an outcome to give or await."""

from __future__ import annotations

import time
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, cast

import trio

from trio_amqp10.engine.delivery import ACCEPTED, RELEASED, is_terminal
from trio_amqp10.engine.delivery import IncomingDelivery as EngineIncoming
from trio_amqp10.engine.delivery import OutgoingDelivery as EngineOutgoing
from trio_amqp10.errors import AmqpError, LocalProtocolError
from trio_amqp10.message import Message
from trio_amqp10.message.tolerant import message_class
from trio_amqp10.net.errors import GoneError
from trio_amqp10.net.waiters import Waiter
from trio_amqp10.spec.messaging import Accepted, Modified, Rejected, Released
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Error
from trio_amqp10.wire.values import Symbol

from .body_chunks import Chunks, Reading
from .errors import (
    DeliveryError,
    DeliveryModifiedError,
    DeliveryRejectedError,
    DeliveryReleasedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.engine.connection_context import Touchable
    from trio_amqp10.engine.streamed_delivery import StreamedDelivery
    from trio_amqp10.protocol_rules import Strict

    from .link_owner import LinkOwner

__all__ = [
    "Delivery",
    "Outcome",
    "OutgoingDelivery",
    "Transactional",
    "delivery_class",
    "raise_unless_accepted",
]

_DELIVERY_TIME: Final = Symbol("x-opt-delivery-time")
"""When to deliver a message again, in milliseconds since 1970."""
_LONGEST_DELAY: Final = 1_000_000_000
"""Seconds, about 31 years."""

Outcome = Accepted | Rejected | Released | Modified


class Transactional(Protocol):
    """A transaction, as far as senders, receivers and deliveries need to know it (4.4)."""

    def state_on(self, link: Any) -> TransactionalState:
        """What a transfer on this link says to be part of it; raises ``LocalProtocolError`` where it cannot be."""
        ...

    def posted(self, delivery: OutgoingDelivery) -> None:
        """This was sent as part of it."""
        ...

    def retire(self, delivery: Delivery, outcome: Outcome) -> None:
        """Give a delivery that came in its outcome as part of it."""
        ...

    def acquire(self, link: Any) -> None:
        """What comes on this link from now on is acquired as part of it."""
        ...


class _Callback:
    """Calls back where a task would wait."""

    __slots__ = ("_call", "touched")

    def __init__(self, call: Callable[[], object]) -> None:
        self.touched = False
        self._call = call

    def wake(self) -> None:
        self._call()


async def _never() -> None:
    """Nothing changes in a delivery that came whole."""


def _owner(delivery: EngineIncoming | EngineOutgoing) -> LinkOwner:
    return cast("LinkOwner", delivery.link.owner)


async def _changed(delivery: EngineIncoming | EngineOutgoing) -> None:
    """Wait until the peer gives the delivery an outcome or settles it, or its link is gone."""
    if not isinstance(delivery.watcher, Waiter):
        delivery.watcher = Waiter()
    await delivery.watcher.wait()


class Delivery(EngineIncoming):
    """A message that came in, to be accepted, rejected, released or modified.

    Those four are synchronous, and settle the delivery at once unless the link settles second
    (``guarantee="exactly-once"``). Each raises ``LocalProtocolError`` after the first, and when
    the link is gone, unless it was detached, neither closed nor with an error, and its session lasts (2.7.6); where the link comes back, but the sender has the message again, nothing is said
    to anybody, and it will be delivered again. With ``transaction`` the outcome counts from the commit on (4.4.2).

    Attributes:
        tag: the sender's name for it: at most 32 octets.
        settled: whether this end has settled it; from the start, where it was sent at most once.
        state: the outcome that we gave it, or None.
        payload: the octets of the message as they came; none while they come as a stream.
        message_format: 0 for a message in sections (3.2); the meaning of others is the application's.
        message_class: what its octets are read as.
    """

    __slots__ = ()

    message_class: ClassVar[type[Message]] = Message

    @property
    def message(self) -> Message:
        """The message; its sections are decoded as they are read.

        Once ``chunks`` has given out the whole body, it is the message without that body.

        Raises:
            LocalProtocolError: not all of a streamed message has come in, or it is being read in chunks,
                or was discarded. See ``complete``.
        """
        if self.inflow is not None:
            return self._streamed_message(self.inflow)
        message: Message | None = self.memo
        if message is None:
            message = self.memo = self.message_class.from_payload(self.payload, self.message_format)
        return message

    def accept(self, *, transaction: Transactional | None = None) -> None:
        """Say that the message was processed (3.4.2)."""
        if transaction is not None:
            transaction.retire(self, ACCEPTED)
            return
        try:
            self.link.session.settlement.accept(self)
        except LocalProtocolError:
            if not self._lapses_with(ACCEPTED):
                raise

    def _give(self, state: Outcome, transaction: Transactional | None) -> None:
        if transaction is not None:
            transaction.retire(self, state)
            return
        try:
            self.link.session.settlement.dispose(self, state)
        except LocalProtocolError:
            if not self._lapses_with(state):
                raise

    def _lapses_with(self, state: Outcome) -> bool:
        """Whether an outcome that could not be said is taken for said a moment before the transport went: nobody can be sure that it was heard."""
        if self.state is not None or not _owner(self).has_lapsed(self):
            return False
        self.state = state
        return True

    def reject(
        self,
        condition: str = "amqp:internal-error",
        description: str | None = None,
        *,
        transaction: Transactional | None = None,
    ) -> None:
        """Say that the message is invalid, and why (3.4.3)."""
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
        """Give the message back changed (3.4.5).

        Args:
            delivery_failed: count this as a failed attempt.
            undeliverable_here: do not send it to this link again.
            annotations: merged into its message-annotations.
            delay: seconds until it is to be delivered again, to this link or another, by the clock of this machine: the annotation
                ``x-opt-delivery-time``. The queues of ``Container`` and RabbitMQ's quorum queues (4.3) observe it; others may
                deliver it again at once.
            transaction: that this is a part of.

        Raises:
            LocalProtocolError: ``delay`` is negative, or more than 1,000,000,000.
        """
        if delay is not None:
            if not 0 <= delay <= _LONGEST_DELAY:
                raise LocalProtocolError(
                    f"delay={delay}: 0 to {_LONGEST_DELAY:,} seconds are possible, or None for no delay"
                )
            annotations = {**(annotations or {}), _DELIVERY_TIME: round((time.time() + delay) * 1000)}
        state = Modified(
            delivery_failed=delivery_failed or None,
            undeliverable_here=undeliverable_here or None,
            message_annotations=annotations,
        )
        self._decline(state, transaction)

    def _decline(self, state: Outcome, transaction: Transactional | None) -> None:
        """Give it an outcome other than accepted, or tell in another way what its sender's source does not permit."""
        if transaction is None and self.state is None and not self.settled:
            permitted = _owner(self).permitted(self, state)
            if permitted is None:
                self.state: Any = state
                return
            state = permitted
        self._give(state, transaction)

    def keep(self) -> bool:
        """Whether it is stored where it came from, so that a container need not answer it: never, of a link."""
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
        """Whether all of the message has come in; only on a streaming receiver it may not have."""
        return self.inflow is None or self.inflow.complete

    def _reading(self) -> Reading:
        if self.inflow is None:
            return Reading(self, _owner(self), _never)
        if self.memo is None:
            self.memo: Any = Reading(self, _owner(self), partial(_changed, self))
        return cast("Reading", self.memo)

    async def head(self) -> Message:
        """What is said about the body (properties, annotations), as soon as it has come: a ``Message`` without one.

        Raises: as ``chunks``. Cancelled: nothing is lost; call it again.
        """
        await trio.lowlevel.checkpoint()
        return await self._reading().head()

    def chunks(self) -> Chunks:
        """The octets of the data sections, as they come in: ``async for chunk in delivery.chunks()``.

        On a receiver with ``streaming=True`` this begins with the first transfer, and the peer sends no
        faster than you read. It may be left and begun again: the next goes on where the last one was
        left. The delivery may be given its outcome at any time. Reading may go on after ``accept``;
        the other three discard what is left. After ``accept``, what a task leaves unread is discarded
        when that task takes the receiver's next delivery, or by ``discard``.
        """
        return Chunks(self, self._reading(), self._enter)

    def _enter(self, delivery: Delivery | None) -> None:
        """The calling task reads this delivery, or is done with it."""
        if self.inflow is not None:
            _owner(self).reading(delivery)

    def discard(self) -> None:
        """Read no further: what is left of the body is dropped as it comes. The outcome is still yours to give."""
        if self.inflow is not None:
            self.inflow.discard()

    async def wait_settled(self) -> None:
        """Wait until both ends have settled it: at once, but where the receiver settles second.

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError: it never will be.

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
    """What the deliveries of a connection are made of: their messages are read as strictly as it says."""
    made = message_class(strict)
    if made is Message:
        return Delivery

    class TolerantDelivery(Delivery):
        __slots__ = ()
        message_class = made

    return TolerantDelivery


class OutgoingDelivery(EngineOutgoing):
    """A message that went out.

    Attributes:
        tag: our name for it.
        settled: whether this end has settled it; from the start, where it was sent at most once.
        state: what the receiver last said of it, or None.
    """

    __slots__ = ("_was_asked",)

    @property
    def was_asked(self) -> bool:
        """Whether the program knows from ``outcome`` what became of the message, or does not need to know."""
        return getattr(self, "_was_asked", False)

    def disregard(self) -> None:
        """The program needs no outcome: it has taken the message back, or has settled it without waiting."""
        self._was_asked = True

    def settle(self) -> None:
        super().settle()
        self.disregard()

    async def outcome(self) -> Outcome | None:
        """Wait for what the receiver makes of the message; None if it was sent settled.

        Inside a transaction it is the outcome that a commit will have.

        A receiver that settles without a word leaves it to the link's default outcome, or to
        ``Released`` where it has none (3.5.3).

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError: it is gone, and did not say.
            DeliveryInDoubtError: the link was resumed, and the receiver had forgotten it.

        Cancelled: nothing is lost; call it again. One that is known already is given without waiting: such a
        call is a full checkpoint at every 64th only, or after a millisecond of unbroken work, as ``transmit`` is.
        """
        owner: Any = self.link.owner
        if owner is None:  # its link was attached anew, and this was settled before
            await trio.lowlevel.checkpoint()
        else:
            await owner.session.connection.pace.checkpoint()
        if self.word is ACCEPTED:
            accepted: Accepted = ACCEPTED
            return accepted
        if self.sent_settled:
            return None
        try:
            await self.wait_decided()
        except AmqpError:
            self._was_asked = True
            raise
        self._was_asked = True
        return self._decision()

    async def wait_decided(self) -> None:
        """Wait until the receiver has given it an outcome, or has settled it; raises as ``outcome``. Cancelled: nothing is lost."""
        while not is_terminal(self.state) and not self.settled:
            self._check()
            await _changed(self)

    def _decision(self) -> Outcome:
        state = self.state
        if not is_terminal(state):
            return cast("Outcome", self.link.default_outcome)
        return cast("Outcome", state.outcome if isinstance(state, TransactionalState) else state)

    def refusal(self) -> DeliveryError | AmqpError | None:
        """Why the receiver does not have the message, as far as is known here; None if it has, or may have it.

        Known are an outcome that is not ``accepted``, and a link that the peer ended before it gave an outcome. The link of
        a message that was sent settled counts if the peer ended it with an error.
        """
        if not self.sent_settled and (self.settled or is_terminal(self.state)):
            try:
                raise_unless_accepted(self._decision(), self)
            except DeliveryError as refused:
                return refused
            return None
        try:
            self._check()
        except GoneError as lost:
            return None if self.sent_settled and lost.error is None else lost
        except (AmqpError, trio.ClosedResourceError):
            pass  # it was ended here
        return None

    def watch(self, call: Callable[[], object]) -> None:
        """Have ``call`` called, synchronously, when the receiver gives it an outcome or settles it, or the link is gone.

        For services that keep an eye on many deliveries without a task for each.
        """
        self.watcher: Touchable | None = _Callback(call)

    async def wait_settled(self) -> None:
        """Wait until both ends have settled it.

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError: it never will be.

        Cancelled: nothing is lost; call it again.
        """
        await trio.lowlevel.checkpoint()
        while not self.settled:
            self._check()
            await _changed(self)

    def _check(self) -> None:
        _owner(self).raise_if_outcome_lost(self)

    def __repr__(self) -> str:
        return f"<OutgoingDelivery {self.tag.hex()} state={self.state!r} settled={self.settled}>"


def raise_unless_accepted(outcome: Any, delivery: OutgoingDelivery) -> None:
    """The exception for an outcome that is not accepted (3.4)."""
    if isinstance(outcome, Rejected):
        raise DeliveryRejectedError(outcome, delivery)
    if isinstance(outcome, Released):
        raise DeliveryReleasedError(outcome, delivery)
    if isinstance(outcome, Modified):
        raise DeliveryModifiedError(outcome, delivery)
    if outcome is not None and not isinstance(outcome, Accepted):
        raise DeliveryError(f"an outcome that is none of the standard's: {outcome!r}", outcome, delivery)
